/** Values of variables. All are texts; texts that are numbers or JSON lists are used as such, as SillyTavern does. */

/** Longest text that is read as a number. */
const MAX_NUMBER_CHARS = 40;

/** Returns the key of a variable. Those of a chat and global ones may have the same name. */
export function getVariableKey(name: string, isGlobal = false): string {
  return `${isGlobal ? "global" : ""} ${name}`;
}

/** Returns the number in a text; NaN for other texts, 0 for an empty one. */
export function parseNumber(text: string): number {
  return text.length > MAX_NUMBER_CHARS ? NaN : Number(text);
}

/** Returns the text of a value. Numbers lose zeros that don't count: `"007"` is `"7"`. */
export function readValue(value: string | undefined): string {
  if (value === undefined || value.trim() === "") return value ?? "";
  const number = parseNumber(value);
  return Number.isNaN(number) ? value : String(number);
}

/** Adds numbers, appends to JSON lists, and concatenates other texts. */
export function addValue(known: string, value: string | number): string {
  const list = parseJson(known);
  if (Array.isArray(list)) return JSON.stringify([...list, value]);
  const [a, b] = [parseNumber(known), parseNumber(String(value))];
  return Number.isNaN(a) || Number.isNaN(b) ? (isZero(known) ? "" : known) + value : String(a + b);
}

/** Returns an item of a JSON list or object: nothing if there is none, the whole value if it isn't JSON. */
export function readItem(value: string | undefined, key: string): string {
  const items = parseJson(value ?? "");
  if (items === undefined || items === null) return readValue(value);
  const item = (items as Record<string, unknown>)[toIndex(key)];
  if (item === undefined || !Object.hasOwn(Object(items), toIndex(key))) return "";
  return readValue(typeof item === "object" ? JSON.stringify(item) : String(item));
}

/** Sets an item. A missing list or object is created, depending on the key. @returns `undefined` for another value. */
export function setItem(value: string | undefined, key: string, item: string): string | undefined {
  const items = value === undefined ? (Number.isNaN(Number(key)) ? {} : []) : parseJson(value);
  if (typeof items !== "object" || items === null) return undefined;
  if (Array.isArray(items)) {
    const index = Number(key);
    // A sparse list of a million items would be written out.
    if (!Number.isInteger(index) || index < 0 || index > items.length + MAX_GAP) return undefined;
    return JSON.stringify(Object.assign([...items], { [index]: item }));
  }
  return JSON.stringify({ ...items, [toIndex(key)]: item });
}

/** Most empty places before a new item. */
const MAX_GAP = 1_000;

function toIndex(key: string): string {
  const index = Number(key);
  return Number.isNaN(index) ? key : String(index);
}

function isZero(text: string): boolean {
  return parseNumber(text) === 0;
}

/** @returns `undefined` for another text. */
function parseJson(text: string): unknown {
  if (!/^\s*[[{"\-\dtfn]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
