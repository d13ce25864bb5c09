/** The state of an API key in a form: whether the stored key is sent, and whether others could read it. */
import { completeScheme } from "../../../../services/http/address_scheme.ts";
import { isLoopback } from "../../state/app/loopback.ts";

/** A key in a form. */
export interface ApiKeyState {
  /** The saved server; undefined for a new one. */
  stored: { base_url: string; has_key: boolean } | undefined;
  /** The address as typed. */
  address: string;
  /** The key as typed; empty keeps a stored one. */
  typed: string;
}

/** Returns whether the stored key is not sent: it is bound to the exact origin it was entered for. */
export function isKeyLeftBehind({ stored, address, typed }: ApiKeyState): boolean {
  if (!stored?.has_key || typed !== "") return false;
  return parseOrigin(address) !== parseOrigin(stored.base_url);
}

/** Returns whether others could read the key: plain HTTP to a host other than this machine. */
export function isKeyExposed(keyState: ApiKeyState): boolean {
  const hasKey = keyState.typed !== "" || (keyState.stored?.has_key === true && !isKeyLeftBehind(keyState));
  const origin = parseOrigin(keyState.address);
  if (!hasKey || origin === undefined) return false;
  const { protocol, hostname } = new URL(origin);
  return protocol === "http:" && !isLoopback(hostname);
}

/** Returns the origin of an HTTP address, which may have no scheme; undefined for anything else. */
export function parseOrigin(address: string): string | undefined {
  try {
    const url = new URL(completeScheme(address));
    // Some browsers encode spaces in a host instead of refusing them.
    if (url.hostname.includes("%")) return undefined;
    return url.protocol === "http:" || url.protocol === "https:" ? url.origin : undefined;
  } catch {
    return undefined;
  }
}
