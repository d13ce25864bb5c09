/** Path helpers for files of an import. Paths are only compared, never opened. */

/** Returns the file name without folders. */
export function baseOf(path: string): string {
  return path.split("/").at(-1)!;
}

/** Returns the file name without folders and extension. */
export function stemOf(path: string): string {
  return baseOf(path).replace(/\.[^.]*$/, "");
}

/** Returns the extension without its dot; empty if there is none. */
export function endingOf(path: string): string {
  return /\.([^.]*)$/.exec(baseOf(path))?.[1] ?? "";
}
