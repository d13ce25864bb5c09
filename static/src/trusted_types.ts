/**
 * The only policy of Trusted Types that the page's content security policy allows: for HTML that is parsed into an inert
 * document and sanitized, and for the service worker.
 *
 * @see https://www.w3.org/TR/trusted-types/
 */

/** The part of a policy that is used here. TypeScript has no types for them. */
interface TrustedTypesPolicy {
  createHTML(html: string): string;
  createScriptURL(url: string): string;
}

interface TrustedTypesFactory {
  createPolicy(name: string, rules: TrustedTypesPolicy): TrustedTypesPolicy;
}

/** Name of the policy, also in routes/ui.ts. */
const POLICY_NAME = "parlor";
const SERVICE_WORKER_PATH = "/service_worker.js";

let policy: TrustedTypesPolicy | undefined;

/** Returns the policy; `null` in browsers without Trusted Types. Only for DOMPurify, whose parsed documents are inert. */
export function getSanitizerPolicy(): TrustedTypesPolicy | null {
  const factory = (globalThis as { trustedTypes?: TrustedTypesFactory }).trustedTypes;
  if (factory === undefined) return null;
  return policy ??= factory.createPolicy(POLICY_NAME, {
    createHTML: (html) => html,
    createScriptURL(url) {
      if (url === SERVICE_WORKER_PATH) return url;
      throw new TypeError(`"${url}" isn't a script of the page`);
    },
  });
}

/** Parses HTML into an inert document: nothing is loaded, nothing runs. */
export function parseInertHtml(html: string): Document {
  return new DOMParser().parseFromString(getSanitizerPolicy()?.createHTML(html) ?? html, "text/html");
}

/** Registers the service worker. @throws {DOMException} {TypeError} if the browser refuses */
export async function registerServiceWorker(serviceWorker: ServiceWorkerContainer): Promise<ServiceWorkerRegistration> {
  return await serviceWorker.register(
    getSanitizerPolicy()?.createScriptURL(SERVICE_WORKER_PATH) ?? SERVICE_WORKER_PATH,
  );
}
