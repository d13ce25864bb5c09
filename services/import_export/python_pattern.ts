/** Python's regular expressions and replacement templates, which edits of ChatGPT's canvases are written in. */

/** One edit of a text, as `re.finditer` finds it and `Match.expand` writes it. */
export interface PatternEdit {
  pattern: string;
  replacement: string;
  /** Replaces all matches instead of the first. */
  isMultiple: boolean;
}

/**
 * Applies an edit.
 *
 * @returns `undefined` if the pattern doesn't match, or has no counterpart in JavaScript.
 * @see https://docs.python.org/3/library/re.html#regular-expression-syntax
 */
export function applyPatternEdit(text: string, { pattern, replacement, isMultiple }: PatternEdit): string | undefined {
  const expression = translatePattern(pattern);
  const template = parseTemplate(replacement);
  if (expression === undefined || template === undefined) return undefined;
  let changed = "";
  let at = 0;
  let count = 0;
  for (const match of text.matchAll(expression)) {
    const expanded = expandTemplate(template, match);
    if (expanded === undefined) return undefined;
    changed += text.slice(at, match.index) + expanded;
    at = match.index + match[0].length;
    count++;
    if (!isMultiple) break;
  }
  return count === 0 ? undefined : changed + text.slice(at);
}

/** Translates a pattern; `undefined` if it's invalid or has no counterpart. */
function translatePattern(pattern: string): RegExp | undefined {
  try {
    const { source, isCaseless } = new Translator(pattern).translate();
    return new RegExp(source, isCaseless ? "giv" : "gv");
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** What Python's classes of characters hold in texts of Unicode. */
const WORD = String.raw`\p{L}\p{N}_`;
const DIGIT = String.raw`\p{Nd}`;
const SPACE = String.raw`\t-\r\x1c-\x20\x85\p{Z}`;
const CLASSES: Record<string, string> = {
  ...{ w: `[${WORD}]`, W: `[^${WORD}]`, d: `[${DIGIT}]`, D: `[^${DIGIT}]`, s: `[${SPACE}]`, S: `[^${SPACE}]` },
};
const START = String.raw`(?<![\s\S])`;
const END = String.raw`(?![\s\S])`;
const ASSERTIONS: Record<string, string> = {
  A: START,
  Z: END,
  b: `(?:(?<=[${WORD}])(?![${WORD}])|(?<![${WORD}])(?=[${WORD}]))`,
  B: `(?:(?<=[${WORD}])(?=[${WORD}])|(?<![${WORD}])(?![${WORD}]))`,
};
/** Escaped letters that stand for one character. */
const CONTROLS: Record<string, number> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13 };

/** Flags of a part of a pattern. Others have no counterpart. */
interface Flags {
  isMultiline: boolean;
  isDotAll: boolean;
  isVerbose: boolean;
}

class Translator {
  #at = 0;
  #flags: Flags = { isMultiline: false, isDotAll: false, isVerbose: false };
  readonly #outer: Flags[] = [];
  #isCaseless = false;

  constructor(readonly pattern: string) {}

  /** @throws {SyntaxError} */
  translate(): { source: string; isCaseless: boolean } {
    const flags = this.#take(/\(\?([a-zA-Z]+)\)/y);
    if (flags !== undefined) this.#isCaseless = this.#setFlags(flags[1]!);
    let source = "";
    while (this.#at < this.pattern.length) source += this.#translateNext();
    return { source, isCaseless: this.#isCaseless };
  }

  #take(expression: RegExp): RegExpExecArray | undefined {
    expression.lastIndex = this.#at;
    const match = expression.exec(this.pattern) ?? undefined;
    if (match !== undefined) this.#at = expression.lastIndex;
    return match;
  }

  /** Reads one character. */
  #next(): string {
    const code = this.pattern.codePointAt(this.#at);
    if (code === undefined) throw new SyntaxError("The pattern ends too early");
    const character = String.fromCodePoint(code);
    this.#at += character.length;
    return character;
  }

  /** Sets flags, and returns whether case is ignored. */
  #setFlags(flags: string): boolean {
    if (/[^imsux]/.test(flags)) throw new SyntaxError("A flag has no counterpart");
    this.#flags = {
      isMultiline: this.#flags.isMultiline || flags.includes("m"),
      isDotAll: this.#flags.isDotAll || flags.includes("s"),
      isVerbose: this.#flags.isVerbose || flags.includes("x"),
    };
    return flags.includes("i");
  }

  #translateNext(): string {
    const { isMultiline, isDotAll, isVerbose } = this.#flags;
    if (isVerbose && this.#take(/\s+|#[^\n]*/y) !== undefined) return "";
    const repeat = this.#take(/\{(\d*)(,?)(\d*)\}|[*+?]/y);
    if (repeat !== undefined) return this.#translateRepeat(repeat);
    const character = this.#next();
    switch (character) {
      case ".":
        return isDotAll ? String.raw`[\s\S]` : String.raw`[^\n]`;
      case "^":
        return isMultiline ? String.raw`(?<![^\n])` : START;
      case "$":
        return isMultiline ? String.raw`(?![^\n])` : String.raw`(?=\n?${END})`;
      case "|":
        return "|";
      case "(":
        return this.#openGroup();
      case ")": {
        const outer = this.#outer.pop();
        if (outer === undefined) throw new SyntaxError("A parenthesis is never opened");
        this.#flags = outer;
        return ")";
      }
      case "[":
        return this.#translateClass();
      case "\\":
        return this.#translateEscape();
      default:
        return escapeCode(character.codePointAt(0)!);
    }
  }

  #translateRepeat([whole, least = "", comma = "", most = ""]: RegExpExecArray): string {
    // Without numbers, braces are text.
    if (whole.startsWith("{") && least === "" && most === "") {
      return Array.from(whole, (character) => escapeCode(character.charCodeAt(0))).join("");
    }
    if (this.pattern[this.#at] === "+") throw new SyntaxError("Possessive quantifiers have no counterpart");
    const isLazy = this.#take(/\?/y) !== undefined;
    return (whole.startsWith("{") ? `{${least || "0"}${comma}${most}}` : whole) + (isLazy ? "?" : "");
  }

  #openGroup(): string {
    if (this.#take(/\?#[^)]*\)/y) !== undefined) return "";
    const reference = this.#take(/\?P=(\w+)\)/y);
    if (reference !== undefined) return `\\k<${reference[1]}>`;
    this.#outer.push(this.#flags);
    const named = this.#take(/\?P<(\w+)>/y);
    if (named !== undefined) return `(?<${named[1]}>`;
    const kind = this.#take(/\?(?::|=|!|<=|<!)/y);
    if (kind !== undefined) return `(${kind[0]}`;
    const flags = this.#take(/\?([a-z]+):/y);
    if (flags !== undefined) return this.#setFlags(flags[1]!) ? "(?i:" : "(?:";
    if (this.pattern[this.#at] === "?") throw new SyntaxError("A kind of group has no counterpart");
    return "(";
  }

  #translateEscape(): string {
    const octal = this.#take(/0[0-7]{0,2}|[1-3][0-7]{2}/y);
    if (octal !== undefined) return escapeCode(Number.parseInt(octal[0], 8));
    const reference = this.#take(/[1-9]\d?/y);
    // The group keeps a digit after it apart.
    if (reference !== undefined) return `(?:\\${reference[0]})`;
    const character = this.#next();
    const translated = getOwnText(CLASSES, character) ?? getOwnText(ASSERTIONS, character);
    return translated ?? escapeCode(this.#parseCharacter(character));
  }

  /** Returns the code of an escaped character. @throws {SyntaxError} if Python doesn't know it either */
  #parseCharacter(character: string): number {
    const digits = this.#take(
      character === "x"
        ? /[\da-f]{2}/iy
        : character === "u"
        ? /[\da-f]{4}/iy
        : character === "U"
        ? /[\da-f]{8}/iy
        : /(?!)/y,
    );
    if (digits !== undefined) return Number.parseInt(digits[0], 16);
    const code = Object.hasOwn(CONTROLS, character) ? CONTROLS[character] : undefined;
    if (code !== undefined) return code;
    if (/[a-z\d]/i.test(character)) throw new SyntaxError("An escaped letter has no meaning");
    return character.codePointAt(0)!;
  }

  #translateClass(): string {
    const isNegated = this.#take(/\^/y) !== undefined;
    const items: string[] = [];
    for (let isFirst = true; isFirst || this.pattern[this.#at] !== "]"; isFirst = false) {
      const start = this.#parseClassItem();
      const isRange = this.#take(/-(?!\])/y) !== undefined;
      if (!isRange) {
        items.push(typeof start === "string" ? start : escapeCode(start));
        continue;
      }
      const end = this.#parseClassItem();
      if (typeof start === "string" || typeof end === "string") throw new SyntaxError("A range has no start or end");
      items.push(`${escapeCode(start)}-${escapeCode(end)}`);
    }
    this.#at++;
    return `[${isNegated ? "^" : ""}${items.join("")}]`;
  }

  /** Returns the code of a character, or the source of a class such as `\w`. */
  #parseClassItem(): number | string {
    const character = this.#next();
    if (character !== "\\") return character.codePointAt(0)!;
    const octal = this.#take(/[0-7]{1,3}/y);
    if (octal !== undefined) return Number.parseInt(octal[0], 8);
    const escaped = this.#next();
    return getOwnText(CLASSES, escaped) ?? this.#parseCharacter(escaped);
  }
}

function getOwnText(texts: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(texts, key) ? texts[key] : undefined;
}

/** Writes a character so that it has no other meaning. */
function escapeCode(code: number): string {
  const character = String.fromCodePoint(code);
  return /[a-z\d]/i.test(character) ? character : `\\u{${code.toString(16)}}`;
}

/** A template: texts, and references to groups by name or number. */
type Template = (string | { group: string })[];

/** Parses a replacement; `undefined` if Python refuses it. */
function parseTemplate(replacement: string): Template | undefined {
  const template: Template = [];
  const token = /\\(?:g<(\w+)>|(0[0-7]{0,2}|[1-3][0-7]{2})|([1-9]\d?)|([^]))|[^\\]+|\\$/gu;
  for (const [whole, name, octal, number, escaped] of replacement.matchAll(token)) {
    const group = name ?? number;
    if (group !== undefined) template.push({ group });
    else if (octal !== undefined) template.push(String.fromCharCode(Number.parseInt(octal, 8) & 0xff));
    else if (escaped === undefined) {
      if (whole === "\\") return undefined;
      template.push(whole);
    } else if (escaped === "\\") template.push("\\");
    else if (Object.hasOwn(CONTROLS, escaped)) template.push(String.fromCharCode(CONTROLS[escaped]!));
    else if (/[a-z]/i.test(escaped)) return undefined;
    else template.push(whole);
  }
  return template;
}

/** Returns the text for a match; `undefined` if it has no such group. */
function expandTemplate(template: Template, match: RegExpMatchArray): string | undefined {
  let text = "";
  for (const part of template) {
    if (typeof part === "string") text += part;
    else if (/^\d+$/.test(part.group)) {
      if (Number(part.group) >= match.length) return undefined;
      text += match[Number(part.group)] ?? "";
    } else {
      if (match.groups === undefined || !Object.hasOwn(match.groups, part.group)) return undefined;
      text += match.groups[part.group] ?? "";
    }
  }
  return text;
}
