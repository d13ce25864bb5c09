/**
 * Base URLs of the owner's servers as people paste them, the endpoints below them, and the keys and headers that are
 * bound to their origin.
 */
import { AppError } from "../errors.ts";
import { completeScheme } from "./address_scheme.ts";
import {
  type Endpoints,
  isAddress,
  isForbiddenToOwner,
  isPublicAddress,
  type ResolveHost,
  resolveWithSystem,
  toTarget,
} from "./guard/target_policy.ts";
import { UpstreamError, type UpstreamErrorKind } from "./upstream_error.ts";

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

/** Tails that may also be the prefix of a server's endpoints: `/models` in Azure AI, `/inference` in GitHub Models. */
const AMBIGUOUS_TAIL = /\/(models|inference)$/i;

/** Options of `normalizeBaseUrl`. */
export interface BaseUrlOptions {
  /** Whether to preserve a tail that may be a prefix. `listEndpointPrefixes` tries both. */
  keepsPrefix?: boolean;
  /** Whether to preserve the query, such as Azure's `?api-version=2024-10-21`. */
  keepsQuery?: boolean;
}

/**
 * Normalizes a pasted base URL to the form that is stored and compared.
 *
 * Removes spaces, trailing slashes, fragment, the path of a known endpoint, and by default the query; adds a missing
 * scheme. Any other path stays: it's the prefix of a reverse proxy.
 *
 * @returns Without a trailing slash: `"http://127.0.0.1:8080/v1"`.
 * @throws {AppError} `invalid_request` if it isn't a usable URL, `address_not_allowed` for link-local and metadata
 *   addresses
 */
export function normalizeBaseUrl(
  text: string,
  { keepsQuery = false, keepsPrefix = false }: BaseUrlOptions = {},
): string {
  const trimmed = text.trim();
  if (trimmed === "") throw new AppError("invalid_request", "The base URL is empty");
  const url = parseOwnerUrl(completeScheme(trimmed));
  let path = url.pathname.replace(/\/+$/, "");
  for (const endpoint of ENDPOINT_PATHS) {
    if (!path.toLowerCase().endsWith(endpoint)) continue;
    if (keepsPrefix && AMBIGUOUS_TAIL.test(endpoint) && !/\/v\d+\/models$/i.test(path)) break;
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

/** Returns the origin a key is bound to: scheme, host and port. @throws Like `normalizeBaseUrl` */
export function parseOrigin(baseUrl: string): string {
  return parseOwnerUrl(baseUrl).origin;
}

/**
 * Lists the prefixes to try for a server's endpoints, in order.
 *
 * A base URL that ends in a version, an Azure deployment or Gemini's `/openai` is complete. A base URL with another path
 * comes first as it is, then with `/v1`; one without a path the other way around. A tail that may have been pasted by mistake
 * is also tried without it.
 */
export function listEndpointPrefixes(baseUrl: string): string[] {
  if (/\/v\d+$|\/openai\/deployments\/[^/]+$|\/v\d+(alpha|beta)?\/openai$/.test(baseUrl)) return [baseUrl];
  if (AMBIGUOUS_TAIL.test(baseUrl)) return [baseUrl, ...listEndpointPrefixes(baseUrl.replace(AMBIGUOUS_TAIL, ""))];
  const hasPath = /^[a-z]+:\/\/[^/]+\/./i.test(baseUrl);
  return hasPath ? [baseUrl, `${baseUrl}/v1`] : [`${baseUrl}/v1`, baseUrl];
}

/**
 * Returns the root of the server's unversioned endpoints (`/props`, `/api/ps`): the base URL without its version and
 * without a tail that may have been pasted by mistake.
 */
export function getServerRoot(baseUrl: string): string {
  return baseUrl.replace(AMBIGUOUS_TAIL, "").replace(/\/v\d+$/, "");
}

// Checks the addresses of the owner's servers. Private and loopback addresses are allowed; cloud metadata and link-local
// addresses never are. Addresses from other people go through guard/.

// Names of 169.254.169.254 in clouds. Refused without a lookup, because a resolver may not know them.
const METADATA_NAMES = new Set(["metadata.google.internal", "metadata.goog", "instance-data.ec2.internal"]);
/** RFC 6761, section 6.3. */
const LOCALHOST_ADDRESSES = ["127.0.0.1", "::1"];

/**
 * Parses the URL of a server that the owner entered.
 *
 * @returns The parsed URL. Use it, never the text, for the check and the connection.
 * @throws {AppError} `invalid_request` if the text is not an http(s) URL or contains credentials; `address_not_allowed`
 *   for a link-local or metadata address in any notation, and for metadata names
 */
export function parseOwnerUrl(text: string): URL {
  if (!URL.canParse(text)) throw new AppError("invalid_request", "Can't use the address: it isn't a URL");
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new AppError(
      "invalid_request",
      `Can't use the address: it starts with "${url.protocol}" instead of http: or https:`,
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw new AppError(
      "invalid_request",
      `Can't use "${url.origin}": the address contains credentials. Enter them as the API key`,
    );
  }
  const { host } = toTarget(url);
  if (METADATA_NAMES.has(host) || (isAddress(host) && isForbiddenToOwner(host))) throw createRefusalError(url);
  return url;
}

/** How to judge the addresses of the owner's servers. */
export interface OwnerPolicy {
  /** Default: the system's resolver. */
  resolve?: ResolveHost;
  /** Addresses of Parlor itself, which are refused. */
  ownListeners?: Endpoints;
}

/**
 * Resolves the host of a server and rejects it if any of its addresses is link-local, cloud metadata or Parlor's own.
 * Addresses and `localhost` need no lookup.
 *
 * @returns The addresses, to which the connection must be made. Empty if the name can't be resolved.
 * @throws {AppError} `address_not_allowed`
 */
export async function resolveOwnerUrl(
  url: URL,
  { resolve = resolveWithSystem, ownListeners }: OwnerPolicy = {},
): Promise<string[]> {
  const { host, port } = toTarget(url);
  if (METADATA_NAMES.has(host)) throw createRefusalError(url);
  const addresses = isAddress(host)
    ? [host]
    : host === "localhost"
    ? LOCALHOST_ADDRESSES
    : await resolve(host).catch(() => []);
  if (addresses.some(isForbiddenToOwner)) throw createRefusalError(url);
  if (addresses.some((address) => ownListeners?.includes(address, port))) {
    throw new AppError("address_not_allowed", `Can't use "${url.origin}": it's the address of Parlor itself`);
  }
  return addresses;
}

/** Reports whether a server is on this machine or in a private network: none of its addresses is public. */
export async function isPrivateUrl(baseUrl: string): Promise<boolean> {
  const addresses = await resolveOwnerUrl(parseOwnerUrl(baseUrl)).catch(() => []);
  return addresses.length > 0 && !addresses.some(isPublicAddress);
}

function createRefusalError(url: URL): AppError {
  return new AppError(
    "address_not_allowed",
    `Can't use "${url.origin}": link-local and cloud metadata addresses aren't allowed`,
  );
}

// Finds the prefix of a server's endpoints and remembers it.

const MAX_REMEMBERED = 200;
/** Errors that can mean a wrong path. */
const PATH_ERRORS = new Set<UpstreamErrorKind>(["not_found", "web_page", "bad_answer"]);

/** Finds the working prefix of each base URL and remembers it. */
export class EndpointSearch {
  readonly #known = new Map<string, string>();

  /**
   * Tries an endpoint under each possible prefix, starting with the one that worked before.
   *
   * Only errors that can mean a wrong path lead to the next prefix.
   *
   * @throws What `attempt` threw; `not_found` first if no prefix worked.
   */
  async find<T>(baseUrl: string, attempt: (prefix: string) => Promise<T>): Promise<T> {
    const known = this.#known.get(baseUrl);
    const prefixes = listEndpointPrefixes(baseUrl);
    if (known !== undefined) prefixes.sort((a, b) => Number(b === known) - Number(a === known));
    const failures: UpstreamError[] = [];
    for (const prefix of prefixes) {
      try {
        const result = await attempt(prefix);
        if (this.#known.size >= MAX_REMEMBERED) this.#known.clear();
        this.#known.set(baseUrl, prefix);
        return result;
      } catch (thrown) {
        if (!(thrown instanceof UpstreamError) || !PATH_ERRORS.has(thrown.kind)) throw thrown;
        failures.push(thrown);
      }
    }
    throw failures.find((failure) => failure.kind === "not_found") ?? failures[0];
  }
}

/** A stored key. It's only ever sent to `origin`. */
export interface BoundKey {
  value: string;
  origin: string;
}

/**
 * Returns the key of a profile after saving.
 *
 * @param input `undefined` preserves the stored key if the origin stays the same; `null` and `""` clear it.
 */
export function updateBoundKey(
  baseUrl: string,
  input: string | null | undefined,
  stored: BoundKey | undefined,
): { key?: BoundKey } {
  const value = input?.trim();
  if (input === null || value === "") return {};
  const origin = parseOrigin(baseUrl);
  if (value) return { key: { value, origin } };
  return stored?.origin === origin ? { key: stored } : {};
}

/**
 * Returns a key for use in a header; `undefined` if there is none.
 *
 * Checks it first, because the runtime's error for an invalid header value contains the value.
 *
 * @throws {AppError} `invalid_request` if the key contains characters that aren't allowed in a header
 */
export function toHeaderKey(apiKey: string | undefined): string | undefined {
  const key = apiKey?.trim();
  if (key === undefined || key === "") return undefined;
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new AppError("invalid_request", "Can't use the API key: it contains spaces or non-ASCII characters");
}

/** Returns the `Authorization` header for a bearer token, or no header without a key. @throws Like `toHeaderKey` */
export function toBearerHeader(apiKey: string | undefined): Record<string, string> {
  const key = toHeaderKey(apiKey);
  return key === undefined ? {} : { authorization: `Bearer ${key}` };
}

/**
 * Replaces a key with `[key]` in text from a server.
 *
 * Keys shorter than four characters are placeholders such as "x"; masking them would garble the text.
 *
 * @param mask The replacement.
 */
export function maskKey(text: string, apiKey: string | undefined, mask = "[key]"): string {
  const key = apiKey?.trim();
  if (key === undefined || key.length < 4) return text;
  let masked = text;
  for (const form of new Set([key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1)])) {
    masked = masked.replaceAll(form, mask);
  }
  return masked;
}

// Additional headers of a connection: stored bound to one origin, sent with every request.

/** Stored headers. They're only ever sent to `origin`. */
export interface BoundHeaders {
  values: Record<string, string>;
  origin: string;
}

const MAX_HEADERS = 30;
const MAX_VALUE_CHARS = 8_000;
/** RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;
/** Headers that frame the message or belong to the connection. A wrong one breaks or redirects the request. */
const REFUSED_NAMES = new Set([
  ...["host", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection", "keep-alive"],
  ...["te", "trailer", "upgrade", "expect", "accept", "accept-encoding", "origin", "referer", "date", "via"],
]);
const REFUSED_PREFIXES = /^(proxy-|sec-|:)/;

/**
 * Returns the headers of a connection after saving.
 *
 * @param input A string replaces a header, `null` removes it. Other headers stay if the origin stays the same. `null`
 *   instead of an object removes all headers, `undefined` preserves all.
 * @throws {AppError} `invalid_request` for a name or value that is invalid or not allowed
 */
export function updateHeaders(
  baseUrl: string,
  input: Record<string, string | null> | null | undefined,
  stored: BoundHeaders | undefined,
): { headers?: BoundHeaders } {
  if (input === null) return {};
  const origin = parseOrigin(baseUrl);
  const values = stored?.origin === origin ? { ...stored.values } : {};
  for (const [name, value] of Object.entries(input ?? {})) {
    const trimmed = name.trim();
    for (const known of Object.keys(values)) {
      if (known.toLowerCase() === trimmed.toLowerCase()) delete values[known];
    }
    if (value === null) continue;
    checkHeader(trimmed, value.trim());
    values[trimmed] = value.trim();
  }
  if (Object.keys(values).length > MAX_HEADERS) refuse(`a connection has at most ${MAX_HEADERS} headers`);
  return Object.keys(values).length === 0 ? {} : { headers: { values, origin } };
}

function checkHeader(name: string, value: string): void {
  const lower = name.toLowerCase();
  if (!TOKEN.test(name)) refuse(`"${name}" isn't a valid header name`);
  if (REFUSED_NAMES.has(lower) || REFUSED_PREFIXES.test(lower)) refuse(`the header "${name}" can't be set`);
  if (value === "" || value.length > MAX_VALUE_CHARS || !/^[\x20-\x7e\t]+$/.test(value)) {
    refuse(`the value of the header "${name}" is empty, too long, or contains non-ASCII characters or line breaks`);
  }
}

function refuse(message: string): never {
  throw new AppError("invalid_request", `Can't save the connection: ${message}`, {
    issues: [{ path: "headers", message }],
  });
}
