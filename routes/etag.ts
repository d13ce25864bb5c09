/** Versions in ETag and If-Match. */

/** Gives the ETag of a version, a number or a hash. */
export function etag(version: number | string): string {
  return `"${version}"`;
}

/**
 * Gives the version that If-Match demands.
 *
 * @returns `undefined` where nothing is demanded (no header, or `*`); -1, which no document has, for a tag that is not ours.
 * @see RFC 9110, section 13.1.1; a compressing server may have made the tag weak, so that is accepted.
 */
export function expectedVersion(ifMatch: string | undefined): number | undefined {
  if (ifMatch === undefined || ifMatch.trim() === "*") return undefined;
  const match = /^\s*(?:W\/)?"?(\d{1,15})"?\s*$/.exec(ifMatch);
  return match === null ? -1 : Number(match[1]);
}

/**
 * Gives the hash that If-Match demands.
 *
 * @returns `undefined` where nothing is demanded (no header, or `*`); a tag that is not ours is like no hash there is.
 */
export function expectedHash(ifMatch: string | undefined): string | undefined {
  if (ifMatch === undefined || ifMatch.trim() === "*") return undefined;
  return /^\s*(?:W\/)?"?([A-Za-z0-9_-]+)"?\s*$/.exec(ifMatch)?.[1] ?? "";
}
