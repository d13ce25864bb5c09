/** Reads JSON that is still being streamed, or that a model wrote with mistakes. Never throws. */

type Value = string | number | boolean | null | Value[] | { [key: string]: Value };

/** An object, as far as it was received. */
export type PartialObject = { [key: string]: Value };

/** Maximum nesting. Deeper values are dropped; no card is nested deeper. */
const MAX_DEPTH = 32;

const ESCAPES: Record<string, string> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" };

/**
 * Finds the first object in a text and reads it, even inside a code fence or after other text.
 *
 * Unescaped line breaks and quotation marks inside a string are accepted if no other interpretation makes sense.
 *
 * @returns `undefined` if the text has no object.
 */
export function readPartialObject(text: string): PartialObject | undefined {
  // `{{char}}` isn't an object.
  const start = text.search(/(?<!\{)\{(?!\{)\s*(?:"|$)/);
  return start < 0 ? undefined : new Reader(text, start).object(0);
}

class Reader {
  readonly #text: string;
  #at: number;

  constructor(text: string, at: number) {
    this.#text = text;
    this.#at = at;
  }

  object(depth: number): PartialObject {
    const found: PartialObject = Object.create(null);
    this.#at++;
    while (this.#next() === '"') {
      const { text: key, isWhole } = this.#string();
      if (!isWhole || this.#next() !== ":") break;
      this.#at++;
      const value = this.#value(depth + 1);
      if (value !== undefined) found[key] = value;
      if (this.#next() === ",") this.#at++;
    }
    if (this.#next() === "}") this.#at++;
    return found;
  }

  #array(depth: number): Value[] {
    const found: Value[] = [];
    this.#at++;
    for (let next = this.#next(); next !== "" && next !== "]"; next = this.#next()) {
      const before = this.#at;
      const value = this.#value(depth + 1);
      if (value !== undefined) found.push(value);
      if (this.#next() === ",") this.#at++;
      if (this.#at === before) break;
    }
    if (this.#next() === "]") this.#at++;
    return found;
  }

  #value(depth: number): Value | undefined {
    const next = this.#next();
    if (next === '"') return this.#string().text;
    if (next === "{" || next === "[") {
      if (depth > MAX_DEPTH) {
        this.#at = this.#text.length;
        return undefined;
      }
      return next === "{" ? this.object(depth) : this.#array(depth);
    }
    const word = /[^\s,\]}"]*/y;
    word.lastIndex = this.#at;
    const found = word.exec(this.#text)![0];
    this.#at += found.length;
    if (found === "true" || found === "false") return found === "true";
    const number = found === "" ? Number.NaN : Number(found);
    return Number.isNaN(number) ? undefined : number;
  }

  #string(): { text: string; isWhole: boolean } {
    const text = this.#text;
    let read = "";
    for (let at = this.#at + 1; at < text.length; at++) {
      const letter = text[at]!;
      if (letter === "\\") {
        const { decoded, length } = escapeAt(text, at);
        read += decoded;
        at += length - 1;
      } else if (letter === '"' && isTextEnd(text, at + 1)) {
        this.#at = at + 1;
        return { text: read, isWhole: true };
      } else read += letter;
    }
    this.#at = text.length;
    return { text: read, isWhole: false };
  }

  /** Returns the next character after white space; `""` at the end. */
  #next(): string {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at++;
    return this.#text[this.#at] ?? "";
  }
}

/** Decodes an escape. An incomplete one yields nothing yet, an unknown one its letter. */
function escapeAt(text: string, at: number): { decoded: string; length: number } {
  const letter = text[at + 1];
  if (letter === undefined) return { decoded: "", length: 1 };
  if (letter !== "u") return { decoded: ESCAPES[letter] ?? letter, length: 2 };
  const digits = text.slice(at + 2, at + 6);
  if (/^[0-9a-f]{4}$/i.test(digits)) {
    const code = Number.parseInt(digits, 16);
    // Wait for the second half of the surrogate pair.
    const isFirstHalf = code >= 0xd800 && code < 0xdc00 && at + 6 >= text.length;
    return { decoded: isFirstHalf ? "" : String.fromCharCode(code), length: 6 };
  }
  return { decoded: "", length: at + 6 > text.length ? text.length - at : 2 };
}

/** Reports whether a quotation mark ends a string: only if valid JSON follows. */
function isTextEnd(text: string, at: number): boolean {
  return /^\s*(?:$|[}\]:]|,\s*(?:$|["}\]{[]))/.test(text.slice(at, at + 200));
}
