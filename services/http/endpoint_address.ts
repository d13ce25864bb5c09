/**
 * Addresses the owner configures: LLM, image and speech servers. Private and loopback are their usual place and pass; cloud
 * metadata and link-local never do. Addresses from untrusted sources go through guard_proxy.ts.
 */
import { AppError } from "../errors.ts";
import { isAddress, isForbiddenToOwner } from "./guard/address_ranges.ts";
import { type ResolveHost, resolveWithSystem } from "./guard/resolve_host.ts";

export { dropProxyEnvironment } from "./guard/proxy_environment.ts";

// Names under which clouds answer for 169.254.169.254; refused unresolved, since a test resolver or a VPN may not know them.
const METADATA_NAMES = new Set(["metadata.google.internal", "metadata.goog", "instance-data.ec2.internal"]);

/**
 * Parses the address of an endpoint that the owner entered.
 *
 * @returns The parsed URL; check and connection must both use it, never the text.
 * @throws {AppError} `invalid_request` when the text is no http(s) URL or holds credentials;
 *   `address_not_allowed` for a literal link-local or metadata address, in whatever spelling, and for metadata names.
 */
export function parseOwnerUrl(text: string): URL {
  if (!URL.canParse(text)) throw new AppError("invalid_request", "Cannot use the endpoint address: it is not a URL");
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new AppError(
      "invalid_request",
      `Cannot use the endpoint address: it begins with "${url.protocol}", not http or https`,
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw new AppError(
      "invalid_request",
      `Cannot use "${url.origin}": the address holds credentials, which belong into the key`,
    );
  }
  const host = hostOf(url);
  if (METADATA_NAMES.has(host) || (isAddress(host) && isForbiddenToOwner(host))) throw refused(url);
  return url;
}

/**
 * Resolves the host of an endpoint and refuses it when any of its addresses is link-local or cloud metadata.
 *
 * A name that cannot be resolved passes: the call that follows fails by itself and says so better.
 *
 * @throws {AppError} `address_not_allowed`
 */
export async function assertOwnerAddress(url: URL, resolve: ResolveHost = resolveWithSystem): Promise<void> {
  const host = hostOf(url);
  if (METADATA_NAMES.has(host)) throw refused(url);
  const addresses = isAddress(host) ? [host] : await resolve(host).catch(() => []);
  if (addresses.some(isForbiddenToOwner)) throw refused(url);
}

/** The host as names and addresses are compared: no brackets, no trailing dot, lower case from the URL parser. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
}

function refused(url: URL): AppError {
  return new AppError(
    "address_not_allowed",
    `Cannot use "${url.origin}": link-local and cloud metadata addresses are not allowed`,
  );
}
