/** The token of a device that can't have a passkey. Other devices use the session cookie. */

const KEY = "parlor.token";

/** Returns the token of this device. */
export function findDeviceToken(storage: Storage | undefined): string | undefined {
  return storage?.getItem(KEY) ?? undefined;
}

/** Saves the token, or deletes it. */
export function saveDeviceToken(storage: Storage | undefined, token: string | undefined): void {
  if (token === undefined) storage?.removeItem(KEY);
  else storage?.setItem(KEY, token);
}
