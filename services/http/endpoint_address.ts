/**
 * Checks the addresses of the owner's servers. Private and loopback addresses are allowed; cloud metadata and link-local
 * addresses never are. Addresses from other people go through guard/.
 */
import { AppError } from "../errors.ts";
import { isAddress, isForbiddenToOwner } from "./guard/address_ranges.ts";
import { type ResolveHost, resolveWithSystem } from "./guard/target_policy.ts";

// Names of 169.254.169.254 in clouds. Refused without a lookup, because a resolver may not know them.
const METADATA_NAMES = new Set(["metadata.google.internal", "metadata.goog", "instance-data.ec2.internal"]);

/**
 * Parses the URL of a server that the owner entered.
 *
 * @returns The parsed URL. Use it for the check and the connection, never the text.
 * @throws {AppError} `invalid_request` if the text is not an http(s) URL or contains credentials; `address_not_allowed` for a
 *   link-local or metadata address in any spelling, and for metadata names
 */
export function parseOwnerUrl(text: string): URL {
  if (!URL.canParse(text)) throw new AppError("invalid_request", "Can't use the address: it isn't a URL");
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new AppError(
      "invalid_request",
      `Can't use the address: it starts with "${url.protocol}" instead of http or https`,
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw new AppError(
      "invalid_request",
      `Can't use "${url.origin}": the address contains credentials. Enter them as the API key.`,
    );
  }
  const host = getHost(url);
  if (METADATA_NAMES.has(host) || (isAddress(host) && isForbiddenToOwner(host))) throw createRefusalError(url);
  return url;
}

/**
 * Resolves the host of a server and refuses it if any of its addresses is link-local or cloud metadata.
 *
 * A name that can't be resolved passes: the request that follows fails with a better error.
 *
 * @throws {AppError} `address_not_allowed`
 */
export async function assertOwnerAddress(url: URL, resolve: ResolveHost = resolveWithSystem): Promise<void> {
  const host = getHost(url);
  if (METADATA_NAMES.has(host)) throw createRefusalError(url);
  const addresses = isAddress(host) ? [host] : await resolve(host).catch(() => []);
  if (addresses.some(isForbiddenToOwner)) throw createRefusalError(url);
}

/** Returns the host without brackets and trailing dot, in lower case. */
function getHost(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
}

function createRefusalError(url: URL): AppError {
  return new AppError(
    "address_not_allowed",
    `Can't use "${url.origin}": link-local and cloud metadata addresses are not allowed`,
  );
}
