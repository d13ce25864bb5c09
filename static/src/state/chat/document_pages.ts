/** Lists of pages as people write them: `3-5, 12`. */

/** Highest page number; no document has more pages. */
const MAX_PAGE = 1_000_000;

/** Parses a list of pages. @returns The pages in order; undefined if the text isn't a list of pages up to `count`. */
export function parsePageList(text: string, count = MAX_PAGE): number[] | undefined {
  const pages = new Set<number>();
  for (const part of text.split(",").map((each) => each.trim()).filter((each) => each !== "")) {
    const match = /^(\d{1,7})(?:\s*[-–]\s*(\d{1,7}))?$/.exec(part);
    if (match === null) return undefined;
    const [first, last] = [Number(match[1]), Number(match[2] ?? match[1])];
    if (first < 1 || last < first || last > Math.min(count, MAX_PAGE)) return undefined;
    for (let page = first; page <= last; page++) pages.add(page);
  }
  return [...pages].sort((a, b) => a - b);
}

/** Formats pages as the API takes them: `3-5,12`. */
export function formatPageList(pages: readonly number[]): string {
  const ranges: [first: number, last: number][] = [];
  for (const page of [...new Set(pages)].sort((a, b) => a - b)) {
    const range = ranges.at(-1);
    if (range !== undefined && page === range[1] + 1) range[1] = page;
    else ranges.push([page, page]);
  }
  return ranges.map(([first, last]) => first === last ? `${first}` : `${first}-${last}`).join(",");
}

/** Returns a list of pages for readers: `3–5, 12`. */
export function showPageList(pages: string): string {
  return pages.replaceAll("-", "–").replaceAll(",", ", ");
}
