/** A stored API key, bound to the origin that it was entered for. */
import { originOf } from "./base_url.ts";

/** It is sent to `origin` and nowhere else. */
export interface BoundKey {
  value: string;
  origin: string;
}

/**
 * Decides which key a profile has after it was saved.
 *
 * @param entered Left out it keeps the stored key as long as the origin stays; `null` and `""` clear it.
 */
export function keyAfter(
  baseUrl: string,
  entered: string | null | undefined,
  before: BoundKey | undefined,
): { key?: BoundKey } {
  const value = entered?.trim();
  if (entered === null || value === "") return {};
  const origin = originOf(baseUrl);
  if (value) return { key: { value, origin } };
  return before?.origin === origin ? { key: before } : {};
}
