/** marked's lexer with limits: nesting, length of a paragraph, and time between tokens. */
import { Lexer, type MarkedExtension, type Token, type TokensList } from "marked";
import {
  MAX_COLUMNS,
  MAX_DEPTH,
  MAX_INLINE_LENGTH,
  MAX_RULE_LENGTH,
  MAX_TEXT_LENGTH,
  RenderLimitError,
} from "./limits.ts";

/** Parses Markdown into tokens. It checks nesting before each level, so it never recurses deeper than the limit. */
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
      return super.inlineTokens(source, tokens);
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
const CONTAINERS = new Set(["blockquote", "list", "table", "strong", "em", "del", "link", "image", "footnote"]);

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
