/** The token a device signs in with where it can have no passkey. Elsewhere there is none: the session's cookie does it. */

const KEY = "parlor.token";

/** Gives the token this device keeps. */
export function findDeviceToken(storage: Storage | undefined): string | undefined {
  return storage?.getItem(KEY) ?? undefined;
}

/** Keeps a token, or forgets it. */
export function saveDeviceToken(storage: Storage | undefined, token: string | undefined): void {
  if (token === undefined) storage?.removeItem(KEY);
  else storage?.setItem(KEY, token);
}
