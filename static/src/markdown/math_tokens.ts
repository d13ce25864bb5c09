/** Finds formulas in Markdown: `$…$`, `$$…$$`, `\(…\)`, `\[…\]`. math.ts renders them. */
import type { MarkedExtension, Token, TokenizerExtension, Tokens } from "marked";

/** A formula token. */
export interface MathToken extends Tokens.Generic {
  type: "maths";
  /** The text between the delimiters. */
  text: string;
  isDisplay: boolean;
}

/** Longest formula, in UTF-16 code units. Delimiters further apart are not a pair. */
const MAX = 4000;

/**
 * The rest of a line that does not start a blank line, so that a lone delimiter reaches no further than its paragraph.
 */
const INSIDE = String.raw`(?:(?!\n[ \t]*\n)[^])`;
const BLOCK = new RegExp(
  String.raw`^ {0,3}(?:\$\$(${INSIDE}{1,${MAX}}?)\$\$|\\\[(${INSIDE}{1,${MAX}}?)\\\])[ \t]*(?:\n+|$)`,
);
/** A formula without its end delimiter. Until that arrives, it is neither a list nor a heading. */
const OPEN_BLOCK = new RegExp(String.raw`^ {0,3}(?:\$\$|\\\[)[ \t]*(?:\n${INSIDE}{0,${MAX}})?$`);
/** Searches only to the end of the paragraph; otherwise a text of many paragraphs takes quadratic time. */
const BLOCK_START = /\n(?: {0,3}(?:\$\$|\\\[)|[ \t]*\n)/;

const INLINE: readonly [mark: RegExp, isDisplay: boolean][] = [
  [new RegExp(String.raw`^\$\$(${INSIDE}{1,${MAX}}?)\$\$`), true],
  // As in pandoc, so that prices don't match: no space inside the delimiters, no digit after them.
  [new RegExp(String.raw`^\$(?![\s$])((?:\\.|[^\\$\n]){1,${MAX}}?)(?<!\s)\$(?![\d$])`), false],
  [new RegExp(String.raw`^\\\((${INSIDE}{1,${MAX}}?)\\\)`), false],
  [new RegExp(String.raw`^\\\[(${INSIDE}{1,${MAX}}?)\\\]`), true],
];
/** Searches only to the next character at which marked ends a text token, for the same reason. */
const INLINE_START = /\$|\\[([]|[\\<!`*[]/;

const block: TokenizerExtension = {
  name: "maths",
  level: "block",
  start: (source) => findStart(BLOCK_START.exec(source)),
  tokenizer(source): MathToken | undefined {
    const match = BLOCK.exec(source);
    if (match) return createToken(match[0], match[1] ?? match[2] ?? "", true);
    return undefined;
  },
};

/** Shown as the text it is, without a meaning in markdown. */
const openBlock: TokenizerExtension = {
  name: "text",
  level: "block",
  tokenizer(source): Tokens.Text | undefined {
    const match = OPEN_BLOCK.exec(source);
    return match ? { type: "text", raw: match[0], text: match[0], escaped: false } : undefined;
  },
};

const inline: TokenizerExtension = {
  name: "maths",
  level: "inline",
  start: (source) => findStart(INLINE_START.exec(source)),
  tokenizer(source): MathToken | undefined {
    for (const [mark, isDisplay] of INLINE) {
      const match = mark.exec(source);
      if (match) return createToken(match[0], match[1]!, isDisplay);
    }
    return undefined;
  },
};

/** Where a formula begins, unless the search ended at something else. */
function findStart(match: RegExpExecArray | null): number | undefined {
  return match && /\$|\\[([]/.test(match[0]) ? match.index : undefined;
}

function createToken(raw: string, text: string, isDisplay: boolean): MathToken {
  return { type: "maths", raw, text: text.trim(), isDisplay };
}

/** Lets marked find formulas; `render` makes HTML of one. */
export function mathExtension(render: (token: MathToken) => string): MarkedExtension {
  return {
    extensions: [
      block,
      openBlock,
      inline,
      { name: "maths", renderer: (token) => isMath(token) ? render(token) : false },
    ],
  };
}

function isMath(token: Token): token is MathToken {
  return token.type === "maths";
}
