/** Base URLs of the owner's servers as people paste them, and the paths of their endpoints. */
import { AppError } from "../errors.ts";
import { parseOwnerUrl } from "./endpoint_address.ts";

/** Paths of endpoints that people paste along with the base. */
const KNOWN_TAILS = [
  ...["/chat/completions", "/completions", "/models", "/messages"],
  ...["/audio/speech", "/audio/voices", "/sdapi/v1"],
];

/**
 * Brings a pasted base URL into the one form that is stored and compared.
 *
 * Spaces, a missing `http://`, trailing slashes, query and fragment, and the path of a known endpoint go; other paths are a
 * reverse proxy's prefix and stay.
 *
 * @returns Without a trailing slash: `"http://127.0.0.1:8080/v1"`.
 * @throws {AppError} `invalid_request` for no usable URL, `address_not_allowed` for link-local and metadata literals
 */
export function normaliseBaseUrl(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "") throw new AppError("invalid_request", "Cannot use an empty base URL");
  const url = parseOwnerUrl(/^[a-z][a-z0-9+.-]*:\/\//i.test(trimmed) ? trimmed : `http://${trimmed}`);
  let path = url.pathname.replace(/\/+$/, "");
  for (const tail of KNOWN_TAILS) {
    if (!path.toLowerCase().endsWith(tail)) continue;
    path = path.slice(0, -tail.length).replace(/\/+$/, "");
    break;
  }
  return `${url.origin}${path}`;
}

/** The exact origin a key is bound to: scheme, host and port. */
export function originOf(baseUrl: string): string {
  return parseOwnerUrl(baseUrl).origin;
}

/**
 * Gives the prefixes under which a server's endpoints may lie, in the order to try them.
 *
 * A base that ends in a version says it itself; otherwise `/v1` comes first, the bare base second.
 */
export function endpointPrefixes(baseUrl: string): string[] {
  return /\/v\d+$/.test(baseUrl) ? [baseUrl] : [`${baseUrl}/v1`, baseUrl];
}

/** Gives the root of the server's own, unversioned endpoints (`/props`, `/api/ps`): the base without its version. */
export function serverRoot(baseUrl: string): string {
  return baseUrl.replace(/\/v\d+$/, "");
}
