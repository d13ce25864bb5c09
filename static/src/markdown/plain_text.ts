/** The words of Markdown: as they're shown, for lists, or as they're spoken, for screen readers and speech. */
import { stripTags } from "./html_tags.ts";

/** What is said for what has no words. */
export interface SpokenWords {
  formula: string;
  diagram: string;
  /** A block of code. Absent: nothing is said of it. */
  code?: string;
  /** A line between parts of a text. Absent: nothing is said of it. */
  rule?: string;
}

/** A link or an image. It never crosses another opening bracket, so that 100,000 of them take linear time. */
const LINK = /!?\[([^[\]]*)\](?:\((?:[^()\n]|\([^()\n]*\))*\)|\[[^[\]\n]*\])/g;
const CODE = /(?<!`)(`{1,3})(?!`)([^`\n]+)\1(?!`)/g;
const ESCAPED = /\\([!-/:-@[-`{-~])/g;
const RULE = /^[ \t>]*(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,}|=+[ \t]*)$/gm;
/** The row below a table's head. */
const DELIMITER_ROW = /^[ \t>]*(?=[^\n]*\|)[|:\t -]*$/gm;
const LINE_MARKS = /^[ \t]{0,3}(?:(?:#{1,6}(?=[ \t]|$)|>|[-*+](?=[ \t]|$)|`{3,}\S*|~{3,}\S*)[ \t]*)+/gm;
const TASK = /^([ \t>]*[-*+][ \t]+)\[[ xX]\][ \t]/gm;
const DEFINITION = /^ {0,3}\[[^\]\n]{1,200}\]:[ \t]+\S+[^\n]*$/gm;
/** Runs of characters that mark emphasis, and what is around them. */
const EMPHASIS = /(\*+|_+|~+)/g;
const EMOJI =
  /\p{RI}\p{RI}|[#*0-9]\ufe0f?\u20e3|(?![©®™])\p{Extended_Pictographic}(?:\ufe0f|\p{Emoji_Modifier})*(?:\u200d\p{Extended_Pictographic}(?:\ufe0f|\p{Emoji_Modifier})*)*/gu;
const ENTITIES: Record<string, string> = {
  ...{ amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " ", ndash: "–", mdash: "—", hellip: "…" },
  ...{ lsquo: "‘", rsquo: "’", ldquo: "“", rdquo: "”", laquo: "«", raquo: "»", copy: "©", reg: "®", trade: "™" },
  ...{ times: "×", divide: "÷", deg: "°", euro: "€", bull: "•", middot: "·", shy: "" },
};
/** A formula that can be read as it's written: numbers, letters, and signs with a name. */
const READABLE = /^[\p{L}\d\s=+.,%-]{1,40}$/u;
const WORD = /[\p{L}\p{N}]/u;

/** Removes formatting marks. What a reader sees as a sign stays: `5*3`, `my_name`. */
export function stripMarkdown(text: string): string {
  return toPlain(text);
}

/** Returns a text as it's spoken: without marks and emoji, formulas as a word, and signs as what they mean. */
export function toSpokenText(text: string, words: SpokenWords): string {
  return toPlain(text.replace(EMOJI, " "), words);
}

function toPlain(text: string, words?: SpokenWords): string {
  /** Parts that no further step changes, by their number between NULs. */
  const parts: string[] = [];
  const keep = (part: string) => `\0${parts.push(part) - 1}\0`;
  const masked = maskFormulas(
    text.replaceAll("\0", "").replace(CODE, (_, _mark, code: string) => keep(words ? speakCode(code) : code)),
    (source, tex) => keep(words === undefined ? source : READABLE.test(tex) ? tex.trim() : words.formula),
  ).replace(ESCAPED, (_, sign: string) => keep(words && "*_~`|#\\".includes(sign) ? " " : sign));
  const plain = stripTags(masked)
    .replace(/<(https?:\/\/[^\s<>]+)>/g, "$1")
    .replace(/^[ \t]*\|.*$/gm, speakRow)
    .replace(DELIMITER_ROW, "")
    .replace(RULE, "")
    .replace(/\[\^[^\]\s]{1,64}\]:?/g, "")
    .replace(DEFINITION, "")
    .replace(LINK, "$1")
    .replace(TASK, "$1")
    .replace(LINE_MARKS, "");
  const unmarked = removeEmphasis(plain, words !== undefined).replaceAll("`", "").replace(
    /&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{2,8}));/gi,
    decodeEntity,
  );
  const spoken = words ? unmarked.replace(/[ \t]*\|+[ \t]*/g, ", ") : unmarked;
  // Parts contain no others, except code in formulas.
  const whole = spoken.replace(/\0(\d+)\0/g, (_, index) => parts[Number(index)]!)
    .replace(/\0(\d+)\0/g, (_, index) => parts[Number(index)]!);
  return whole.replace(/\s+/g, " ").trim();
}

/** The cells of a table's row; nothing for the line below its head. */
function speakRow(row: string): string {
  if (/^[|:\s-]*$/.test(row)) return "";
  return row.split("|").map((cell) => cell.trim()).filter((cell) => cell !== "").join(", ");
}

/** Replaces formulas on one line or in one paragraph, in linear time. */
function maskFormulas(text: string, replace: (source: string, tex: string) => string): string {
  let result = "";
  let from = 0;
  /** Ends that don't occur further on. */
  const missing = new Set<string>();
  for (const { 0: start, index } of text.matchAll(/\$\$?|\\[([]/g)) {
    if (index < from) continue;
    const end = start.startsWith("$") ? start : start === "\\(" ? "\\)" : "\\]";
    const first = index + start.length;
    if (missing.has(end)) continue;
    const last = text.indexOf(end, first);
    if (last < 0) {
      missing.add(end);
      continue;
    }
    const tex = text.slice(first, last);
    if (tex.trim() === "" || tex.length > 4000 || /\n[ \t]*\n/.test(tex)) continue;
    // Prices and variables of a shell, as in extensions.ts.
    const isText = start === "$" && (/^\s|\s$|[/:]$|\n/.test(tex) || /[\d$A-Z_]/.test(text[last + 1] ?? ""));
    if (isText) continue;
    result += text.slice(from, index) + replace(text.slice(index, last + end.length), tex);
    from = last + end.length;
  }
  return result + text.slice(from);
}

/** Removes what marks emphasis. Other asterisks, underscores and tildes are signs: `5*3`, `my_name`, `10~20`. */
function removeEmphasis(text: string, isSpoken: boolean): string {
  const pieces = text.split(EMPHASIS);
  const lastBefore = (index: number) => pieces[index - 1]!.at(-1) ?? " ";
  const firstAfter = (index: number) => pieces[index + 1]![0] ?? " ";
  const isBetween = (index: number, what: RegExp) => what.test(lastBefore(index)) && what.test(firstAfter(index));
  const signs = new Set<number>();
  const openers: number[] = [];
  for (let index = 1; index < pieces.length; index += 2) {
    const run = pieces[index]!;
    if (run.startsWith("_")) {
      if (isBetween(index, WORD)) signs.add(index);
    } else if (run.startsWith("~")) {
      if (run === "~" && isBetween(index, /\d/)) signs.add(index);
    } else if (isBetween(index, /\d/) || isBetween(index, /\s/)) signs.add(index);
    else if (openers.length > 0 && !/\s/.test(lastBefore(index))) openers.pop();
    else if (!/\s/.test(firstAfter(index))) openers.push(index);
  }
  // Within a word, an asterisk marks emphasis only in pairs. Elsewhere, its partner may be in another sentence.
  for (const index of openers) if (isBetween(index, WORD)) signs.add(index);
  const say = (index: number) => {
    if (pieces[index]!.startsWith("_")) return " ";
    if (pieces[index] === "~") return "–";
    const isProduct = WORD.test(pieces[index - 1]!.trimEnd().at(-1) ?? "") &&
      WORD.test(pieces[index + 1]!.trimStart()[0] ?? "");
    return isProduct ? " × " : " ";
  };
  return pieces.map((piece, index) => {
    if (index % 2 === 0) return piece;
    return !signs.has(index) ? "" : isSpoken ? say(index) : piece;
  }).join("");
}

/** Code on one line as it's spoken: words with underscores are several. */
function speakCode(code: string): string {
  return code.replace(/(?<=[\p{L}\p{N}])\s*\*+\s*(?=[\p{L}\p{N}])/gu, " × ").replace(/[*_`|~\\]+/g, " ").trim();
}

function decodeEntity(entity: string, decimal?: string, hex?: string, name?: string): string {
  if (name !== undefined) return Object.hasOwn(ENTITIES, name) ? ENTITIES[name]! : entity;
  const code = decimal === undefined ? Number.parseInt(hex!, 16) : Number(decimal);
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : entity;
}

/** Languages of code blocks that are shown as diagrams. */
const DIAGRAMS = new Set(["mermaid"]);
const FENCE = /^[ \t]*(?:(?:>|[-*+]|\d{1,9}[.)])[ \t]*)*(`{3,}|~{3,})[ \t]*([^\s`]*)/;

/** A line between parts. Hyphens below a line of text mark it as a heading instead. */
const RULE_LINE = /^[ \t>]*(?:(?:\*[ \t]*){3,}|(-)[ \t]*(?:-[ \t]*){2,}|(?:_[ \t]*){3,})\s*$/;

/** Follows the blocks of a growing text: code, diagrams and formulas on lines of their own aren't read line by line. */
export class SpokenBlocks {
  readonly #words: SpokenWords;
  #isAtLineStart = true;
  #fence: string | undefined;
  #formulaEnd: string | undefined;
  /** Whether the line before has text. */
  #isBelowText = false;

  constructor(words: SpokenWords) {
    this.#words = words;
  }

  /** Returns what is to be said of the next piece, as Markdown. */
  next(piece: string): string {
    if (piece === "") return "";
    return piece.split(/(?<=\n)/).map((line) => {
      const said = this.#nextLine(line, this.#isAtLineStart);
      this.#isAtLineStart = line.endsWith("\n");
      return said;
    }).join("");
  }

  #nextLine(line: string, isStart: boolean): string {
    const isBelowText = this.#isBelowText;
    this.#isBelowText = line.trim() !== "";
    const fence = isStart ? FENCE.exec(line) : null;
    if (this.#fence !== undefined) {
      const isEnd = fence !== null && fence[2] === "" && fence[1]!.startsWith(this.#fence);
      if (isEnd) this.#fence = undefined;
      return "";
    }
    if (fence !== null && this.#formulaEnd === undefined) {
      this.#fence = fence[1];
      const word = DIAGRAMS.has(fence[2]!.toLowerCase()) ? this.#words.diagram : this.#words.code;
      return word === undefined ? "" : `${word}.\n`;
    }
    const rule = isStart && this.#formulaEnd === undefined ? RULE_LINE.exec(line) : null;
    if (rule !== null && !(rule[1] === "-" && isBelowText)) {
      this.#isBelowText = false;
      return this.#words.rule === undefined ? "" : `${this.#words.rule}.\n`;
    }
    return this.#skipFormulas(line);
  }

  /** Replaces formulas that start or end within a line. */
  #skipFormulas(line: string): string {
    let said = "";
    let rest = line;
    if (this.#formulaEnd !== undefined) {
      const end = rest.indexOf(this.#formulaEnd);
      // A formula ends with its paragraph at the latest.
      if (end < 0 && rest.trim() !== "") return "";
      rest = end < 0 ? rest : rest.slice(end + this.#formulaEnd.length);
      this.#formulaEnd = undefined;
    }
    const code = rest.replace(CODE, (span) => " ".repeat(span.length));
    for (const { 0: start, index } of code.matchAll(/\$\$|(?<!\\)\\\[/g)) {
      if (index < said.length) continue;
      const end = start === "$$" ? "$$" : "\\]";
      const last = rest.indexOf(end, index + 2);
      if (last >= 0) {
        said = rest.slice(0, last + 2);
        continue;
      }
      this.#formulaEnd = end;
      return `${rest.slice(0, index)} ${this.#words.formula}.\n`;
    }
    return rest;
  }
}
