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
  "/audio/transcriptions",
  "/inference",
  "/sdapi/v1",
];

/** Options of `normalizeBaseUrl`. */
export interface BaseUrlOptions {
  /** The query stays, such as Azure's `?api-version=2024-10-21`. */
  keepsQuery?: boolean;
}

/**
 * Normalizes a pasted base URL to the form that is stored and compared.
 *
 * Removes spaces, trailing slashes, query (unless it is kept), fragment and the path of a known endpoint; adds a missing `http://`. Any other path
 * stays: it is the prefix of a reverse proxy.
 *
 * @returns Without a trailing slash: `"http://127.0.0.1:8080/v1"`.
 * @throws {AppError} `invalid_request` if it isn't a usable URL, `address_not_allowed` for link-local and metadata addresses
 */
export function normalizeBaseUrl(text: string, { keepsQuery = false }: BaseUrlOptions = {}): string {
  const trimmed = text.trim();
  if (trimmed === "") throw new AppError("invalid_request", "The base URL is empty");
  const url = parseOwnerUrl(/^[a-z][a-z0-9+.-]*:\/\//i.test(trimmed) ? trimmed : `http://${trimmed}`);
  let path = url.pathname.replace(/\/+$/, "");
  for (const endpoint of ENDPOINT_PATHS) {
    if (!path.toLowerCase().endsWith(endpoint)) continue;
    path = path.slice(0, -endpoint.length).replace(/\/+$/, "");
    break;
  }
  return `${url.origin}${path}${keepsQuery && url.search.length > 1 ? url.search : ""}`;
}

/** Splits a base URL from its query, which is sent with every request. */
export function splitQuery(baseUrl: string): { baseUrl: string; query?: string } {
  const at = baseUrl.indexOf("?");
  return at === -1 ? { baseUrl } : { baseUrl: baseUrl.slice(0, at), query: baseUrl.slice(at + 1) };
}

/** Returns the origin a key is bound to: scheme, host and port. @throws as `normalizeBaseUrl` */
export function parseOrigin(baseUrl: string): string {
  return parseOwnerUrl(baseUrl).origin;
}

/**
 * Lists the prefixes to try for a server's endpoints, in order.
 *
 * A base URL that ends in a version, an Azure deployment or Gemini's `/openai` is complete. Otherwise `/v1` comes first, then
 * the base URL itself.
 */
export function listEndpointPrefixes(baseUrl: string): string[] {
  return /\/v\d+$|\/openai\/deployments\/[^/]+$|\/v\d+(alpha|beta)?\/openai$/.test(baseUrl)
    ? [baseUrl]
    : [`${baseUrl}/v1`, baseUrl];
}

/** Returns the root of the server's unversioned endpoints (`/props`, `/api/ps`): the base URL without its version. */
export function getServerRoot(baseUrl: string): string {
  return baseUrl.replace(/\/v\d+$/, "");
}
