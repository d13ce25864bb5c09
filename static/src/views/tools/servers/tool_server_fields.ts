/** What the form of a tool server makes of typed text. */

/** Splits a text into lines that aren't empty: arguments, one a line. */
export function splitLines(text: string): string[] {
  return text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
}

/**
 * Parses lines of a name and a value. A name without a value removes it.
 *
 * @param separator `"="` for variables, `":"` for headers.
 * @returns `undefined` if a line has no name or no separator.
 */
export function parseValues(text: string, separator: "=" | ":"): Record<string, string | null> | undefined {
  const values: Record<string, string | null> = {};
  for (const line of splitLines(text)) {
    const at = line.indexOf(separator);
    const name = line.slice(0, Math.max(at, 0)).trim();
    if (name === "") return undefined;
    const value = line.slice(at + 1).trim();
    values[name] = value === "" ? null : value;
  }
  return values;
}

/** Makes an id of a name, with a number if it is taken. `web` is the id of the built-in tools. */
export function toServerId(name: string, taken: readonly string[]): string {
  const base = name.toLowerCase().replace(/^https?:\/\//, "").replace(/[^a-z0-9_]+/g, "-").replace(/^-+|-+$/g, "")
    .slice(0, 40) || "server";
  const used = new Set([...taken, "web", "import"]);
  for (let n = 1;; n++) {
    const id = n === 1 ? base : `${base}-${n}`;
    if (!used.has(id)) return id;
  }
}
