/** API keys of the owner's servers: stored bound to one origin, sent as a header, masked in errors. */
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
