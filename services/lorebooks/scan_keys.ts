/** Keys of lorebook entries and how they match. Used on both sides of the Worker. */
import { normalized } from "../json/text.ts";

/** A key. */
export interface ScanKey {
  /** As written by the author. */
  text: string;
  isCaseSensitive: boolean;
  /** Only matches between non-word characters. Ignored for keys of several words. */
  isWholeWord: boolean;
  /** The regular expression; absent for plain keys. */
  pattern?: { source: string; flags: string };
}

/** Result of matching a key. */
export type KeyFinding = "hit" | "miss" | "invalid" | "too_slow";

/** Maximum length of a pattern, in characters. */
const MAX_PATTERN_CHARS = 2_000;

/**
 * Parses `/pattern/flags`, SillyTavern's form of regular expressions.
 *
 * @returns `undefined` for plain text. Slashes inside the pattern must be escaped.
 */
export function parsePattern(key: string): { source: string; flags: string } | undefined {
  const match = /^\/(.+)\/([a-z]*)$/s.exec(key.trim());
  if (match === null) return undefined;
  // Longer patterns are never compiled, and stripping brackets takes quadratic time.
  const isShort = match[1]!.length <= MAX_PATTERN_CHARS;
  if (isShort && /(?<!\\)(?:\\\\)*\//.test(match[1]!.replace(/\[(?:[^\]\\]|\\.)*\]/g, ""))) return undefined;
  return /^[gimsuyvd]*$/.test(match[2]!) ? { source: match[1]!, flags: match[2]! } : undefined;
}

/** Compiles a pattern. @returns `undefined` if it's invalid or longer than 2,000 characters. */
export function compilePattern(pattern: { source: string; flags: string }): RegExp | undefined {
  if (pattern.source.length > MAX_PATTERN_CHARS) return undefined;
  try {
    // Global and sticky expressions keep state between texts.
    return new RegExp(pattern.source, pattern.flags.replace(/[gyd]/g, ""));
  } catch {
    return undefined;
  }
}

/** A text with its lower-case form, which is computed once. */
export class ScanText {
  readonly plain: string;
  #folded: string | undefined;

  constructor(text: string) {
    this.plain = normalized(text, "NFC");
  }

  /** In lower case. */
  get folded(): string {
    return this.#folded ??= this.plain.toLowerCase();
  }
}

/** Reports whether a text contains a plain key. */
export function containsKey(text: ScanText, { text: key, isCaseSensitive, isWholeWord }: ScanKey): boolean {
  const trimmedKey = normalized(key, "NFC").trim();
  if (trimmedKey === "") return false;
  const within = isCaseSensitive ? text.plain : text.folded;
  const sought = isCaseSensitive ? trimmedKey : trimmedKey.toLowerCase();
  if (!isWholeWord || /\s/.test(sought)) return within.includes(sought);
  for (let at = within.indexOf(sought); at >= 0; at = within.indexOf(sought, at + 1)) {
    if (isAtWordBoundaries(within, at, at + sought.length)) return true;
  }
  return false;
}

/** Word characters of scripts that use spaces. Chinese, Japanese and Thai don't. */
const WORD = /^(?![\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}])[\p{L}\p{N}\p{M}_]/u;

const IS_ASCII_WORD = Array.from({ length: 128 }, (_, code) => /\w/.test(String.fromCharCode(code)));

function isAtWordBoundaries(text: string, begin: number, end: number): boolean {
  return !(isWord(getCharBefore(text, begin)) && isWord(getCharsAfter(text, begin))) &&
    !(isWord(getCharBefore(text, end)) && isWord(getCharsAfter(text, end)));
}

function isWord(character: string): boolean {
  const code = character.charCodeAt(0);
  // Fast path: a one-letter key may occur everywhere in a long text.
  if (code < 128) return IS_ASCII_WORD[code]!;
  return WORD.test(character);
}

function getCharBefore(text: string, at: number): string {
  const isPair = at > 1 && /[\uDC00-\uDFFF]/.test(text[at - 1]!);
  return text.slice(isPair ? at - 2 : at - 1 < 0 ? 0 : at - 1, at);
}

function getCharsAfter(text: string, at: number): string {
  return text.slice(at, at + 2);
}
