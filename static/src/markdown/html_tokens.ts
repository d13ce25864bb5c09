/** HTML in Markdown's tokens: what isn't HTML becomes text, and elements that span blocks keep what is inside. */
import type { MarkedExtension, Token, Tokens } from "marked";
import {
  escapeOtherBrackets,
  findTags,
  type HtmlTag,
  isContainer,
  isMention,
  needsEnd,
  pairTags,
} from "./html_tags.ts";

/** A token of HTML. `isText`: its brackets are text. */
type HtmlToken = (Tokens.HTML | Tokens.Tag) & { isText?: boolean };

/** The start of an HTML block: a tag, which may not be complete yet, or a comment. */
const BLOCK_START = /^ {0,3}<(?:!--|\/?([a-z][a-z0-9-]*))/i;

/** A block that starts with the mention of a tag: `<div> is a block.` */
const MENTION_LINE = /^ {0,3}<[^>\n]*>[ \t]+[^\s<]/;

/**
 * Lets marked read only HTML as HTML.
 *
 * @param count Called with each piece of HTML from the text.
 */
export function htmlExtension(count: (html: string) => void): MarkedExtension {
  return {
    tokenizer: {
      tag(source) {
        if (!source.startsWith("<")) return undefined;
        const raw = this.rules.inline.tag.exec(source)?.[0];
        const tag = raw === undefined ? undefined : findTags(raw)[0];
        if (raw === undefined || !tag) return undefined;
        if (tag.name === "a" && !tag.isBare) this.lexer.state.inLink = true;
        if (tag.name === "a" && tag.isEnd) this.lexer.state.inLink = false;
        const { inLink } = this.lexer.state;
        return { type: "html", raw, text: raw, block: false, inLink, inRawBlock: false };
      },
      html(source) {
        const start = BLOCK_START.exec(source);
        if (!start || (start[1] && findTags(`<${start[1]}>`).length === 0)) return undefined;
        return false;
      },
    },
    renderer: {
      html(token: HtmlToken) {
        const html = token.isText
          ? token.text.replaceAll("<", "&lt;")
          : token.text.trimStart().startsWith("<!--")
          ? token.text
          : escapeOtherBrackets(token.text);
        count(html);
        return token.block && !html.endsWith("\n") ? `${html}\n` : html;
      },
    },
    extensions: [{
      name: "htmlSpan",
      renderer(token) {
        return this.parser.parse(token.tokens ?? []);
      },
    }],
  };
}

/** A tag of the text and where it is. */
interface PlacedTag extends HtmlTag {
  token: HtmlToken;
  /** Number of the block of the text that contains it. */
  block: number;
  /** Number of the paragraph, heading, cell or HTML block that contains it. */
  run: number;
  /** At the start of its run if it is a start tag, at the end if it is an end tag. */
  isAtEdge: boolean;
  /** In an HTML block of the text itself. */
  isTopLevel: boolean;
}

/**
 * Decides which tags are text, and puts all blocks from a start tag to its end tag into one token.
 *
 * @param tokens The blocks of a text, or its last ones.
 * @param isFinal The text is complete. Otherwise, tags and comments may still end.
 * @param lexInline Parses the text of a paragraph.
 * @returns The blocks.
 */
export function resolveHtml(tokens: Token[], isFinal: boolean, lexInline: (text: string) => Token[]): Token[] {
  const tags: PlacedTag[] = [];
  let runs = 0;
  for (const [block, token] of tokens.entries()) runs = collectTags(token, block, runs, tags);
  if (tags.length === 0) return tokens;
  const partners = pairTags(tags).map((partner, index) =>
    partner !== undefined && isSpan(tags[Math.min(index, partner)]!, tags[Math.max(index, partner)]!)
      ? partner
      : undefined
  );
  /** For each block the last block that belongs to it. */
  const ends = tokens.map((_, block) => block);
  const isFirst = (index: number) => tags[index - 1]?.token !== tags[index]!.token;
  for (const [index, tag] of tags.entries()) {
    const { token, block, isTopLevel } = tag;
    const partner = partners[index];
    if (token.block !== true) token.isText = isMention(tag, partner !== undefined);
    else if (tag.name === "!") token.isText = isFinal && !token.text.includes("-->");
    else if (isFirst(index) && isMention(tag, partner !== undefined) && MENTION_LINE.test(token.text)) {
      toParagraph(token, lexInline);
      continue;
    }
    if (partner !== undefined && partner > index) ends[block] = Math.max(ends[block]!, tags[partner]!.block);
    const mayContainBlocks = isContainer(tag.name) || (!isFinal && needsEnd(tag.name));
    const isOpen = partner === undefined && isTopLevel && !tag.isEnd && mayContainBlocks;
    if (isOpen) ends[block] = tokens.length - 1;
  }
  return joinBlocks(tokens, ends);
}

/** Blocks with inline content. In lists, `text` is a paragraph; inside of paragraphs it has no tokens. */
const RUN_BLOCKS = new Set(["paragraph", "heading", "text"]);

/** Adds the tags of one block, in order. @returns The number of runs so far. */
function collectTags(block: Token, blockNumber: number, runs: number, tags: PlacedTag[]): number {
  const open: [token: Token, run: number, isFirst: boolean, isLast: boolean][] = [[block, 0, false, false]];
  for (let next = open.pop(); next; next = open.pop()) {
    const [token, run, isFirst, isLast] = next;
    if (isHtml(token)) {
      const isBlock = token.block === true;
      const place = { token, block: blockNumber, run: isBlock ? ++runs : run, isTopLevel: token === block };
      for (const tag of findTagsOf(token)) {
        tags.push({ ...tag, ...place, isAtEdge: isBlock || (tag.isEnd ? isLast : isFirst) });
      }
      continue;
    }
    const isCells = token.type === "table";
    const isRun = RUN_BLOCKS.has(token.type);
    if (isRun) runs++;
    for (const children of listChildren(token).reverse()) {
      if (isCells) runs++;
      const childRun = isRun || isCells ? runs : run;
      for (let index = children.length - 1; index >= 0; index--) {
        open.push([children[index]!, childRun, isRun && index === 0, isRun && index === children.length - 1]);
      }
    }
  }
  return runs;
}

function isHtml(token: Token): token is HtmlToken {
  return token.type === "html";
}

function findTagsOf({ text }: HtmlToken): HtmlTag[] {
  const isOpenComment = text.trimStart().startsWith("<!--") && !text.includes("-->");
  return isOpenComment ? [{ name: "!", isEnd: false, isBare: false, start: 0, end: text.length }] : findTags(text);
}

function listChildren(token: Token): Token[][] {
  if (token.type === "list") return [(token as Tokens.List).items];
  if (token.type !== "table") return "tokens" in token && token.tokens ? [token.tokens] : [];
  const { header, rows } = token as Tokens.Table;
  return [header, ...rows].flat().map(({ tokens }) => tokens);
}

/**
 * True if two tags are one element. From one paragraph to another, that takes more than two mentions of a tag: HTML
 * blocks, attributes, or tags at the start and at the end of their paragraphs.
 */
function isSpan(start: PlacedTag, end: PlacedTag): boolean {
  return start.run === end.run || !start.isBare || (start.isAtEdge && end.isAtEdge);
}

function toParagraph(token: HtmlToken, lexInline: (text: string) => Token[]): void {
  const text = token.text.trim();
  const tokens = lexInline(text);
  Object.assign(token, { type: "paragraph", text, tokens });
  resolveHtml([token], true, lexInline);
}

/** Joins each block with all blocks up to its end. */
function joinBlocks(tokens: Token[], ends: readonly number[]): Token[] {
  const joined: Token[] = [];
  for (let first = 0; first < tokens.length; first++) {
    let last = first;
    for (let at = first; at <= last; at++) last = Math.max(last, ends[at]!);
    const group = tokens.slice(first, last + 1);
    const raw = group.map((token) => token.raw).join("");
    joined.push(group.length === 1 ? group[0]! : { type: "htmlSpan", raw, tokens: group });
    first = last;
  }
  return joined;
}
