/** What can be said of any parsed JSON that somebody else wrote, before anything of it is believed. */

/** An object of JSON. */
export type JsonObject = Record<string, unknown>;

/** Deeper than any card, lorebook or preset is; what walks through them need not fear the stack then. */
const MAX_DEPTH = 100;

/** Says whether a value is an object, and no list. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Gives why a value would not come out of JSON as it went in, looking level by level so that no depth meets the stack.
 *
 * @returns A half sentence about "it", or `undefined` where nothing is wrong.
 */
export function jsonFault(json: unknown): string | undefined {
  let level = [json];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return `it is nested deeper than ${MAX_DEPTH} levels`;
    const next: unknown[] = [];
    for (const value of level) {
      if (typeof value === "number" && !Number.isFinite(value)) return "it has a number beyond all bounds";
      if (typeof value !== "object" || value === null) continue;
      for (const item of Array.isArray(value) ? value : Object.values(value)) {
        if (typeof item === "object" || typeof item === "number") next.push(item);
      }
    }
    level = next;
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true }); // drops a byte-order mark

/** Parses the bytes of a file. @throws for what is no JSON in UTF-8 */
export function parseJsonBytes(bytes: Uint8Array): unknown {
  return JSON.parse(utf8.decode(bytes));
}

/** Gives a text for whatever stands where one belongs; none for objects. */
export function asText(value: unknown): string {
  if (typeof value === "string") return value;
  return value === null || value === undefined || typeof value === "object" ? "" : String(value);
}

/** Gives a list of texts; one text is a list with commas. */
export function asTexts(value: unknown): string[] {
  if (Array.isArray(value)) return value.map(asText);
  return typeof value === "string" ? value.split(",").map((item) => item.trim()).filter((item) => item !== "") : [];
}

/** Gives an object for whatever stands where one belongs; an empty one for anything else. */
export function asObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** Gives a number that can be counted with; numbers written as text are some too. */
export function asNumber(value: unknown): number | undefined {
  const number = typeof value === "string" ? Number.parseFloat(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}
