/** Preconditions of requests: which stored version a write or a read asks for. @see RFC 9110, section 13 */

interface EntityTag {
  opaque: string;
  isWeak: boolean;
}

/** The value of `If-Match` or `If-None-Match`; `"*"` is any version there is. */
export type TagList = "*" | readonly EntityTag[];

/** What a request asks of the stored version. */
export interface Precondition {
  ifMatch?: TagList;
  ifNoneMatch?: TagList;
}

/** A version that has to be stored, or the precondition of a request. */
export type ExpectedVersion = number | string | Precondition;

const TAG = /\s*(?:(W\/)?"([^"]*)"|([^\s",]+))\s*(?:,|$)|\s*,/gy;

/**
 * Reads a list of entity tags.
 *
 * @returns What could be read: a tag that isn't one matches nothing. Quotes may be missing, as scripts leave them out.
 */
export function parseTagList(header: string): TagList {
  if (header.trim() === "*") return "*";
  return [...header.matchAll(TAG)].flatMap(([, weak, quoted, bare]) => {
    const opaque = quoted ?? bare;
    return opaque === undefined ? [] : [{ opaque, isWeak: weak !== undefined }];
  });
}

/** Compares as `If-Match` and `If-Range` do: weak tags match nothing (RFC 9110, section 8.8.3.2). */
export function matchesStrongly(list: TagList, current: number | string | undefined): boolean {
  if (current === undefined) return false;
  return list === "*" || list.some(({ opaque, isWeak }) => !isWeak && opaque === String(current));
}

/** Compares as `If-None-Match` does: weak tags count like strong ones. */
export function matchesWeakly(list: TagList, current: number | string | undefined): boolean {
  if (current === undefined) return false;
  return list === "*" || list.some(({ opaque }) => opaque === String(current));
}

/**
 * Tells whether a write may go on. Call it where nothing else can write in between.
 *
 * @param current The stored version; `undefined` where nothing is stored.
 */
export function isExpected(expected: ExpectedVersion | undefined, current: number | string | undefined): boolean {
  if (expected === undefined) return true;
  if (typeof expected !== "object") return expected === current;
  const { ifMatch, ifNoneMatch } = expected;
  return (ifMatch === undefined || matchesStrongly(ifMatch, current)) &&
    (ifNoneMatch === undefined || !matchesWeakly(ifNoneMatch, current));
}
