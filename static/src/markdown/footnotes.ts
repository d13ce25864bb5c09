/** Footnotes: `[^1]` in the text, `[^1]: …` at the start of a line. */
import type { MarkedExtension, Token } from "marked";

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
const BLOCK =
  /^\[\^([^\]\s]{1,64})\]:[ \t]*([^\n]*(?:\n(?!\[\^|[ \t]*\n|[ \t]*$)[^\n]+)*(?:\n+(?: {2,4}|\t)[^\n]+)*)(?:\n+|$)/;
const MARK = /^\[\^([^\]\s]{1,64})\]/;

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
 * The syntax. @param isDefined Whether the text defines a label; marks of others are text. @param placeOf Returns the
 * title of the placeholder element.
 */
export function footnoteExtension(
  isDefined: (label: string) => boolean,
  placeOf: (label: string) => string,
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
          const match = BLOCK.exec(source);
          if (!match || !isDefined(match[1]!)) return undefined;
          const text = match[2]!.replace(/\n(?: {1,4}|\t)/g, "\n");
          const tokens = this.lexer.blockTokens(text, []);
          return { type: "footnote", raw: match[0], label: match[1]!, tokens } satisfies FootnoteToken;
        },
        renderer(token) {
          const { label, tokens } = token as unknown as FootnoteToken;
          return `<div title="${placeOf(label)}">${this.parser.parse(tokens ?? [])}</div>\n`;
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
          const match = MARK.exec(source);
          if (!match || !isDefined(match[1]!)) return undefined;
          return { type: "footnoteMark", raw: match[0], label: match[1]! } satisfies FootnoteToken;
        },
        renderer: (token) => `<sup title="${placeOf((token as unknown as FootnoteToken).label)}"></sup>`,
      },
    ],
  };
}
