/** Extracts RTF files, and the RTF of mail. */
import { Buffer } from "node:buffer";
import { findFieldAddress, findFieldSymbol, findSymbol } from "./office_parts.ts";
import {
  ExtractionFault,
  type ExtractionInput,
  formatLink,
  type PageSink,
  type TextBlock,
  toSections,
} from "./extraction.ts";
import { Equation, formatSubscript, formatSuperscript } from "./equations.ts";
import { convertHtml, type HtmlText } from "./html_text.ts";

/**
 * Extracts an RTF file.
 *
 * @throws {ExtractionFault} `damaged`
 * @see Rich Text Format (RTF) Specification 1.9.1
 */
export async function extractRtf({ bytes }: ExtractionInput, sink: PageSink): Promise<void> {
  const { title, blocks } = convertRtf(bytes, sink);
  sink.begin({ unit: "section", total: 0, ...(title !== "" && { title }) });
  for (const section of toSections(blocks)) await sink.add(section);
}

/** The text of an RTF file. */
export interface RtfText {
  title: string;
  blocks: TextBlock[];
  /** Set if the file wraps HTML ([MS-OXRTFEX]). Its blocks are those of the text. */
  html?: HtmlText;
}

/** Converts RTF. @throws {ExtractionFault} `damaged` if it isn't RTF */
export function convertRtf(bytes: Uint8Array, sink: PageSink): RtfText {
  const reader = new RtfReader(bytes, sink);
  reader.read();
  return reader.end();
}

/** Encodings by the numbers of Windows code pages. */
const CODE_PAGES: Record<number, string> = {
  ...{ 866: "ibm866", 874: "windows-874", 932: "shift_jis", 936: "gb18030", 949: "euc-kr", 950: "big5" },
  ...{ 1200: "utf-16le", 10000: "macintosh", 20866: "koi8-r", 21866: "koi8-u", 65001: "utf-8" },
  ...Object.fromEntries([1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258].map((n) => [n, `windows-${n}`])),
};

/** Code pages by the character sets of fonts. */
const CHARSETS: Record<number, number> = {
  ...{ 77: 10000, 128: 932, 129: 949, 130: 949, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258, 177: 1255 },
  ...{ 178: 1256, 186: 1257, 204: 1251, 222: 874, 238: 1250 },
};

/** Words for characters. */
const CHARACTERS: Record<string, string> = {
  ...{ tab: "\t", line: "\n", lbr: "\n", softline: "\n", emdash: "—", endash: "–", bullet: "•" },
  ...{ lquote: "‘", rquote: "’", ldblquote: "“", rdblquote: "”", emspace: " ", enspace: " ", qmspace: " " },
  ...{ "~": "\u00a0", "_": "‑", "-": "", "|": "", ":": ":" },
};

/** Groups without text of the document: tables of fonts and styles, field codes, data, and copies for old programs. */
const SKIPPED = new Set([
  ...["colortbl", "filetbl", "stylesheet", "revtbl", "rsidtbl", "listtable", "listoverridetable", "generator"],
  ...["datafield", "nonshppict", "shprslt", "sn", "sv", "objdata", "objclass", "objname", "bkmkstart"],
  ...[
    "bkmkend",
    "themedata",
    "colorschememapping",
    "latentstyles",
    "datastore",
    "xmlnstbl",
    "mmathPr",
    "wgrffmtfilter",
  ],
  ...["xe", "tc", "pgdsctbl", "template", "passwordhash", "userprops", "ftnsep", "ftnsepc", "ftncn", "aftnsep"],
  ...["aftnsepc", "aftncn", "atnid", "atnref", "atndate", "atntime", "atnicn", "atnparent", "pnseclvl", "keycode"],
  ...["author", "operator", "company", "manager", "category", "keywords", "subject", "doccomm", "comment", "hlinkbase"],
  ...["creatim", "revtim", "printim", "buptim", "nextfile", "falt", "panose", "fontemb", "background"],
  ...["moMathParaPr", "mmathPict", "mctrlPr", "aftnsepc", "oldcprops", "oldpprops", "oldtprops", "oldsprops"],
]);

/** Groups that other programs may skip (`\*`) but that have text. */
const READABLE = new Set([
  ...["shppict", "shpinst", "shptxt", "annotation", "atnauthor", "footnote", "ud", "moMath", "moMathPara"],
  ...["htmltag", "fldinst", "shpgrp", "pntext", "listtext", "do", "dptxbxtext"],
]);

/** Where the text of a group goes. */
type Destination =
  | "text"
  | "skip"
  | "fonts"
  | "title"
  | "note"
  | "comment"
  | "author"
  | "image"
  | "html"
  | "field"
  | "equation"
  | "mark";

/** A group. What it changes ends with it. */
interface Group {
  destination: Destination;
  codePage: number;
  font: number;
  /** Number of characters after a `\u` that stand for it. */
  fallback: number;
  script: "super" | "sub" | undefined;
  isHidden: boolean;
  isDeleted: boolean;
  /** What the group is, if that matters at its end: a part of an equation, `header`, or `list`. */
  element: string | undefined;
  /** Where its text starts. */
  start: number;
  /** RTF that is a copy of the wrapped HTML. */
  isHtmlCopy: boolean;
}

/** Maximum number of open groups. */
const MAX_DEPTH = 10_000;

/** Text that is collected apart from the document: a note or a comment. */
interface Note {
  mark: string;
  blocks: TextBlock[];
}

class RtfReader {
  readonly #source: string;
  #at = 0;
  #group: Group = {
    ...{ destination: "text", codePage: 1252, font: -1, fallback: 1, script: undefined },
    ...{ isHidden: false, isDeleted: false, isHtmlCopy: false, element: undefined, start: 0 },
  };
  readonly #groups: Group[] = [];
  #isOptional = false;
  /** Number of characters or bytes that stand for a `\u`, still to skip. */
  #toSkip = 0;
  #defaultCodePage = 1252;
  #pending: number[] = [];
  readonly #fonts = new Map<number, { codePage?: number; name: string; isSymbol: boolean }>();
  #fontNumber = 0;
  #isDefaultFontSet = false;

  #blocks: TextBlock[] = [];
  #text = "";
  #scriptStart: number | undefined;
  #heading: number | undefined;
  #cells: string[] = [];
  #isInTable = false;
  readonly #notes: Note[] = [];
  readonly #comments: Note[] = [];
  /** The text around the open note. */
  #around: { blocks: TextBlock[]; text: string; cells: string[]; depth: number; note: Note } | undefined;
  /** Open fields: their codes, and where their text starts. */
  readonly #fields: { code: string; start: number }[] = [];
  #author = "";
  #title = "";
  #equation: Equation | undefined;
  /** The character of an operator. */
  #mark = "";
  #wrapsHtml = false;
  #html = "";

  constructor(bytes: Uint8Array, readonly sink: PageSink) {
    // One character per byte; a TextDecoder reads Latin 1 as Windows-1252.
    this.#source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
    const start = /^(?:\u00ef\u00bb\u00bf)?\s*(?=\{\\rtf)/.exec(this.#source.slice(0, 1000))?.[0];
    if (start === undefined) {
      throw new ExtractionFault("damaged", "Can't read the file: it isn't RTF");
    }
    this.#at = start.length;
  }

  read(): void {
    const source = this.#source;
    while (this.#at < source.length) {
      if (this.#group.destination === "skip" || this.#group.destination === "image") {
        SYNTAX.lastIndex = this.#at;
        this.#at = SYNTAX.exec(source)?.index ?? source.length;
        if (this.#at === source.length) return;
      }
      const character = source[this.#at++]!;
      if (character === "{") this.#open();
      else if (character === "}") this.#close();
      else if (character === "\\") this.#readControl();
      else if (character !== "\r" && character !== "\n" && character !== "\0") {
        if (this.#toSkip > 0) this.#toSkip--;
        else this.#addByte(character.charCodeAt(0));
      }
    }
  }

  end(): RtfText {
    while (this.#around !== undefined) this.#endNote();
    this.#flush();
    this.#endParagraph();
    this.#endRow();
    const notes = [...this.#notes, ...this.#comments].map(({ mark, blocks }) => ({
      text: `${mark} ${blocks.map(({ text }) => text).join("\n")}`.trim(),
    }));
    const title = this.#title.replace(/\s+/g, " ").trim().slice(0, 300);
    if (!this.#wrapsHtml) return { title, blocks: [...this.#blocks, ...notes] };
    const html = convertHtml(this.#html);
    return { title: html.title || title, blocks: html.blocks, html };
  }

  #open(): void {
    this.#flush();
    this.#toSkip = 0;
    if (this.#groups.length >= MAX_DEPTH) {
      throw new ExtractionFault("damaged", "Can't read the file: it's nested too deeply");
    }
    this.#groups.push(this.#group);
    this.#group = { ...this.#group, element: undefined };
    this.#isOptional = false;
  }

  #close(): void {
    this.#flush();
    this.#toSkip = 0;
    const before = this.#groups.pop();
    if (before === undefined) return;
    if (this.#group.script !== before.script) this.#endScript();
    const ended = this.#group;
    this.#group = before;
    if (ended.element !== undefined) this.#endElement(ended);
    if (this.#around !== undefined && this.#groups.length < this.#around.depth) this.#endNote();
  }

  #endElement({ element, start, destination }: Group): void {
    if (element === "header") this.#endParagraph();
    else if (element === "field") this.#endField();
    else if (element === "list") {
      const mark = this.#text.slice(start).trim();
      this.#text = `${this.#text.slice(0, start)}${
        /[\p{L}\p{N}]{2}|[^o]/u.test(mark) && /[\p{L}\p{N}]/u.test(mark) ? mark : "-"
      } `;
    } else if (destination === "mark") {
      this.#equation?.open(element!, { val: this.#mark.trim() });
      this.#equation?.close();
    } else if (element === "omath") {
      const { result } = this.#equation!;
      this.#equation = undefined;
      this.#add(result);
    } else this.#equation?.close();
  }

  #readControl(): void {
    const source = this.#source;
    const next = source[this.#at] ?? "";
    if (next === "'") {
      const byte = Number.parseInt(source.slice(this.#at + 1, this.#at + 3), 16);
      this.#at += 3;
      if (this.#toSkip > 0) this.#toSkip--;
      else if (!Number.isNaN(byte)) this.#addByte(byte);
      return;
    }
    CONTROL.lastIndex = this.#at;
    const [whole, word = "", digits] = CONTROL.exec(source) ?? [];
    if (whole === undefined) {
      this.#at++;
      if (next === "*") this.#isOptional = true;
      else if (next === "\r" || next === "\n") this.#handle("par", undefined);
      else if (next in CHARACTERS) this.#add(CHARACTERS[next]!);
      else if (/[{}\\]/.test(next)) {
        if (this.#toSkip > 0) this.#toSkip--;
        else this.#addByte(next.charCodeAt(0));
      }
      return;
    }
    this.#at += whole.length;
    const value = digits === undefined ? undefined : Number(digits);
    if (word === "bin") return void (this.#at += Math.max(0, value ?? 0));
    if (this.#toSkip > 0 && word !== "u") return void this.#toSkip--;
    this.#handle(word, value);
  }

  #handle(word: string, value: number | undefined): void {
    const group = this.#group;
    const isOptional = this.#isOptional;
    this.#isOptional = false;
    if (group.destination === "skip") return;
    if (word === "u") {
      this.#flush();
      // Numbers are signed. Two of them can be one character.
      this.#add(String.fromCharCode((value ?? 0) & 0xffff));
      this.#toSkip = group.fallback;
      return;
    }
    const character = Object.hasOwn(CHARACTERS, word) ? CHARACTERS[word] : undefined;
    if (character !== undefined) return this.#add(character);
    this.#flush();
    if (SKIPPED.has(word) || (isOptional && !READABLE.has(word))) return void (group.destination = "skip");
    if (this.#equation !== undefined && /^m[a-z]/i.test(word)) return this.#openInEquation(word.slice(1).toLowerCase());
    switch (word) {
      case "ansicpg":
        this.#defaultCodePage = group.codePage = value ?? 1252;
        break;
      case "mac":
        this.#defaultCodePage = group.codePage = 10000;
        break;
      case "uc":
        group.fallback = Math.max(0, Math.min(100, value ?? 1));
        break;
      case "fonttbl":
        group.destination = "fonts";
        break;
      case "f":
        this.#setFont(value ?? 0);
        break;
      case "fcharset": {
        const font = this.#fonts.get(this.#fontNumber);
        if (group.destination !== "fonts" || font === undefined) break;
        font.codePage = CHARSETS[value ?? 0];
        font.isSymbol = value === 2;
        break;
      }
      case "cpg":
        if (group.destination === "fonts" && this.#fonts.has(this.#fontNumber)) {
          this.#fonts.get(this.#fontNumber)!.codePage = value;
        }
        break;
      case "title":
        group.destination = "title";
        break;
      case "pict":
        if (group.destination !== "image") this.sink.note("image");
        group.destination = "image";
        break;
      case "object":
        this.sink.note("embedded", { example: "object" });
        break;
      case "footnote":
        this.#startNote(this.#notes, `[${this.#notes.length + 1}]`);
        break;
      case "annotation":
        this.#startNote(this.#comments, `[c${this.#comments.length + 1}]`);
        break;
      case "atnauthor":
        this.#author = "";
        group.destination = "author";
        break;
      case "upr": // The first form of the text is for programs without Unicode.
        this.#skipGroup();
        break;
      case "moMath":
        if (group.destination !== "text") break;
        this.#equation = new Equation();
        group.destination = "equation";
        group.element = "omath";
        break;
      case "header":
      case "headerl":
      case "headerr":
      case "headerf":
      case "footer":
      case "footerl":
      case "footerr":
      case "footerf":
      case "shptxt":
      case "dptxbxtext":
        group.element = "header";
        break;
      case "field":
        if (group.destination !== "text") break;
        group.element = "field";
        this.#endScript();
        this.#fields.push({ code: "", start: this.#text.length });
        break;
      case "fldinst":
        group.destination = "field";
        break;
      case "listtext":
      case "pntext":
        group.element = "list";
        group.start = this.#text.length;
        break;
      case "fromhtml":
        this.#wrapsHtml = true;
        break;
      case "htmltag":
        group.destination = "html";
        break;
      case "htmlrtf":
        group.isHtmlCopy = value !== 0;
        break;
      case "v":
        if (value !== 0 && !group.isHidden) this.sink.note("hidden");
        group.isHidden = value !== 0;
        break;
      case "deleted":
        if (value !== 0) this.sink.note("tracked_changes");
        group.isDeleted = value !== 0;
        break;
      case "revised":
        if (value !== 0) this.sink.note("tracked_changes");
        break;
      case "super":
        this.#setScript(value === 0 ? undefined : "super");
        break;
      case "sub":
        this.#setScript(value === 0 ? undefined : "sub");
        break;
      case "nosupersub":
        this.#setScript(undefined);
        break;
      case "plain":
        this.#setScript(undefined);
        group.isHidden = group.isDeleted = false;
        this.#setFont(-1);
        break;
      case "pard":
        this.#heading = undefined;
        this.#isInTable = false;
        break;
      case "intbl":
        this.#isInTable = true;
        break;
      case "outlinelevel":
        this.#heading = value !== undefined && value < 6 ? value + 1 : undefined;
        break;
      case "par":
      case "sect":
      case "page":
      case "column":
        if (group.destination === "html" || this.#isHtmlText()) this.#add("\n");
        else this.#endParagraph();
        break;
      case "cell":
      case "nestcell":
        this.#endParagraph(true);
        break;
      case "row":
      case "nestrow":
        this.#endRow();
    }
  }

  /** Opens an element of an equation: the first word of a group. The others are properties. */
  #openInEquation(name: string): void {
    const group = this.#group;
    if (group.element !== undefined) return;
    group.element = name;
    if (/^(chr|begchr|endchr|sepchr)$/.test(name)) {
      group.destination = "mark";
      this.#mark = "";
    } else this.#equation!.open(name, {});
  }

  /** Skips the next group, which is a copy of the one after it. */
  #skipGroup(): void {
    const source = this.#source;
    let depth = 0;
    for (; this.#at < source.length; this.#at++) {
      const character = source[this.#at]!;
      if (character === "\\") this.#at++;
      else if (character === "{") depth++;
      else if (character === "}" && --depth <= 0) {
        if (depth === 0) this.#at++;
        return;
      }
    }
  }

  #setFont(number: number): void {
    const group = this.#group;
    if (group.destination === "fonts") {
      this.#fontNumber = number;
      this.#fonts.set(number, { name: "", isSymbol: false });
      return;
    }
    group.font = number;
    group.codePage = this.#fonts.get(number)?.codePage ?? this.#defaultCodePage;
  }

  #setScript(script: Group["script"]): void {
    if (this.#group.script === script) return;
    this.#endScript();
    this.#group.script = script;
  }

  /** Writes what is raised or lowered as such. */
  #endScript(): void {
    const start = this.#scriptStart;
    this.#scriptStart = undefined;
    if (start === undefined || start >= this.#text.length) return;
    const format = this.#group.script === "super" ? formatSuperscript : formatSubscript;
    this.#text = this.#text.slice(0, start) + format(this.#text.slice(start));
  }

  #addByte(byte: number): void {
    if (/^(skip|image)$/.test(this.#group.destination)) return;
    const font = this.#fonts.get(this.#group.font);
    if (font?.isSymbol && this.#group.destination === "text") {
      const found = findSymbol(font.name.trim(), byte);
      if (found === undefined) this.sink.note("unmapped", { example: font.name });
      else this.#add(found);
    } else this.#pending.push(byte);
  }

  /** Decodes the bytes so far. A character can have several. */
  #flush(): void {
    if (this.#pending.length === 0) return;
    const bytes = new Uint8Array(this.#pending);
    this.#pending = [];
    const encoding = CODE_PAGES[this.#group.codePage];
    if (encoding === undefined && bytes.some((byte) => byte > 127)) {
      this.sink.note("encoding_unsure", { example: "windows-1252" });
    }
    this.#add(getDecoder(encoding ?? "windows-1252").decode(bytes));
  }

  #isHtmlText(): boolean {
    return this.#wrapsHtml && this.#group.destination === "text";
  }

  #add(text: string): void {
    if (this.#pending.length > 0) this.#flush();
    const { destination, isDeleted, isHtmlCopy, script } = this.#group;
    switch (destination) {
      case "fonts": {
        const font = this.#fonts.get(this.#fontNumber);
        if (font !== undefined && font.name.length < 200) font.name += text.replaceAll(";", "");
        break;
      }
      case "title":
        this.#title += text;
        break;
      case "author":
        this.#author += text;
        break;
      case "html":
        this.#html += text;
        break;
      case "field": {
        const field = this.#fields.at(-1);
        if (field !== undefined) field.code += text;
        break;
      }
      case "equation":
        this.#equation?.text(text);
        break;
      case "mark":
        this.#mark += text;
        break;
      case "text":
        if (isDeleted || isHtmlCopy) break;
        if (this.#wrapsHtml) this.#html += text;
        else {
          if (script !== undefined) this.#scriptStart ??= this.#text.length;
          this.#text += text;
        }
    }
  }

  #endField(): void {
    const { code, start } = this.#fields.pop()!;
    if (this.#wrapsHtml) return;
    const symbol = this.#text.slice(start).trim() === "" ? findFieldSymbol(code) : undefined;
    if (symbol !== undefined) return this.#add(symbol);
    const address = findFieldAddress(code);
    if (address === undefined) return;
    this.#endScript();
    // A field can have paragraphs of its own.
    const from = start <= this.#text.length ? start : 0;
    this.#text = this.#text.slice(0, from) + formatLink(this.#text.slice(from), address, this.sink);
  }

  #startNote(notes: Note[], mark: string): void {
    // A note in a note is part of it.
    if (this.#around !== undefined) return;
    this.#group.script = undefined;
    this.#scriptStart = undefined;
    const author = notes === this.#comments ? this.#author.trim() : "";
    const note: Note = { mark: author === "" ? mark : `${mark} ${author}:`, blocks: [] };
    notes.push(note);
    const text = this.#text + mark;
    this.#around = { blocks: this.#blocks, text, cells: this.#cells, depth: this.#groups.length, note };
    this.#blocks = note.blocks;
    this.#text = "";
    this.#cells = [];
    this.#isInTable = false;
  }

  #endNote(): void {
    const { blocks, text, cells } = this.#around!;
    this.#flush();
    this.#endParagraph();
    this.#endRow();
    this.#around = undefined;
    this.#blocks = blocks;
    this.#text = text;
    this.#cells = cells;
    this.#isInTable = cells.length > 0;
    this.#author = "";
  }

  #endParagraph(isCell = false): void {
    this.#endScript();
    const text = this.#text.replace(/[ \t]*\n[ \t]*/g, "\n").trim();
    this.#text = "";
    if (isCell) this.#cells.push(`${this.#cellText} ${text}`.trim());
    else if (this.#isInTable) this.#cellText = `${this.#cellText} ${text}`.trim();
    else if (text !== "") this.#blocks.push({ text, ...(this.#heading !== undefined && { heading: this.#heading }) });
    if (isCell) this.#cellText = "";
  }

  /** Earlier paragraphs of the cell. */
  #cellText = "";

  #endRow(): void {
    const row = [...this.#cells, ...(this.#cellText === "" ? [] : [this.#cellText])].join(" | ");
    this.#cells = [];
    this.#cellText = "";
    if (/[^ |]/.test(row)) this.#blocks.push({ text: row });
  }
}

/** A control word and its number. A space after it is part of it. */
const CONTROL = /([a-zA-Z]{1,40})(-?\d{1,10})? ?/y;

/** What ends or begins something in data that is skipped. */
const SYNTAX = /[{}\\]/g;

const decoders = new Map<string, TextDecoder>();

function getDecoder(encoding: string): TextDecoder {
  const decoder = decoders.get(encoding) ?? new TextDecoder(encoding);
  decoders.set(encoding, decoder);
  return decoder;
}
