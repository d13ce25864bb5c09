/** Where Parlor reads Markdown differently from GFM: nested code fences, `|` in the code of a table, ends of URLs. */
import { type MarkedExtension, Tokenizer } from "marked";

const standard = Tokenizer.prototype;

/**
 * Reads nested code fences, tables and URLs as Parlor does.
 *
 * @param isGrowing Whether the text may go on.
 */
export function tokenizerExtension(isGrowing: () => boolean): MarkedExtension {
  return {
    tokenizer: {
      fences(source) {
        const token = standard.fences.call(this, source);
        if (!token) return undefined;
        const length = findNestedEnd(source, token.raw.length, isGrowing());
        if (length === undefined) return token;
        const raw = source.slice(0, length);
        return { ...standard.fences.call(this, lengthenFences(raw))!, raw };
      },
      table(source) {
        const match = this.rules.block.table.exec(source);
        if (!match) return undefined;
        if (!/[`$]|\\[([]/.test(match[0])) return false;
        const columns = countCells(match[2]!);
        const lines = match[0].split("\n");
        const safe = lines.map((line, index) => index === 1 ? line : escapePipes(line, columns));
        const token = standard.table.call(this, safe.join("\n"));
        return token && { ...token, raw: match[0].replace(/\n+$/, "") };
      },
      url(source) {
        const token = standard.url.call(this, source);
        const end = token ? findUrlEnd(token.raw) : undefined;
        return end === undefined ? token : standard.url.call(this, source.slice(0, end));
      },
    },
  };
}

/** A line of at least three backticks or tildes: `indent`, `fence`, `info`. */
const FENCE_LINE = /^([ \t]*)(`{3,}|~{3,})[ \t]*([^`\n]*)$/gm;

/** Languages whose code may contain fences. */
const MARKDOWN_LANGUAGES = new Set(["", "markdown", "md", "mdx", "rmd", "qmd", "text", "txt", "plaintext"]);

/** Most lines with fences, and most characters, to look at: more of them are no reply. */
const MAX_FENCES = 200;
const MAX_LENGTH = 200_000;

/** One line with a fence. */
interface Fence {
  size: number;
  isIndented: boolean;
  info: string;
  end: number;
}

/**
 * Returns the length of a code block that contains whole code blocks with fences as short as its own, which CommonMark
 * would end at the first inner one; undefined to read the block as CommonMark does.
 *
 * @param plainLength The block's length by CommonMark.
 */
function findNestedEnd(source: string, plainLength: number, isGrowing: boolean): number | undefined {
  const fences = listFences(source);
  const outer = fences[0];
  if (!outer || !fences[1] || fences[1].info === "") return undefined;
  const open = [outer.size];
  for (const fence of fences.slice(1)) {
    if (fence.size < outer.size) continue;
    if (fence.info !== "") open.push(fence.size);
    else if (fence.size >= open.at(-1)! && (open.length > 1 || !fence.isIndented)) open.pop();
    if (open.length > 8) return undefined;
    if (open.length > 0) continue;
    const isBetter = isBalanced(source.slice(fence.end)) || !isBalanced(source.slice(plainLength));
    return fence.end > plainLength && isBetter ? fence.end : undefined;
  }
  const mayGoOn = isGrowing && MARKDOWN_LANGUAGES.has(outer.info.split(/\s/)[0]!.toLowerCase());
  return mayGoOn && source.length <= MAX_LENGTH ? source.length : undefined;
}

function listFences(source: string): Fence[] {
  const text = source.slice(0, MAX_LENGTH);
  const fences: Fence[] = [];
  const character = text.trimStart()[0]!;
  for (const match of text.matchAll(FENCE_LINE)) {
    const [line, indent, fence, info] = match;
    if (!fence!.startsWith(character)) continue;
    const isIndented = indent!.length > 3;
    fences.push({ size: fence!.length, isIndented, info: info!.trim(), end: match.index + line.length });
    if (fences.length === MAX_FENCES) break;
  }
  return fences;
}

/** True if CommonMark finds an end of each code block. */
function isBalanced(text: string): boolean {
  let open: string | undefined;
  for (const [, indent, fence, info] of text.slice(0, MAX_LENGTH).matchAll(FENCE_LINE)) {
    if (open === undefined) open = fence!;
    else if (fence!.startsWith(open) && info!.trim() === "" && indent!.length <= 3) open = undefined;
  }
  return open === undefined;
}

/** Makes the first and the last fence longer than all between them. */
function lengthenFences(raw: string): string {
  const fence = /^ {0,3}([`~])/.exec(raw)![1]!;
  const longer = fence.repeat(Math.max(...listFences(raw).map(({ size }) => size)) + 1);
  return raw.replace(/^( {0,3})[`~]+/, `$1${longer}`).replace(/(\n {0,3})[`~]+([ \t]*)$/, `$1${longer}$2`);
}

function countCells(row: string): number {
  const inner = row.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inner.replace(/\\[^]/g, "").split("|").length;
}

/** Code and formulas in a row. */
const CODE_OR_FORMULA =
  /(`+)(?!`)[^]*?[^`]\1(?!`)|\$\$.+?\$\$|\\\[.+?\\\]|\$(?![\s$])(?:\\.|[^\\$])+?(?<!\s)\$(?!\d)|\\\(.*?\\\)/g;

/** Escapes the pipes in code and formulas if the row has the right number of cells only then. */
function escapePipes(row: string, columns: number): string {
  if (countCells(row) <= columns) return row;
  const escaped = row.replace(
    CODE_OR_FORMULA,
    (part) => part.startsWith("`") ? part.replace(/(?<!\\)\|/g, "\\|") : part.replace(/\\\||\|/g, toFormulaPipe),
  );
  return countCells(escaped) === columns ? escaped : row;
}

/** A table's cell loses the backslash of `\|`, so a norm needs another name. */
const toFormulaPipe = (pipe: string) => pipe === "|" ? "\\|" : "\\Vert ";

/** Punctuation that a URL never contains, of scripts that put no space after it. */
const URL_END =
  /[\u3000-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\ufe10-\ufe1f\ufe30-\ufe6f“”‘’…—«»،؛؟।]/u;
/** The end of a host before text of such a script. */
const HOST_END = /^[^/?#:]*:?\/{0,2}[^/?#]*?(?=[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{sc=Thai}])/u;

function findUrlEnd(url: string): number | undefined {
  const host = HOST_END.exec(url)?.[0].length;
  const end = url.search(URL_END);
  if (end < 0) return host;
  return host === undefined ? end : Math.min(host, end);
}
