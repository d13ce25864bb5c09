/**
 * Entity tags and preconditions in headers; middleware/conditional_get.ts applies them to reads. The documents of a
 * character or persona aren't in its file but are part of its ETag.
 */
import { parseTagList, type Precondition, type TagList } from "../../services/storage/preconditions.ts";
import { createHash } from "node:crypto";
import type { DocumentUse } from "../../services/documents/document.ts";

/** Returns the ETag of a version, which is a number or a hash. */
export function formatEtag(version: number | string): string {
  return `"${version}"`;
}

/** Parses the preconditions of a write. @returns `undefined` if it has none */
export function parsePrecondition(
  headers: { "if-match"?: string; "if-none-match"?: string },
): Precondition | undefined {
  const { "if-match": ifMatch, "if-none-match": ifNoneMatch } = headers;
  if (ifMatch === undefined && ifNoneMatch === undefined) return undefined;
  return {
    ifMatch: ifMatch === undefined ? undefined : parseTagList(ifMatch),
    ifNoneMatch: ifNoneMatch === undefined ? undefined : parseTagList(ifNoneMatch),
  };
}

/** Returns the ETag of a file's version and the documents of its owner. Without documents, it is the version's ETag. */
export function formatOwnerEtag(version: string, uses: readonly DocumentUse[]): string {
  return formatEtag(version + createDocumentsSuffix(uses));
}

/** Converts preconditions on `formatOwnerEtag` to preconditions on the version: tags of other documents match nothing. */
export function toVersionPrecondition(
  expected: Precondition | undefined,
  uses: readonly DocumentUse[],
): Precondition | undefined {
  const suffix = createDocumentsSuffix(uses);
  if (expected === undefined || suffix === "") return expected;
  const strip = (list: TagList | undefined): TagList | undefined =>
    list === undefined || list === "*"
      ? list
      : list.flatMap(({ opaque, isWeak }) =>
        opaque.endsWith(suffix) ? [{ opaque: opaque.slice(0, -suffix.length), isWeak }] : []
      );
  return { ifMatch: strip(expected.ifMatch), ifNoneMatch: strip(expected.ifNoneMatch) };
}

function createDocumentsSuffix(uses: readonly DocumentUse[]): string {
  if (uses.length === 0) return "";
  return `.${createHash("sha256").update(JSON.stringify(uses)).digest("hex").slice(0, 16)}`;
}
