/** Lists of pages as text: `"3-5,12"`. */

/** More ranges than a person writes. */
const MAX_RANGES = 1_000;
/** No document has more pages. */
const MAX_PAGE = 1_000_000;

/**
 * Parses a list of pages.
 *
 * @returns The pages in ascending order, each once; `undefined` if the text isn't a list of pages.
 */
export function parsePages(text: string): PageRange[] | undefined {
  const parts = text.split(",").map((part) => part.trim()).filter((part) => part !== "");
  if (parts.length === 0 || parts.length > MAX_RANGES) return undefined;
  const ranges: PageRange[] = [];
  for (const part of parts) {
    const match = /^(\d{1,7})(?:\s*[-–]\s*(\d{1,7}))?$/.exec(part);
    if (match === null) return undefined;
    const first = Number(match[1]);
    const last = match[2] === undefined ? first : Number(match[2]);
    if (first < 1 || last < first || last > MAX_PAGE) return undefined;
    ranges.push({ first, last });
  }
  return joinRanges(ranges);
}

/** Pages from `first` to `last`, both included. The first page of a document is 1. */
export interface PageRange {
  first: number;
  last: number;
}

/** Formats ranges: `"3-5,12"`. */
export function formatPages(ranges: readonly PageRange[]): string {
  return ranges.map(({ first, last }) => first === last ? `${first}` : `${first}-${last}`).join(",");
}

/** Converts page numbers to ranges. */
export function toPageRanges(pages: Iterable<number>): PageRange[] {
  return joinRanges([...pages].map((page) => ({ first: page, last: page })));
}

/** Returns whether a page is in one of the ranges. */
export function includesPage(ranges: readonly PageRange[], page: number): boolean {
  return ranges.some(({ first, last }) => page >= first && page <= last);
}

/** Sorts ranges and joins those that overlap or touch. */
function joinRanges(ranges: readonly PageRange[]): PageRange[] {
  const joined: PageRange[] = [];
  for (const { first, last } of [...ranges].sort((a, b) => a.first - b.first)) {
    const before = joined.at(-1);
    if (before !== undefined && first <= before.last + 1) before.last = Math.max(before.last, last);
    else joined.push({ first, last });
  }
  return joined;
}
