/** Base URLs of the owner's servers as people paste them, and the endpoints below them. */
import { AppError } from "../errors.ts";
import { parseOwnerUrl } from "./endpoint_address.ts";

/** Endpoint paths that people paste along with the base URL. */
const ENDPOINT_PATHS = [
  "/chat/completions",
  "/completions",
  "/models",
  "/messages",
  "/audio/speech",
  "/audio/voices",
  "/sdapi/v1",
];

/**
 * Normalizes a pasted base URL to the form that is stored and compared.
 *
 * Removes spaces, trailing slashes, query, fragment and the path of a known endpoint; adds a missing `http://`. Any other path
 * stays: it is the prefix of a reverse proxy.
 *
 * @returns Without a trailing slash: `"http://127.0.0.1:8080/v1"`.
 * @throws {AppError} `invalid_request` if it isn't a usable URL, `address_not_allowed` for link-local and metadata addresses
 */
export function normalizeBaseUrl(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "") throw new AppError("invalid_request", "The base URL is empty");
  const url = parseOwnerUrl(/^[a-z][a-z0-9+.-]*:\/\//i.test(trimmed) ? trimmed : `http://${trimmed}`);
  let path = url.pathname.replace(/\/+$/, "");
  for (const endpoint of ENDPOINT_PATHS) {
    if (!path.toLowerCase().endsWith(endpoint)) continue;
    path = path.slice(0, -endpoint.length).replace(/\/+$/, "");
    break;
  }
  return `${url.origin}${path}`;
}

/** Returns the origin a key is bound to: scheme, host and port. @throws as `normalizeBaseUrl` */
export function parseOrigin(baseUrl: string): string {
  return parseOwnerUrl(baseUrl).origin;
}

/**
 * Lists the prefixes to try for a server's endpoints, in order.
 *
 * A base URL that ends in a version is complete. Otherwise `/v1` comes first, then the base URL itself.
 */
export function listEndpointPrefixes(baseUrl: string): string[] {
  return /\/v\d+$/.test(baseUrl) ? [baseUrl] : [`${baseUrl}/v1`, baseUrl];
}

/** Returns the root of the server's unversioned endpoints (`/props`, `/api/ps`): the base URL without its version. */
export function getServerRoot(baseUrl: string): string {
  return baseUrl.replace(/\/v\d+$/, "");
}
