/** Conditional requests: which stored version a read or write expects. @see RFC 9110, section 13 */
import { AppError } from "../errors.ts";

interface EntityTag {
  opaque: string;
  isWeak: boolean;
}

/** Value of `If-Match` or `If-None-Match`; `"*"` matches any version. */
export type TagList = "*" | readonly EntityTag[];

/** The preconditions of a request. */
export interface Precondition {
  ifMatch?: TagList;
  ifNoneMatch?: TagList;
}

/** An expected version, or the preconditions of a request. */
export type ExpectedVersion = number | string | Precondition;

const TAG = /\s*(?:(W\/)?"([^"]*)"|([^\s",]+))\s*(?:,|$)|\s*,/gy;

/**
 * Parses a list of entity tags.
 *
 * @returns The valid tags; invalid ones match nothing. Quotes are optional because scripts often omit them.
 */
export function parseTagList(header: string): TagList {
  if (header.trim() === "*") return "*";
  return [...header.matchAll(TAG)].flatMap(([, weak, quoted, bare]) => {
    const opaque = quoted ?? bare;
    return opaque === undefined ? [] : [{ opaque, isWeak: weak !== undefined }];
  });
}

/** Compares like `If-Match` and `If-Range`: weak tags never match (RFC 9110, section 8.8.3.2). */
export function matchesStrongly(list: TagList, current: number | string | undefined): boolean {
  if (current === undefined) return false;
  return list === "*" || list.some(({ opaque, isWeak }) => !isWeak && opaque === String(current));
}

/** Compares like `If-None-Match`: weak tags match like strong ones. */
export function matchesWeakly(list: TagList, current: number | string | undefined): boolean {
  if (current === undefined) return false;
  return list === "*" || list.some(({ opaque }) => opaque === String(current));
}

/**
 * Throws if the precondition of a write isn't met. Call it so that no other write can happen before the actual write.
 *
 * @param what Name of the resource, for the message: `character "ada"`.
 * @param current The stored version; `undefined` if nothing is stored.
 * @throws {AppError} `revision_mismatch`
 */
export function assertExpected(
  what: string,
  expected: ExpectedVersion | undefined,
  current: number | string | undefined,
): void {
  if (isExpected(expected, current)) return;
  const found = current === undefined ? "it doesn't exist" : `it's at version ${current}`;
  throw new AppError("revision_mismatch", `Can't save the ${what}: ${found}`);
}

function isExpected(expected: ExpectedVersion | undefined, current: number | string | undefined): boolean {
  if (expected === undefined) return true;
  if (typeof expected !== "object") return expected === current;
  const { ifMatch, ifNoneMatch } = expected;
  return (ifMatch === undefined || matchesStrongly(ifMatch, current)) &&
    (ifNoneMatch === undefined || !matchesWeakly(ifNoneMatch, current));
}
