/** Keys of lorebook entries: what one looks for, and whether a text holds it. Pure; used on both sides of the matcher's Worker. */
import { normalized } from "../json/unicode.ts";

/** What is looked for. */
export interface ScanKey {
  /** As its author wrote it. */
  text: string;
  isCaseSensitive: boolean;
  /** Counts only between characters that are none of a word; has no meaning for a key of several words. */
  isWholeWord: boolean;
  /** The pattern it stands for; absent for plain text. */
  pattern?: { source: string; flags: string };
}

/** How a search ended. */
export type KeyFinding = "hit" | "miss" | "invalid" | "too_slow";

/** Longest pattern that is tried, in characters. */
const MAX_PATTERN = 2_000;

/**
 * Reads the form `/pattern/flags`, which SillyTavern gives to keys that are regular expressions.
 *
 * @returns `undefined` for plain text. A slash inside the pattern has to be escaped, as in a program.
 */
export function patternOf(key: string): { source: string; flags: string } | undefined {
  const match = /^\/(.+)\/([a-z]*)$/s.exec(key.trim());
  if (match === null) return undefined;
  // A longer one is never compiled. Looking for the end of each bracket in it would take its length squared.
  const isShort = match[1]!.length <= MAX_PATTERN;
  if (isShort && /(?<!\\)(?:\\\\)*\//.test(match[1]!.replace(/\[(?:[^\]\\]|\\.)*\]/g, ""))) return undefined;
  return /^[gimsuyvd]*$/.test(match[2]!) ? { source: match[1]!, flags: match[2]! } : undefined;
}

/** Compiles a pattern. @returns `undefined` for one that is invalid or longer than 2,000 characters. */
export function compiled(pattern: { source: string; flags: string }): RegExp | undefined {
  if (pattern.source.length > MAX_PATTERN) return undefined;
  try {
    // Global and sticky ones remember where they stopped, which says nothing about another text.
    return new RegExp(pattern.source, pattern.flags.replace(/[gyd]/g, ""));
  } catch {
    return undefined;
  }
}

/** A text and its folded form, which is made once. */
export class ScanText {
  readonly plain: string;
  #folded: string | undefined;

  constructor(text: string) {
    this.plain = normalized(text, "NFC");
  }

  /** Without differences of case. */
  get folded(): string {
    return this.#folded ??= this.plain.toLowerCase();
  }
}

/** Says whether a text holds a key that is plain text. */
export function holdsPlain(text: ScanText, { text: key, isCaseSensitive, isWholeWord }: ScanKey): boolean {
  const wanted = normalized(key, "NFC").trim();
  if (wanted === "") return false;
  const within = isCaseSensitive ? text.plain : text.folded;
  const sought = isCaseSensitive ? wanted : wanted.toLowerCase();
  if (!isWholeWord || /\s/.test(sought)) return within.includes(sought);
  for (let at = within.indexOf(sought); at >= 0; at = within.indexOf(sought, at + 1)) {
    if (isApart(within, at, at + sought.length)) return true;
  }
  return false;
}

/** Letters and digits of scripts that set spaces between words; Chinese, Japanese and Thai do not. */
const WORD = /^(?![\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}])[\p{L}\p{N}\p{M}_]/u;

const IS_ASCII_WORD = Array.from({ length: 128 }, (_, code) => /\w/.test(String.fromCharCode(code)));

function isApart(text: string, begin: number, end: number): boolean {
  return !(isWord(before(text, begin)) && isWord(after(text, begin))) &&
    !(isWord(before(text, end)) && isWord(after(text, end)));
}

function isWord(character: string): boolean {
  const code = character.charCodeAt(0);
  // A key of one letter may be found in every place of a long text.
  if (code < 128) return IS_ASCII_WORD[code]!;
  return WORD.test(character);
}

function before(text: string, at: number): string {
  const isPair = at > 1 && /[\uDC00-\uDFFF]/.test(text[at - 1]!);
  return text.slice(isPair ? at - 2 : at - 1 < 0 ? 0 : at - 1, at);
}

function after(text: string, at: number): string {
  return text.slice(at, at + 2);
}
