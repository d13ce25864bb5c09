/** Entity tags and preconditions on the wire; middleware/conditional_get.ts answers reads by them. */
import { parseTagList, type Precondition } from "../../services/storage/preconditions.ts";

/** Returns the ETag of a version, a number or a hash. */
export function etag(version: number | string): string {
  return `"${version}"`;
}

/** Reads what a write demands. @returns `undefined` where it demands nothing */
export function preconditionOf(headers: { "if-match"?: string; "if-none-match"?: string }): Precondition | undefined {
  const { "if-match": ifMatch, "if-none-match": ifNoneMatch } = headers;
  if (ifMatch === undefined && ifNoneMatch === undefined) return undefined;
  return {
    ifMatch: ifMatch === undefined ? undefined : parseTagList(ifMatch),
    ifNoneMatch: ifNoneMatch === undefined ? undefined : parseTagList(ifNoneMatch),
  };
}
