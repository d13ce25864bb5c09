/**
 * Short texts as models and cards write them, each with what a reader must see. The tests of rendering, reading aloud,
 * search and export all run through them.
 */
import { FORMULAS } from "./formulas.ts";
import { TEXTS } from "./texts.ts";

/** One text. */
export interface Reply {
  /** What it is about: a key of `TEXTS`, or `formulas`. */
  kind: string;
  markdown: string;
  /**
   * The result as HTML without what a reader doesn't see: text in containers is always in paragraphs, a formula is
   * `<math>`, or `<math block>` on its own line, code is `<pre>`, the source of a formula that can't be rendered is
   * `<source>`, and a footnote's mark is `[1]`. Lists, quotes and tables have `dir` where it isn't that of the text
   * around them.
   */
  shows: string;
  /** Direction of each paragraph, list item, heading and cell, in order: `rtl ltr`. All are `ltr` unless given. */
  directions?: string;
  /** Line breaks are those of Markdown; see the setting `line_breaks`. */
  isMarkdown?: boolean;
  /** Looks different until its end has arrived, since that changes what comes before it. */
  isLate?: boolean;
  /** Where it means something else, or can't be. */
  not?: readonly Place[];
}

/** Where in a message a text is. */
export type Place = "whole" | "last" | "first" | "list" | "quote" | "cell";

/** A text, what it shows, and what is special about it. */
export type TextEntry = readonly [
  markdown: string,
  shows: string,
  special?: Omit<Reply, "kind" | "markdown" | "shows">,
];

/** All texts. */
export const REPLIES: readonly Reply[] = [
  ...Object.entries(TEXTS).flatMap(([kind, entries]) =>
    entries.map(([markdown, shows, special]): Reply => ({ kind, markdown, shows, ...special }))
  ),
  ...FORMULAS.flatMap((tex, index): Reply =>
    index % 2 === 0
      ? { kind: "formulas", markdown: `$$\n${tex}\n$$`, shows: "<p><math block></p>" }
      : { kind: "formulas", markdown: `\\[${tex}\\]`, shows: "<p><math block></p>" }
  ),
];

const ENTITIES: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"' };

/** Returns the words that a reader sees, without formulas. Blocks, lines and cells are separate lines. */
export function visibleText({ shows }: Pick<Reply, "shows">): string {
  return shows
    .replace(
      /<\/?(?:p|h[1-6]|li|ul|ol|blockquote|pre|t[dhr]|table|thead|tbody|div|details|summary|d[ltd]|br|hr|source)\b[^>]*>/g,
      "\n",
    )
    .replace(/<[^>]*>/g, "")
    .replace(/&(?:amp|lt|gt|quot);/g, (entity) => ENTITIES[entity]!)
    .replace(/\s*\n\s*/g, "\n")
    .trim();
}
