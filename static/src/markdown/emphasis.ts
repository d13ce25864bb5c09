/**
 * Emphasis by CommonMark's delimiter algorithm, with three differences: scripts that are written without spaces may
 * touch it, `~~` strikes while a single `~` is always text (`10~20`), and signs between digits are text (`2*3*4`).
 *
 * @see https://spec.commonmark.org/0.31.2/#phase-2-inline-structure
 * @see https://github.com/tats-u/markdown-cjk-friendly/blob/main/specification.md
 */
import type { MarkedExtension, Token, Tokens } from "marked";

/** A run of `*`, `_` or `~`, before `pairDelimiters` makes emphasis or text of it. */
interface DelimiterToken {
  type: "delimiters";
  raw: string;
}

const RUN = /^(?:\*+|_+|~+)/;

/** Lets marked find runs of delimiters. `pairDelimiters` has to follow. */
export function delimiterExtension(): MarkedExtension {
  return {
    extensions: [{
      name: "delimiters",
      level: "inline",
      tokenizer(source) {
        const match = RUN.exec(source);
        return match ? { type: "delimiters", raw: match[0] } satisfies DelimiterToken : undefined;
      },
    }],
  };
}

const DIGIT = /^\p{Nd}$/u;
const SPACE = /^\s$/u;
const PUNCTUATION = /^[\p{P}\p{S}]$/u;
/**
 * Letters and punctuation of scripts that put no space between words. Thai, Lao, Khmer and Burmese are added to the
 * specification's Chinese, Japanese and Korean, for the same reason.
 */
const UNSPACED =
  /^[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Bopo}\p{scx=Yiii}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\u3000-\u303f\ufe10-\ufe1f\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]$/u;

/** A run that may still open. */
interface Opener {
  character: string;
  /** Delimiters that are not used yet, and all of the run. */
  left: number;
  length: number;
  canClose: boolean;
  /** Its position in the result. */
  at: number;
}

/** Replaces the runs of delimiters in inline tokens by emphasis and text, in place and in linear time. */
export function pairDelimiters(tokens: Token[]): void {
  if (!tokens.some(({ type }) => type === "delimiters")) return;
  const result: Token[] = [];
  let openers: Opener[] = [];
  /** Below these positions among the openers there is none for a closer of this kind. */
  const bottoms = new Map<string, number>();
  for (const [index, token] of tokens.entries()) {
    if (token.type !== "delimiters") {
      result.push(token);
      continue;
    }
    const character = token.raw[0]!;
    const length = token.raw.length;
    const { canOpen, canClose } = flanking(character, lastOf(tokens[index - 1]), firstOf(tokens[index + 1]));
    if (character === "~" && length !== 2) {
      result.push(textOf(token.raw));
      continue;
    }
    let left = length;
    while (canClose && left > 0) {
      const kind = `${character}${canOpen}${length % 3}`;
      const bottom = bottoms.get(kind) ?? 0;
      let at = openers.length - 1;
      while (at >= bottom && !canPair(openers[at]!, character, length, canOpen)) at--;
      if (at < bottom) {
        bottoms.set(kind, openers.length);
        break;
      }
      const opener = openers[at]!;
      const used = Math.min(opener.left, left, 2);
      openers = openers.slice(0, at + 1);
      for (const [other, position] of bottoms) if (position > at) bottoms.set(other, at);
      const content = result.splice(opener.at + 1);
      const mark = character.repeat(used);
      opener.left -= used;
      left -= used;
      if (opener.left === 0) {
        openers.pop();
        result.pop();
      } else result[opener.at] = textOf(character.repeat(opener.left));
      result.push(emphasisOf(mark, content));
    }
    if (left === 0) continue;
    result.push(textOf(character.repeat(left)));
    if (canOpen) openers.push({ character, left, length, canClose, at: result.length - 1 });
  }
  tokens.splice(0, tokens.length, ...result);
}

/** Rules 9 and 10: a run that both opens and closes pairs only if the lengths don't add up to a multiple of 3. */
function canPair(opener: Opener, character: string, length: number, canOpen: boolean): boolean {
  if (opener.character !== character) return false;
  return !((opener.canClose || canOpen) && (opener.length + length) % 3 === 0 && length % 3 !== 0);
}

function flanking(character: string, before: string, after: string): { canOpen: boolean; canClose: boolean } {
  // Arithmetic: 2*3*4.
  if (DIGIT.test(before) && DIGIT.test(after)) return { canOpen: false, canClose: false };
  const isLeft = !isSpace(after) && (!isForeignPunctuation(after) || isSpace(before) || isBorder(before));
  const isRight = !isSpace(before) && (!isForeignPunctuation(before) || isSpace(after) || isBorder(after));
  if (character !== "_") return { canOpen: isLeft, canClose: isRight };
  return {
    canOpen: isLeft && (!isRight || PUNCTUATION.test(before)),
    canClose: isRight && (!isLeft || PUNCTUATION.test(after)),
  };
}

/** Start and end of the text count as white space. */
const isSpace = (character: string) => character === "" || SPACE.test(character);
const isForeignPunctuation = (character: string) => PUNCTUATION.test(character) && !UNSPACED.test(character);
const isBorder = (character: string) => PUNCTUATION.test(character) || UNSPACED.test(character);

/** Variation selectors belong to the character before them. */
const SELECTOR = /[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]+$/u;

function lastOf(token: Token | undefined): string {
  return [...(token?.raw ?? "").slice(-8).replace(SELECTOR, "")].at(-1) ?? "";
}

function firstOf(token: Token | undefined): string {
  return String.fromCodePoint(...[token?.raw.codePointAt(0) ?? []].flat());
}

function textOf(raw: string): Tokens.Text {
  return { type: "text", raw, text: raw, escaped: false };
}

function emphasisOf(mark: string, tokens: Token[]): Tokens.Em | Tokens.Strong | Tokens.Del {
  const text = tokens.map(({ raw }) => raw).join("");
  const type = mark.startsWith("~") ? "del" : mark.length === 2 ? "strong" : "em";
  return { type, raw: `${mark}${text}${mark}`, text, tokens };
}
