/**
 * The sign-in of a proxy in front of the server. When it ends, the proxy responds to the page's requests itself. Also for the
 * service worker.
 */

/** Thrown in place of a response that a proxy sent because it wants a sign-in. */
export class ProxySignInError extends Error {
  override readonly name = "ProxySignInError";
}

/** Any request that everybody may make, and that no filter of contents refuses. */
const HARMLESS_PATH = "/api/auth/status";

/**
 * Returns a `fetch` that never takes the sign-in page of a proxy for a response of the server.
 *
 * Redirects aren't followed, since the API has none: the page behind one would count as success of any change.
 *
 * @param onResponse Called with each response: whether the proxy wants a sign-in.
 */
export function guardFetch(fetchFunction: typeof fetch, onResponse?: (isSignedOut: boolean) => void): typeof fetch {
  return async (input, init) => {
    const response = await fetchFunction(input, { ...init, redirect: "manual" });
    let isSignedOut = isSignInPage(response);
    if (isSignedOut && response.status === 403) {
      // A filter may have refused what the request has in it, which no sign-in changes.
      const { headers } = init ?? {};
      const other = await fetchFunction(HARMLESS_PATH, { headers, redirect: "manual", cache: "no-store" });
      isSignedOut = isSignInPage(other);
    }
    onResponse?.(isSignedOut);
    if (isSignedOut) throw new ProxySignInError("A proxy in front of the server wants a sign-in");
    return response;
  };
}

/** Reports whether a response is a redirect or refusal that the server didn't send, or a page in place of its data. */
function isSignInPage({ type, status, ok, headers }: Response): boolean {
  if (type === "opaqueredirect") return true;
  // All responses of the server have an ID.
  if (headers.has("x-request-id")) return false;
  const contentType = headers.get("content-type") ?? "";
  if (ok) return contentType.startsWith("text/html");
  return (status === 401 || status === 403) && !contentType.startsWith("application/json");
}
