/**
 * What Parlor adds to Markdown's syntax: formulas (`$…$`, `$$…$$`, `\(…\)`, `\[…\]`) and footnotes (`[^1]` in the text,
 * `[^1]: …` at the start of a line).
 */
import type { MarkedExtension, RendererExtension, Token, TokenizerExtension, Tokens } from "marked";
import { escapeText } from "./html_tags.ts";

/** A formula token. math.ts renders it. */
export interface MathToken extends Tokens.Generic {
  type: "maths";
  /** The text between the delimiters. */
  text: string;
  isDisplay: boolean;
}

/** Longest formula, in UTF-16 code units. Delimiters further apart are not a pair. */
const MAX_FORMULA = 4000;

/**
 * The rest of a line that does not start a blank line, so that a lone delimiter reaches no further than its paragraph.
 */
const INSIDE = String.raw`(?:(?!\n[ \t]*\n)[^])`;
/** The same, up to the delimiter that ends the formula. */
const IN_DOLLARS = String.raw`(?:(?!\$\$)${INSIDE})`;
const IN_BRACKETS = String.raw`(?:(?!\\\])${INSIDE})`;
const FORMULA_BLOCK = new RegExp(
  String
    .raw`^ {0,3}(?:\$\$(${IN_DOLLARS}{1,${MAX_FORMULA}})\$\$|\\\[(${IN_BRACKETS}{1,${MAX_FORMULA}})\\\])[ \t]*(?:\n+|$)`,
);
/** With blank lines, which TeX doesn't allow, if the delimiters are alone on their lines. */
const SPACED_BLOCK = new RegExp(
  String
    .raw`^ {0,3}(?:\$\$[ \t]*\n((?:(?!\$\$)[^]){1,${MAX_FORMULA}})\n {0,3}\$\$|\\\[[ \t]*\n((?:(?!\\\])[^]){1,${MAX_FORMULA}})\n {0,3}\\\])[ \t]*(?:\n+|$)`,
);
/** An environment that is a formula without delimiters, as in MathJax. */
const ENVIRONMENT = new RegExp(
  String
    .raw`^ {0,3}(\\begin\{((?:equation|align|alignat|flalign|gather|multline|eqnarray)\*?)\}${INSIDE}{1,${MAX_FORMULA}}?\\end\{\2\})[ \t]*(?:\n+|$)`,
);
/** A formula without its end delimiter. Until that arrives, it is neither a list nor a heading. */
const OPEN_BLOCK = new RegExp(
  String
    .raw`^ {0,3}(?:\$\$[ \t]*(?:\n(?![ \t]*\n)${IN_DOLLARS}{0,${MAX_FORMULA}})?|\\\[[ \t]*(?:\n(?![ \t]*\n)${IN_BRACKETS}{0,${MAX_FORMULA}})?)$`,
);
/** Searches only to the end of the paragraph; otherwise a text of many paragraphs takes quadratic time. */
const BLOCK_START = /\n(?: {0,3}(?:\$\$|\\\[|\\begin\{)|[ \t]*\n)/;

/** Environments and commands that need a line of their own, which `$…$` doesn't give them. */
const DISPLAY_ONLY =
  /\\begin\s*\{(?:align|alignat|flalign|gather|multline|equation|eqnarray|split|displaymath|CD)\*?\}|\\tag(?![A-Za-z])/;

const INLINE: readonly [mark: RegExp, isDisplay: boolean][] = [
  [new RegExp(String.raw`^\$\$(${INSIDE}{1,${MAX_FORMULA}}?)\$\$`), true],
  // As in pandoc, so that prices don't match: no space inside the delimiters, no digit after them. Nor do variables of a
  // shell ($HOME/$USER), or what spans code.
  [new RegExp(String.raw`^\$(?![\s$])((?:\\.|[^\\$\n\`]){1,${MAX_FORMULA}}?)(?<![\s/:])\$(?![\d$A-Z_])`), false],
  [new RegExp(String.raw`^\\\((${INSIDE}{1,${MAX_FORMULA}}?)\\\)`), false],
  [new RegExp(String.raw`^\\\[(${INSIDE}{1,${MAX_FORMULA}}?)\\\]`), true],
];
/** Searches only to the next character at which marked ends a text token, for the same reason. */
const INLINE_START = /\$|\\[([]|[\\<!`*[]/;

const formulaBlock: TokenizerExtension = {
  name: "maths",
  level: "block",
  start: (source) => findStart(BLOCK_START.exec(source)),
  tokenizer(source, tokens): MathToken | undefined {
    if (endsInFormula(tokens.at(-1))) return undefined;
    const match = FORMULA_BLOCK.exec(source) ?? SPACED_BLOCK.exec(source) ?? ENVIRONMENT.exec(source);
    return match ? createToken(match[0], match[1] ?? match[2] ?? "", true) : undefined;
  },
};

/** Shown as it was written, without Markdown. */
const openFormula: TokenizerExtension & RendererExtension = {
  name: "openMaths",
  level: "block",
  tokenizer(source, tokens) {
    const match = endsInFormula(tokens.at(-1)) ? undefined : OPEN_BLOCK.exec(source);
    return match ? { type: "openMaths", raw: match[0], text: match[0].trim() } : undefined;
  },
  renderer: ({ text }) => `<p>${escapeText(text).replaceAll("\n", "<br>")}</p>\n`,
};

const inlineFormula: TokenizerExtension = {
  name: "maths",
  level: "inline",
  start: (source) => findStart(INLINE_START.exec(source)),
  tokenizer(source): MathToken | undefined {
    for (const [mark, isDisplay] of INLINE) {
      const match = mark.exec(source);
      // Escaped brackets around other signs are no formula.
      if (match && !(source.startsWith("\\") && !/[\p{L}\p{N}]/u.test(match[1]!))) {
        return createToken(match[0], match[1]!, isDisplay);
      }
    }
    return undefined;
  },
};

/** True if a paragraph ends within `$$…`, so that the next `$$` ends that formula. */
function endsInFormula(last: Token | undefined): boolean {
  if (last?.type !== "paragraph" && last?.type !== "text") return false;
  const paragraph = last.raw.endsWith("\n\n") ? "" : last.raw;
  return paragraph.includes("$$") && paragraph.split("$$").length % 2 === 0;
}

/** Returns the start of a formula; undefined if the search ended at something else. */
function findStart(match: RegExpExecArray | null): number | undefined {
  return match && /\$|\\(?:[([]|begin)/.test(match[0]) ? match.index : undefined;
}

function createToken(raw: string, text: string, isDisplay: boolean): MathToken {
  return { type: "maths", raw, text: text.trim(), isDisplay: isDisplay || DISPLAY_ONLY.test(text) };
}

/** Lets marked find formulas; `render` makes HTML of one. */
export function mathExtension(render: (token: MathToken) => string): MarkedExtension {
  return {
    extensions: [
      openFormula,
      formulaBlock, // marked tries the last one first
      inlineFormula,
      { name: "maths", renderer: (token) => isMath(token) ? render(token) : false },
    ],
  };
}

function isMath(token: Token): token is MathToken {
  return token.type === "maths";
}

/** A footnote's mark, or its text. */
interface FootnoteToken {
  type: "footnoteMark" | "footnote";
  raw: string;
  label: string;
  tokens?: Token[];
}

/** A definition at the start of a line. */
const DEFINITION = /^\[\^([^\]\s]{1,64})\]:/gm;
/** A definition with its text: the rest of its paragraph, and indented lines after it. */
const FOOTNOTE_BLOCK =
  /^\[\^([^\]\s]{1,64})\]:[ \t]*([^\n]*(?:\n(?!\[\^|[ \t]*\n|[ \t]*$)[^\n]+)*(?:\n+(?: {2,4}|\t)[^\n]+)*)(?:\n+|$)/;
const FOOTNOTE_MARK = /^\[\^([^\]\s]{1,64})\]/;

/** Most footnotes of one text. */
const MAX_NOTES = 1000;

/** Lists the labels that a text defines. */
export function findFootnotes(text: string): string[] {
  if (!text.includes("[^")) return [];
  const labels = new Set<string>();
  for (const [, label] of text.matchAll(DEFINITION)) {
    labels.add(label!);
    if (labels.size === MAX_NOTES) break;
  }
  return [...labels];
}

/**
 * Lets marked find footnotes.
 *
 * @param isDefined Whether the text defines a label; marks of others are text.
 * @param createPlaceholder Returns the title of the placeholder element.
 */
export function footnoteExtension(
  isDefined: (label: string) => boolean,
  createPlaceholder: (label: string) => string,
): MarkedExtension {
  return {
    extensions: [
      {
        name: "footnote",
        level: "block",
        start: (source) => {
          const at = source.indexOf("\n[^");
          return at < 0 ? undefined : at + 1;
        },
        tokenizer(source) {
          if (!source.startsWith("[^")) return undefined;
          const match = FOOTNOTE_BLOCK.exec(source);
          if (!match || !isDefined(match[1]!)) return undefined;
          const text = match[2]!.replace(/\n(?: {1,4}|\t)/g, "\n");
          const tokens = this.lexer.blockTokens(text, []);
          return { type: "footnote", raw: match[0], label: match[1]!, tokens } satisfies FootnoteToken;
        },
        renderer(token) {
          const { label, tokens } = token as unknown as FootnoteToken;
          return `<div title="${createPlaceholder(label)}">${this.parser.parse(tokens ?? [])}</div>\n`;
        },
      },
      {
        name: "footnoteMark",
        level: "inline",
        start: (source) => {
          const at = source.indexOf("[^");
          return at < 0 ? undefined : at;
        },
        tokenizer(source) {
          const match = FOOTNOTE_MARK.exec(source);
          if (!match || !isDefined(match[1]!)) return undefined;
          return { type: "footnoteMark", raw: match[0], label: match[1]! } satisfies FootnoteToken;
        },
        renderer: (token) => `<sup title="${createPlaceholder((token as unknown as FootnoteToken).label)}"></sup>`,
      },
    ],
  };
}
