/** Type guards and lenient readers for parsed JSON from files and other servers. */

/** A JSON object. */
export type JsonObject = Record<string, unknown>;

/**
 * Nesting limit. No card, lorebook or preset is nested nearly as deeply, and recursive code can't overflow the stack
 * below it.
 */
const MAX_DEPTH = 100;

/** Reports whether a value is an object and not an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Reports whether a value is a string with at least one character. */
export function isNonEmptyString(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/**
 * Returns an own property of a table. The name is untrusted and may be that of a method of all objects ("constructor").
 */
export function getOwn<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/** Returns an object unchanged, and `{}` for anything else. */
export function asObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** Returns an array unchanged, and `[]` for anything else. */
export function asArray(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Reports whether a value says something: it isn't false, zero, `null` or empty. */
export function isFilled(value: unknown): boolean {
  return typeof value === "object" && value !== null ? Object.keys(value).length > 0 : Boolean(value);
}

/** Returns a string unchanged, and `undefined` for anything else. */
export function asString(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Converts a value to text: numbers and booleans as written in JSON, `""` for objects, arrays and `null`. */
export function asText(value: unknown): string {
  if (typeof value === "string") return value;
  return value === null || value === undefined || typeof value === "object" ? "" : String(value);
}

/** Converts a value to a list of texts. A string is split at commas. */
export function asTexts(value: unknown): string[] {
  if (Array.isArray(value)) return value.map(asText);
  return typeof value === "string" ? value.split(",").map((item) => item.trim()).filter((item) => item !== "") : [];
}

/** Converts a number or string to a finite number; `undefined` for anything else. */
export function asNumber(value: unknown): number | undefined {
  const number = typeof value === "string" ? Number.parseFloat(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}

/** Returns a field of an object; `undefined` for other values. */
export function readField(value: unknown, name: string): unknown {
  return asObject(value)[name];
}

const utf8 = new TextDecoder("utf-8", { fatal: true }); // Removes a byte order mark.

/** Parses JSON from UTF-8 bytes. @throws {TypeError | SyntaxError} if the bytes aren't UTF-8 or aren't JSON */
export function parseJsonBytes(bytes: Uint8Array): unknown {
  return JSON.parse(utf8.decode(bytes));
}

/**
 * Finds a reason why a value can't be stored as JSON: nested too deeply, or a number like `1e999`.
 *
 * Goes level by level instead of recursively, so that nesting can't overflow the stack.
 *
 * @returns A clause that starts with "it", or `undefined` if there is none.
 */
export function findJsonFault(json: unknown): string | undefined {
  let level = [json];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return `it is nested deeper than ${MAX_DEPTH} levels`;
    const next: unknown[] = [];
    for (const value of level) {
      if (typeof value === "number" && !Number.isFinite(value)) return "it contains a number that is too large";
      if (typeof value !== "object" || value === null) continue;
      for (const item of Array.isArray(value) ? value : Object.values(value)) {
        if (typeof item === "object" || typeof item === "number") next.push(item);
      }
    }
    level = next;
  }
}
