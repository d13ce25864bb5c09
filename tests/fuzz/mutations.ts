/** Changes to valid samples that have broken parsers before: odd types and names, deep nesting, long runs, cut and copied bytes. */
import type { Random } from "./random.ts";

/** Maximum size of inputs, so that each takes milliseconds. */
export const MAX_INPUT_CHARS = 300_000;

/** Text with a special meaning in some format. */
const ODD_TEXTS = [
  ...["", " ", "\0", "\n", "\r\n", "\t", "\u2028", "\ufeff", "\ufffd", "\ud800", "\udc00\ud800", "e\u0301", "İ", "ß"],
  ...["__proto__", "constructor", "toString", "hasOwnProperty", "null", "undefined", "NaN", "-1", "1e999", "0x10"],
  ...["../../etc/passwd", "C:\\con", "data:image/png;base64,AAAA", "javascript:alert(1)", "https://far.example/x.png"],
  ...["<script>alert(1)</script>", "{{char}}", "{{", "}}", "@@depth 1\n", "@@@", "/(a+)+$/", "/[/", "$&", "%s", "%"],
  ...["2024-01-01T00:00:00Z", "9007199254740993", "🦊", "\u202e", '<details type="reasoning">', "data: [DONE]\n\n"],
];

const ODD_NUMBERS = [0, -0, 1, -1, 0.5, 1e-320, 2 ** 31, -(2 ** 31), 2 ** 32, 2 ** 53, 2 ** 53 + 2, 1e300, -1e300];

/** Returns a short text, an odd one, or a long run of either. */
export function oddText(random: Random, tokens: readonly string[] = ODD_TEXTS): string {
  const token = random.chance(0.8) ? random.pick(tokens) : random.pick(ODD_TEXTS);
  if (random.chance(0.6)) return token;
  return token.repeat(random.size(Math.ceil(MAX_INPUT_CHARS / Math.max(1, token.length) / 2)));
}

/** Builds a text of tokens, runs of tokens, and tokens inside each other. */
export function tokenText(random: Random, tokens: readonly string[], pairs: readonly [string, string][] = []): string {
  let text = "";
  for (let parts = random.size(40); parts > 0 && text.length < MAX_INPUT_CHARS; parts--) {
    const way = random.next();
    if (way < 0.7) text += random.pick(tokens);
    else if (way < 0.8) text += random.pick(tokens) + random.pick(tokens);
    else if (way < 0.88 || pairs.length === 0) text += repeated(random, tokens);
    else {
      const [open, close] = random.pick(pairs);
      const count = random.size(3_000);
      text += open.repeat(count) + random.pick(tokens) + (random.chance(0.7) ? close.repeat(count) : "");
    }
  }
  return text.slice(0, MAX_INPUT_CHARS);
}

function repeated(random: Random, tokens: readonly string[]): string {
  const run = random.list(1 + random.below(3), () => random.pick(tokens)).join("");
  return run.repeat(random.size(Math.floor(MAX_INPUT_CHARS / Math.max(1, run.length) / 4)));
}

/** Changes a text in a few places. */
export function mutateText(random: Random, text: string, tokens: readonly string[] = ODD_TEXTS): string {
  for (let changes = random.size(6); changes > 0; changes--) {
    const at = random.below(text.length + 1);
    const end = Math.min(text.length, at + random.size(100));
    const way = random.below(4);
    if (way === 0) text = text.slice(0, at) + text.slice(end);
    else if (way === 1) text = text.slice(0, at) + oddText(random, tokens) + text.slice(at);
    else if (way === 2) text = text.slice(0, end) + text.slice(at, end).repeat(random.size(20)) + text.slice(end);
    else text = text.slice(0, at) + random.pick(tokens) + text.slice(end);
  }
  return text.slice(0, MAX_INPUT_CHARS);
}

/** Changes bytes in a few places. */
export function mutateBytes(random: Random, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  let changed = Uint8Array.from(bytes);
  for (let changes = random.size(6); changes > 0; changes--) {
    const at = random.below(changed.length + 1);
    const end = Math.min(changed.length, at + random.size(64));
    const way = random.below(6);
    if (way === 0) changed = changed.slice(0, at);
    else if (way === 1) changed = joined(changed.subarray(0, at), changed.subarray(end));
    else if (way === 2) changed = joined(changed.subarray(0, end), changed.subarray(at, end), changed.subarray(end));
    else if (way === 3) changed.fill(random.pick([0, 0x20, 0x7f, 0xff]), at, end);
    else if (way === 4 && changed.length >= at + 4) {
      // A length or an offset, in either order of bytes.
      const value = random.pick([0, 1, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff, changed.length, random.below(2 ** 16)]);
      new DataView(changed.buffer).setUint32(at, value, random.chance(0.5));
    } else if (at < changed.length) changed[at] = random.below(256);
  }
  return changed;
}

/** Changes a JSON value in a few places. */
export function mutateJson(random: Random, json: unknown, tokens: readonly string[] = ODD_TEXTS): unknown {
  const root = { value: json };
  try {
    root.value = structuredClone(json);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return json; // An earlier change nested it deeper than it can be copied.
  }
  for (let changes = random.size(5); changes > 0; changes--) {
    const places = placesIn(root);
    const [parent, key] = random.pick(places);
    change(random, parent, key, tokens);
  }
  return root.value;
}

type Parent = Record<string, unknown>;

function placesIn(root: Parent): [Parent, string][] {
  const places: [Parent, string][] = [];
  const open: unknown[] = [root];
  while (open.length > 0 && places.length < 5_000) {
    const parent = open.pop();
    if (typeof parent !== "object" || parent === null) continue;
    for (const key of Object.keys(parent).slice(0, 200)) {
      places.push([parent as Parent, key]);
      open.push((parent as Parent)[key]);
    }
  }
  return places;
}

function change(random: Random, parent: Parent, key: string, tokens: readonly string[]): void {
  const value = parent[key];
  const way = random.below(10);
  if (way === 0 && key !== "value") delete parent[key];
  else if (way === 1) define(parent, random.pick(["__proto__", "constructor", "", "data", "entries", "name"]), value);
  else if (way === 2) define(parent, key, nested(random, value));
  else if (way === 3) define(parent, key, random.list(random.size(random.chance(0.05) ? 20_000 : 50), () => value));
  else if (way === 4) define(parent, key, { [random.pick(["0", "length", "__proto__", "type"])]: value });
  else if (way === 5 && typeof value === "string") define(parent, key, mutateText(random, value, tokens));
  else define(parent, key, oddValue(random, tokens));
}

/** Assignment would change the prototype where the name is `__proto__`; `JSON.parse` makes a member of it. */
function define(parent: Parent, key: string, value: unknown): void {
  Object.defineProperty(parent, key, { value, configurable: true, enumerable: true, writable: true });
}

function nested(random: Random, value: unknown): unknown {
  const isList = random.chance(0.5);
  for (let depth = random.size(random.chance(0.1) ? 5_000 : 150); depth > 0; depth--) {
    value = isList ? [value] : { data: value };
  }
  return value;
}

function oddValue(random: Random, tokens: readonly string[]): unknown {
  const way = random.below(6);
  if (way < 3) return oddText(random, tokens);
  return way === 3 ? random.pick(ODD_NUMBERS) : random.pick([null, true, false, [], {}, [[]], [null], [{}]]);
}

/** Returns JSON text of a value however deep it is nested, and now and then with numbers that JavaScript can't hold. */
export function jsonText(random: Random, value: unknown): string {
  let text: string;
  try {
    text = JSON.stringify(value) ?? "null";
  } catch {
    text = `${"[".repeat(5_000)}1${"]".repeat(5_000)}`; // deeper than the stack: at least as deep
  }
  return random.chance(0.03) ? text.replace(/\d+/, "1e999") : text;
}

/** Joins bytes. */
export function joined(...parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
