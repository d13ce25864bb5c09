/** Names of files in an import, which are only ever compared. */

/** Gives the name of a file without its folders. */
export function baseOf(path: string): string {
  return path.split("/").at(-1)!;
}

/** Gives the name of a file without its folders and ending. */
export function stemOf(path: string): string {
  return baseOf(path).replace(/\.[^.]*$/, "");
}

/** Gives the ending of a file without its dot; empty where there is none. */
export function endingOf(path: string): string {
  return /\.([^.]*)$/.exec(baseOf(path))?.[1] ?? "";
}
