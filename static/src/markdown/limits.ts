/**
 * Limits of rendering one text.
 *
 * Strangers write messages and cards, so every step whose cost can outgrow the text checks one of these limits first. A
 * text over a limit is shown as plain text.
 */
import { pairDelimiters } from "./emphasis.ts";
import { Lexer, type MarkedExtension, type Token, type TokensList } from "marked";

/** Time for one message, all its blocks and formulas together, in milliseconds. */
export const MESSAGE_MS = 200;

/** Time for one update of a growing message, in milliseconds. After one that exceeds it, updates are unformatted. */
export const GROWING_MS = 100;

/** Levels of Markdown nesting. Parsers recurse, so this also limits the stack. */
export const MAX_DEPTH = 1000;

/**
 * Longest paragraph, heading, list item or cell, in UTF-16 code units. The inline grammar is quadratic in the worst
 * case.
 */
const MAX_INLINE_LENGTH = 100_000;

/** Longest line of asterisks that is a rule, in UTF-16 code units. A longer one is text. */
const MAX_RULE_LENGTH = 1000;

/** Longest text, in UTF-16 code units. */
export const MAX_TEXT_LENGTH = 2_000_000;

/** Most tags of one message before sanitizing. */
export const MAX_TAGS = 100_000;

/**
 * Most tags of one block, times those that come from HTML in the text, if it isn't well-formed. Parsers do much work
 * for each tag that others leave open: they search all open elements, and open formatting elements again in each
 * following block, so 100 kB can become 50 million elements.
 *
 * @see https://html.spec.whatwg.org/multipage/parsing.html#reconstruct-the-active-formatting-elements
 */
export const MAX_TAG_PRODUCT = 200_000;

/** Deepest nesting of well-formed HTML. Browsers flatten deeper nesting anyway. */
export const MAX_HTML_DEPTH = 500;

/** Most columns of a table. Browsers lay out wide tables in quadratic time. */
export const MAX_COLUMNS = 500;

/** Most attempts to render a message that ran out of time. */
export const MAX_TRIES = 10;

/**
 * Pauses before the next attempt, in milliseconds, after so many in a row that got no further. A machine that was busy
 * has time again later; a text that needs too much doesn't take all of it.
 */
export const RETRY_PAUSES_MS = [0, 0, 0, 1000, 4000, 15_000];

/** Why a text was not rendered. */
type LimitReason = "time" | "depth" | "length" | "tags" | "columns";

/** Thrown if a limit is exceeded. The text is then shown as plain text. */
export class RenderLimitError extends Error {
  constructor(readonly reason: LimitReason) {
    super(`Can't render the text: it is over the limit of ${reason}`);
    this.name = "RenderLimitError";
  }
}

/** The remaining time for one text. */
export class RenderBudget {
  readonly #now: () => number;
  readonly #deadline: number;

  /** @param now A clock in milliseconds; tests pass their own. */
  constructor(ms: number, now: () => number = () => performance.now()) {
    this.#now = now;
    this.#deadline = now() + ms;
  }

  /** Remaining milliseconds, never below zero. */
  get leftMs(): number {
    return Math.max(0, this.#deadline - this.#now());
  }

  /** @throws {RenderLimitError} `time` if no time is left. */
  check(): void {
    if (this.#now() > this.#deadline) throw new RenderLimitError("time");
  }
}

/** A budget without a limit. */
export const UNLIMITED = new RenderBudget(Infinity);

/**
 * marked's lexer with limits: nesting, length of a paragraph, and time between tokens. Parses Markdown into tokens. It
 * checks nesting before each level, so it never recurses deeper than the limit.
 */
export class BoundedLexer extends Lexer {
  #depth = 0;

  /** @throws {RenderLimitError} if the text exceeds a limit. */
  override lex(source: string) {
    if (source.length > MAX_TEXT_LENGTH) throw new RenderLimitError("length");
    return super.lex(source);
  }

  override blockTokens(source: string, tokens?: Token[], lastParagraphClipped?: boolean): Token[];
  override blockTokens(source: string, tokens?: TokensList, lastParagraphClipped?: boolean): TokensList;
  override blockTokens(source: string, tokens?: Token[], lastParagraphClipped?: boolean): Token[] {
    this.#enter();
    try {
      return super.blockTokens(source, tokens, lastParagraphClipped);
    } finally {
      this.#depth--;
    }
  }

  override inlineTokens(source: string, tokens?: Token[]): Token[] {
    if (source.length > MAX_INLINE_LENGTH) throw new RenderLimitError("length");
    this.#enter();
    try {
      const found = super.inlineTokens(source, tokens);
      pairDelimiters(found);
      return found;
    } finally {
      this.#depth--;
    }
  }

  #enter(): void {
    // The outermost call is not a level of nesting.
    if (this.#depth > MAX_DEPTH) throw new RenderLimitError("depth");
    this.#depth++;
  }
}

/**
 * Calls `check` before every token. marked tries the tokenizers of extensions first, so this one, which never matches,
 * runs between any two tokens. It must be registered last, since marked tries the latest first.
 */
export function clockExtension(check: () => void): MarkedExtension {
  const tokenizer = () => {
    check();
    return undefined;
  };
  return {
    extensions: [
      { name: "clock", level: "block", tokenizer },
      { name: "clock", level: "inline", tokenizer },
    ],
  };
}

/** Tokens that nest. Paragraphs, items and cells only occur inside them. */
const CONTAINERS = new Set([
  "blockquote",
  "list",
  "table",
  "strong",
  "em",
  "del",
  "link",
  "image",
  "footnote",
  "htmlSpan",
]);

/**
 * Checks a finished block before anything else recurses through it. Inline tokens are parsed separately from their
 * blocks, so only here do both nestings add up.
 *
 * @throws {RenderLimitError} `depth`, `columns` or `length`.
 */
export function checkToken(token: Token): void {
  const open: [token: Token, depth: number][] = [[token, 0]];
  for (let next = open.pop(); next; next = open.pop()) {
    const [{ type, raw, tokens, items, header, rows }, outer] = next as [Partial<Nested> & Token, number];
    const depth = CONTAINERS.has(type) ? outer + 1 : outer;
    if (depth > MAX_DEPTH) throw new RenderLimitError("depth");
    if (type === "hr" && raw.length > MAX_RULE_LENGTH) throw new RenderLimitError("length");
    if (header && header.length > MAX_COLUMNS) throw new RenderLimitError("columns");
    for (const child of tokens ?? []) open.push([child, depth]);
    for (const child of items ?? []) open.push([child, depth]);
    for (const row of header ? [header, ...rows ?? []] : []) {
      for (const cell of row) for (const child of cell.tokens) open.push([child, depth]);
    }
  }
}

/** Where tokens have child tokens: in general, in lists, in tables. */
interface Nested {
  tokens: Token[];
  items: Token[];
  header: { tokens: Token[] }[];
  rows: { tokens: Token[] }[][];
}
