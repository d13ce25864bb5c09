/** API keys and additional headers of the owner's servers: stored bound to one origin, masked in errors. */
import { AppError } from "../errors.ts";
import { parseOrigin } from "./base_url.ts";

/** A stored key. It is sent to `origin` and nowhere else. */
export interface BoundKey {
  value: string;
  origin: string;
}

/**
 * Returns the key a profile has after it was saved.
 *
 * @param input Undefined keeps the stored key if the origin stays the same; `null` and `""` clear it.
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
 * Returns a key ready for a header, or undefined if there is none.
 *
 * Checked here because the runtime quotes an invalid header value in its error.
 *
 * @throws {AppError} `invalid_request` if the key contains characters a header can't carry
 */
export function toHeaderKey(apiKey: string | undefined): string | undefined {
  const key = apiKey?.trim();
  if (key === undefined || key === "") return undefined;
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new AppError("invalid_request", "Can't use the API key: it contains spaces or non-ASCII characters");
}

/** Returns the `Authorization` header for a bearer token, or no header without a key. @throws as `toHeaderKey` */
export function toBearerHeader(apiKey: string | undefined): Record<string, string> {
  const key = toHeaderKey(apiKey);
  return key === undefined ? {} : { authorization: `Bearer ${key}` };
}

/**
 * Replaces a key with `[key]` in text a server sent.
 *
 * Keys shorter than four characters are placeholders such as "x"; masking them would garble the text.
 *
 * @param mask What replaces it.
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

/** Stored headers. They are sent to `origin` and nowhere else. */
export interface BoundHeaders {
  values: Record<string, string>;
  origin: string;
}

const MAX_HEADERS = 30;
const MAX_VALUE_CHARS = 8_000;
/** RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;
/** They frame the message or belong to the connection, so a wrong one breaks or redirects the request. */
const REFUSED_NAMES = new Set([
  ...["host", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection", "keep-alive"],
  ...["te", "trailer", "upgrade", "expect", "accept", "accept-encoding", "origin", "referer", "date", "via"],
]);
const REFUSED_PREFIXES = /^(proxy-|sec-|:)/;

/**
 * Returns the headers a connection has after it was saved.
 *
 * @param input A value replaces a header, `null` removes it; names that aren't mentioned stay while the origin is the same.
 *   `null` as a whole removes all, undefined keeps all.
 * @throws {AppError} `invalid_request` for a name or value that can't be sent, or must not be
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
  if (!TOKEN.test(name)) refuse(`"${name}" isn't the name of a header`);
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
