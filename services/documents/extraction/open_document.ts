/** Extracts OpenDocument files of text, tables and slides (ODT, ODS, ODP). */
import { Equation, formatSubscript, formatSuperscript } from "./equations.ts";
import {
  ExtractionFault,
  type ExtractionInput,
  formatLink,
  type PageSink,
  type TextBlock,
  toSections,
} from "./extraction.ts";
import { findFormulaAddress, formatNumber, noteMacros } from "./office_parts.ts";
import { TableWriter } from "./table_writer.ts";
import { joinBytes } from "../../storage/atomic_file.ts";
import { createEntry, writeZip } from "../../storage/zip/zip_writer.ts";
import { getOwn } from "../../json/type_guards.ts";
import { Archive, readPart, readXmlTags, streamXmlTags, type XmlAttributes } from "./xml_archive.ts";

/**
 * Extracts an OpenDocument file. Slides and tables of a spreadsheet start a section each.
 *
 * @throws {ExtractionFault} `encrypted`, `damaged`, `too_large`, `unsupported`
 * @see https://docs.oasis-open.org/office/OpenDocument/v1.3/
 */
export async function extractOpenDocument({ bytes, limits }: ExtractionInput, sink: PageSink): Promise<void> {
  // A flat file is one XML document of all parts (part 3, section 2.1).
  const isFlat = /^(?:\u00ef\u00bb\u00bf)?\s*</.test(new TextDecoder("latin1").decode(bytes.subarray(0, 100)));
  const archive = await Archive.open(isFlat ? await wrapFlat(bytes) : bytes, limits);
  await refuseEncryption(archive);
  if (!archive.entries.has("content.xml")) {
    throw new ExtractionFault("unsupported", "Can't read the file: it isn't an OpenDocument file");
  }
  let title = "";
  readXmlTags(await readPart(archive, "meta.xml"), {
    text: (data, name) => void (title += name === "title" ? data : ""),
  });
  title = title.replace(/\s+/g, " ").trim().slice(0, 300);
  sink.begin({ unit: "section", total: 0, ...(title !== "" && { title }) });
  noteMacros(archive, sink);
  const styles = new Styles();
  const common = new ContentParser({ styles, sink, archive }, "header");
  readXmlTags(await readPart(archive, "styles.xml"), common);
  const content = new ContentParser({ styles, sink, archive }, "body");
  const headers = common.headers.filter(({ text }, n) =>
    /\p{L}/u.test(text) && common.headers.findIndex((other) => other.text === text) === n
  );
  content.blocks.push(...headers);
  for await (const _ of streamXmlTags(archive, "content.xml", content)) {
    for (const part of content.ended.splice(0)) await add(part);
    await content.table?.flush();
  }
  await add(content.end());

  async function add(part: BodyPart): Promise<void> {
    for (const path of part.objects) part.blocks.push(...await readObject(archive, path, sink));
    if (part.table !== undefined) {
      for (const { text } of part.blocks) part.table.addNote(text);
      return await part.table.end();
    }
    for (const section of toSections(part.blocks)) await sink.add(section);
  }
}

/** Puts a flat file into an archive. */
async function wrapFlat(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const entries = ["content.xml", "meta.xml"].map((path) => createEntry(path, bytes));
  return joinBytes(await Array.fromAsync(writeZip(entries, { isLarge: false })));
}

async function refuseEncryption(archive: Archive): Promise<void> {
  readXmlTags(await readPart(archive, "META-INF/manifest.xml"), {
    open(name) {
      if (name !== "encryption-data" && name !== "encrypted-key") return;
      throw new ExtractionFault("encrypted", "Can't read the file: it's protected by a password");
    },
  });
}

/** Returns the text of an embedded equation or chart. */
async function readObject(archive: Archive, path: string, sink: PageSink): Promise<TextBlock[]> {
  const xml = await readPart(archive, `${path}/content.xml`);
  if (/<(?:\w+:)?math\b/.test(xml)) {
    const equation = new Equation();
    readXmlTags(xml, {
      open: (name, attributes) => equation.open(name, attributes),
      text: (data) => equation.text(data),
      close: () => equation.close(),
    });
    return [{ text: equation.result }];
  }
  if (xml === "") sink.note("embedded", { example: path });
  const styles = new Styles();
  const parser = new ContentParser({ styles, sink, archive }, "body");
  readXmlTags(xml, parser);
  const { blocks } = parser.end();
  return blocks;
}

/** What styles mean for the text. */
class Styles {
  readonly scripts = new Map<string, "super" | "sub">();
  /** Styles of tables and pages that aren't shown. */
  readonly hidden = new Set<string>();
  /** Formats of the levels of lists; `undefined` is a bullet. */
  readonly lists = new Map<string, Map<number, ListLevel | undefined>>();
}

interface ListLevel {
  prefix: string;
  suffix: string;
  start: number;
  format: NumberFormat;
  /** Number of levels whose numbers are written: 2 for `2.1`. */
  shown: number;
}

/** A list, from its start to its end. */
interface OpenList {
  style: string;
  id: string | undefined;
  /** Number of the last item; `undefined` before the first one. */
  number: number | undefined;
  /** Number that the next item has by itself. */
  next: number | undefined;
  /** Set until an item has text of its own if the list goes on with the numbers of an earlier one. */
  isContinued: boolean;
}

/** Formats of numbers (ODF 1.3, part 3, section 19.500). */
const NUMBER_FORMATS = { "1": "decimal", a: "lowerLetter", A: "upperLetter", i: "lowerRoman", I: "upperRoman" };
type NumberFormat = typeof NUMBER_FORMATS[keyof typeof NUMBER_FORMATS];

interface Context {
  styles: Styles;
  sink: PageSink;
  archive: Archive;
}

/** A part of the body that ends before the next one: a sheet or a slide, or all the text. */
interface BodyPart {
  blocks: TextBlock[];
  /** Folders of embedded objects. */
  objects: string[];
  table?: TableWriter;
}

/** An open paragraph, with the text of its table cell or note around it. */
interface Paragraph {
  text: string;
  heading?: number;
}

/** A row of a table in a text, or of a sheet. */
interface Row {
  repeated: number;
  /** Column of the next cell, from 0. */
  column: number;
  cells: { column: number; text: string }[];
  cell?: { repeated: number; formula?: string; value?: string; text: string };
}

/** Maximum number of times that a cell or row is repeated. Sheets are filled up with empty ones, which don't count. */
const MAX_REPEATED = 1_000;

/** Elements without text of the document. */
const SKIPPED = new Set([
  ...["tracked-changes", "forms", "binary-data", "dde-source", "script", "scripts", "font-face-decls", "settings"],
  ...["note-citation", "date", "creator-initials", "sender-initials", "calculation-settings", "content-validations"],
  ...["named-expressions", "database-ranges", "sequence-decls", "variable-decls", "user-field-decls", "page-number"],
  ...["page-count", "header-decl", "footer-decl", "date-time-decl", "meta"],
]);

/** Handles the tags of `content.xml` or `styles.xml`. */
class ContentParser {
  blocks: TextBlock[] = [];
  /** Headers and footers of the pages. */
  readonly headers: TextBlock[] = [];
  readonly ended: BodyPart[] = [];
  table: TableWriter | undefined;
  #objects: string[] = [];
  #skipped = 0;
  readonly #paragraphs: Paragraph[] = [];
  readonly #scripts: { start: number; kind: "super" | "sub" | undefined }[] = [];
  readonly #rows: Row[] = [];
  readonly #lists: OpenList[] = [];
  /** The last list of each level that ended, and all that can be continued by their IDs. */
  readonly #endedLists: OpenList[] = [];
  readonly #namedLists = new Map<string, OpenList>();
  readonly #links: { address: string; start: number; paragraph: Paragraph }[] = [];
  #isItemStart = false;
  #isBody = false;
  #isSheet = false;
  #style = "";
  #listStyle = "";
  #rowNumber = 0;
  #slides = 0;
  /** Notes and comments of the part. */
  #notes: TextBlock[] = [];
  #noteCount = 0;
  #commentCount = 0;
  /** What is around an open note, comment or header: its blocks, and the number of its rows. */
  readonly #around: { blocks: TextBlock[]; mark: string; author: string; rows: number }[] = [];
  #equation: { content: Equation; depth: number } | undefined;
  #alternative: string | undefined;

  constructor(readonly context: Context, readonly kind: "header" | "body") {}

  // Arrow functions: the parser is handed on as the handlers of tags.

  open = (name: string, attributes: XmlAttributes, written: Readonly<Record<string, string>>): void => {
    const { sink, styles } = this.context;
    // The date of a comment has no attributes, unlike one in the text.
    const isSkipped = SKIPPED.has(name) && !(name === "date" && Object.keys(attributes).length > 0);
    if (this.#skipped > 0 || isSkipped) {
      if (name === "changed-region") sink.note("tracked_changes");
      return void this.#skipped++;
    }
    if (this.#equation !== undefined) {
      this.#equation.depth++;
      return this.#equation.content.open(name, attributes);
    }
    const paragraph = this.#paragraphs.at(-1);
    const styleName = attributes["style-name"] ?? "";
    switch (name) {
      case "style":
        this.#style = attributes.name ?? "";
        break;
      case "text-properties":
      case "table-properties":
      case "drawing-page-properties":
        this.#readProperties(attributes);
        break;
      case "list-style":
        this.#listStyle = attributes.name ?? "";
        styles.lists.set(this.#listStyle, new Map());
        break;
      case "list-level-style-number":
      case "list-level-style-bullet":
        this.#readListLevel(name, attributes, written);
        break;
      case "body":
        this.#isBody = true;
        break;
      case "spreadsheet":
        this.#isSheet = true;
        break;
      case "table":
        if (this.#isSheet && this.#rows.length === 0 && this.#isBody) this.#startSheet(attributes, styleName);
        break;
      case "table-row":
        this.#openRow(attributes);
        break;
      case "table-column":
        if (this.#isSheet && /^(collapse|filter)$/.test(attributes.visibility ?? "")) {
          sink.note("hidden", { example: `${this.table?.name ?? ""}, column` });
        }
        break;
      case "table-cell":
      case "covered-table-cell":
        this.#openCell(attributes);
        break;
      case "page":
        if (this.#isBody) this.#startSlide(attributes, styleName);
        break;
      case "notes":
        if (this.#isBody) this.#startNote("Notes:");
        break;
      case "header":
      case "footer":
      case "header-left":
      case "footer-left":
      case "header-first":
      case "footer-first":
        if (!this.#isBody) this.#startNote("");
        break;
      case "h":
        this.#paragraphs.push({ text: "", heading: Math.min(6, Number(attributes["outline-level"]) || 1) });
        this.#scripts.push({ start: 0, kind: undefined });
        break;
      case "p":
        this.#paragraphs.push({ text: "" });
        this.#scripts.push({ start: 0, kind: undefined });
        break;
      case "span":
        this.#scripts.push({ start: paragraph?.text.length ?? 0, kind: styles.scripts.get(styleName) });
        break;
      case "s":
        this.#add(" ".repeat(Math.min(1_000, Number(attributes.c) || 1)));
        break;
      case "tab":
        this.#add("\t");
        break;
      case "line-break":
        this.#add("\n");
        break;
      case "ruby-text":
        this.#add("(");
        break;
      case "section":
        if (/^(none|condition)$/.test(attributes.display ?? "")) sink.note("hidden", { example: attributes.name });
        break;
      case "hidden-paragraph":
      case "hidden-text":
        sink.note("hidden");
        this.#add(attributes["string-value"] ?? "");
        break;
      case "list":
        this.#openList(attributes);
        break;
      case "list-header":
        this.#isItemStart = false;
        break;
      case "list-item": {
        this.#isItemStart = true;
        const list = this.#lists.at(-1);
        if (list && attributes["start-value"] !== undefined) list.next = Number(attributes["start-value"]) || 0;
        break;
      }
      case "a":
        if (paragraph) this.#links.push({ address: attributes.href ?? "", start: paragraph.text.length, paragraph });
        break;
      case "note": {
        const mark = `[${++this.#noteCount}]`;
        this.#add(mark);
        this.#startNote(mark);
        break;
      }
      case "annotation": {
        const mark = this.#isSheet ? `[row ${this.#rowNumber + 1}]` : `[c${++this.#commentCount}]`;
        if (!this.#isSheet) this.#add(mark);
        this.#startNote(mark);
        break;
      }
      case "frame":
        this.#alternative = undefined;
        break;
      case "image":
        // An object has an image of itself.
        if (this.#isBody && this.#alternative === undefined) sink.note("image", { example: attributes.href });
        break;
      case "object":
        this.#openObject(attributes.href ?? "");
        break;
      case "object-ole":
      case "applet":
      case "floating-frame":
        sink.note("embedded", { example: attributes.href });
        this.#alternative = "";
        break;
      case "plugin":
        sink.note("media", { example: attributes.href });
        this.#alternative = "";
        break;
      case "math":
        this.#equation = { content: new Equation(), depth: 1 };
        break;
      case "desc":
        if (this.#isBody) this.#paragraphs.push({ text: "" });
    }
  };

  text = (data: string, name: string): void => {
    if (this.#skipped > 0) return;
    if (this.#equation !== undefined) return this.#equation.content.text(data);
    const note = this.#around.at(-1);
    if (name === "creator") {
      if (note !== undefined) note.author += data;
      return;
    }
    const paragraph = this.#paragraphs.at(-1);
    if (paragraph === undefined) return;
    // White space is collapsed (part 3, section 6.1.2).
    const text = data.replace(/[ \t\r\n]+/g, " ");
    paragraph.text += text.startsWith(" ") && /(^|\s)$/.test(paragraph.text) ? text.slice(1) : text;
  };

  close = (name: string): void => {
    if (this.#skipped > 0) return void this.#skipped--;
    if (this.#equation !== undefined) {
      if (--this.#equation.depth > 0) return this.#equation.content.close();
      const { result } = this.#equation.content;
      this.#equation = undefined;
      return this.#add(result);
    }
    switch (name) {
      case "span":
        this.#endScript();
        break;
      case "ruby-text":
        this.#add(")");
        break;
      case "h":
      case "p":
        this.#endScript();
        this.#endParagraph();
        break;
      case "desc":
        if (this.#isBody) this.#endParagraph();
        break;
      case "list":
        this.#closeList();
        break;
      case "a":
        this.#endLink();
        break;
      case "note":
      case "annotation":
        this.#endNote();
        break;
      case "notes":
        if (this.#isBody) this.#endNote();
        break;
      case "header":
      case "footer":
      case "header-left":
      case "footer-left":
      case "header-first":
      case "footer-first":
        if (!this.#isBody && this.#around.length > 0) {
          this.headers.push(...this.blocks);
          this.blocks = this.#around.pop()!.blocks;
        }
        break;
      case "table-cell":
      case "covered-table-cell":
        this.#closeCell();
        break;
      case "table-row":
        this.#closeRow();
        break;
      case "table":
        if (this.#isSheet && this.#rows.length === 0) this.#endPart();
        break;
      case "page":
        if (this.#isBody) this.#endPart();
        break;
      case "body":
        this.#isBody = false;
    }
  };

  /** Ends the last part. */
  end(): BodyPart {
    while (this.#paragraphs.length > 0) this.#endParagraph();
    while (this.#around.length > 0) this.#endNote();
    const part: BodyPart = { blocks: [...this.blocks, ...this.#notes], objects: this.#objects };
    this.#notes = [];
    if (this.table !== undefined) part.table = this.table;
    this.blocks = [];
    this.#objects = [];
    this.table = undefined;
    return part;
  }

  #endPart(): void {
    this.ended.push(this.end());
  }

  #readProperties(attributes: XmlAttributes): void {
    const { styles } = this.context;
    const position = attributes["text-position"];
    if (position !== undefined && !/^0%/.test(position)) {
      styles.scripts.set(this.#style, /^(sub|-)/.test(position) ? "sub" : "super");
    }
    if (attributes.display === "false" || attributes.visibility === "hidden") styles.hidden.add(this.#style);
  }

  #readListLevel(name: string, attributes: XmlAttributes, written: Readonly<Record<string, string>>): void {
    const format = attributes["num-format"] ?? "";
    const level = name.endsWith("bullet") || format === "" ? undefined : {
      prefix: written["style:num-prefix"] ?? "",
      suffix: written["style:num-suffix"] ?? "",
      start: Number(attributes["start-value"] ?? 1) || 0,
      format: getOwn(NUMBER_FORMATS, format) ?? "decimal",
      shown: Number(attributes["display-levels"]) || 1,
    };
    this.context.styles.lists.get(this.#listStyle)?.set(Number(attributes.level), level);
  }

  #startSheet({ name = "" }: XmlAttributes, styleName: string): void {
    const isHidden = this.context.styles.hidden.has(styleName);
    if (isHidden) this.context.sink.note("hidden", { example: name });
    this.table = new TableWriter(this.context.sink, isHidden ? `${name} (hidden)` : name);
    this.#rowNumber = 0;
  }

  #startSlide({ name = "" }: XmlAttributes, styleName: string): void {
    const number = ++this.#slides;
    const isHidden = this.context.styles.hidden.has(styleName);
    if (isHidden) this.context.sink.note("hidden", { example: `slide ${number}` });
    // Programs name slides "page1", "Slide 1" and so on, in their language.
    const title = /^\D{0,20}\d+$/.test(name) || name === "" ? "" : `: ${name}`;
    this.blocks.push({ text: `# Slide ${number}${isHidden ? " (hidden)" : ""}${title}`, heading: 1, isChapter: true });
  }

  #openRow(attributes: XmlAttributes): void {
    const repeated = Number(attributes["number-rows-repeated"]) || 1;
    if (this.#isSheet && /^(collapse|filter)$/.test(attributes.visibility ?? "")) {
      this.context.sink.note("hidden", { example: `${this.table?.name ?? ""}, row ${this.#rowNumber + 1}` });
    }
    this.#rows.push({ repeated, column: 0, cells: [] });
  }

  #openCell(attributes: XmlAttributes): void {
    const row = this.#rows.at(-1);
    if (row === undefined) return;
    const { formula } = attributes;
    const value = attributes.value ?? attributes["date-value"] ?? attributes["time-value"] ??
      attributes["string-value"] ?? attributes["boolean-value"];
    row.cell = { repeated: Number(attributes["number-columns-repeated"]) || 1, formula, value, text: "" };
  }

  #closeCell(): void {
    const row = this.#rows.at(-1);
    const cell = row?.cell;
    if (row === undefined || cell === undefined) return;
    row.cell = undefined;
    // What is shown has the units of the value.
    let text = cell.text || (cell.value ?? "");
    if (cell.formula !== undefined) {
      const { sink } = this.context;
      if (text !== "") {
        sink.note("stored_result");
        text = formatLink(text, findFormulaAddress(cell.formula) ?? "", sink);
      } else {
        sink.note("formula", { example: `${this.table?.name ?? "table"}, row ${this.#rowNumber + 1}` });
        text = cell.formula.replace(/^\w+:(?==)/, "");
      }
    }
    if (text !== "") {
      const repeated = Math.min(cell.repeated, MAX_REPEATED);
      for (let n = 0; n < repeated; n++) row.cells.push({ column: row.column + n, text });
      this.#noteRepeats(cell.repeated);
    }
    row.column += cell.repeated;
  }

  #closeRow(): void {
    const row = this.#rows.pop();
    if (row === undefined) return;
    const { cells, repeated } = row;
    if (this.#isSheet && this.#rows.length === 0) {
      if (this.table !== undefined && cells.length > 0) {
        for (let n = 1; n <= Math.min(repeated, MAX_REPEATED); n++) {
          for (const { column, text } of cells) this.table.addCell(column, text);
          this.table.endRow(this.#rowNumber + n);
        }
        this.#noteRepeats(repeated);
      }
      this.#rowNumber += repeated;
      return;
    }
    const texts: string[] = [];
    for (const { column, text } of cells) if (column < MAX_REPEATED) texts[column] = text;
    const text = Array.from(texts, (text) => text ?? "").join(" | ");
    if (text !== "") this.#addBlock({ text });
  }

  #noteRepeats(repeated: number): void {
    const example = `${this.table?.name ?? "table"}, row ${this.#rowNumber + 1}`;
    this.context.sink.note("repeated", { count: Math.max(0, repeated - MAX_REPEATED), example });
  }

  #openObject(href: string): void {
    this.#alternative = "";
    const path = href.replace(/^\.\//, "");
    const { archive, sink } = this.context;
    if (path === "") return; // The object is inside of the element.
    if (archive.entries.has(`${path}/content.xml`)) this.#objects.push(path);
    else sink.note("embedded", { example: path });
  }

  #add(text: string): void {
    const paragraph = this.#paragraphs.at(-1);
    if (paragraph !== undefined) paragraph.text += text;
  }

  #endScript(): void {
    const script = this.#scripts.pop();
    const paragraph = this.#paragraphs.at(-1);
    if (script?.kind === undefined || paragraph === undefined) return;
    const format = script.kind === "super" ? formatSuperscript : formatSubscript;
    paragraph.text = paragraph.text.slice(0, script.start) + format(paragraph.text.slice(script.start));
  }

  #endParagraph(): void {
    while (this.#links.length > 0 && this.#links.at(-1)!.paragraph === this.#paragraphs.at(-1)) this.#endLink();
    const { text, heading } = this.#paragraphs.pop()!;
    const clean = text.replace(/ *\n */g, "\n").trim();
    const start = this.#isItemStart ? this.#startItem() : "";
    this.#isItemStart = false;
    if (clean !== "") this.#addBlock({ text: start + clean, ...(heading !== undefined && { heading }) });
  }

  #openList(attributes: XmlAttributes): void {
    const outer = this.#lists.at(-1);
    const style = attributes["style-name"] || (outer?.style ?? "");
    const named = this.#namedLists.get(attributes["continue-list"] ?? "");
    const goesOn = attributes["continue-numbering"] === "true" || (outer?.isContinued ?? false);
    const last = this.#endedLists[this.#lists.length];
    const before = named ?? (goesOn && last?.style === style ? last : undefined);
    this.#lists.push({
      ...{ style, id: attributes.id, number: before?.number, next: undefined, isContinued: before !== undefined },
    });
  }

  #closeList(): void {
    const list = this.#lists.pop();
    if (list === undefined) return;
    this.#endedLists[this.#lists.length] = list;
    if (list.id !== undefined) this.#namedLists.set(list.id, list);
  }

  /** Counts an item and returns its number: `"2.1 "`, or `"- "`. */
  #startItem(): string {
    const list = this.#lists.at(-1);
    if (list === undefined) return "";
    const levels = this.context.styles.lists.get(list.style);
    const depth = this.#lists.length;
    const level = levels?.get(depth);
    list.number = list.next ?? (list.number === undefined ? level?.start ?? 1 : list.number + 1);
    list.next = undefined;
    list.isContinued = false;
    this.#endedLists.length = Math.min(this.#endedLists.length, depth);
    if (level === undefined) return "- ";
    const numbers = this.#lists.slice(Math.max(0, depth - level.shown)).map(({ number }, n, shown) => {
      const own = levels?.get(depth - shown.length + n + 1);
      return formatNumber(number ?? own?.start ?? 1, own?.format ?? "decimal");
    });
    return `${level.prefix}${numbers.join(".")}${level.suffix} `;
  }

  #endLink(): void {
    const paragraph = this.#paragraphs.at(-1);
    if (paragraph === undefined || this.#links.at(-1)?.paragraph !== paragraph) return;
    const { address, start } = this.#links.pop()!;
    paragraph.text = paragraph.text.slice(0, start) +
      formatLink(paragraph.text.slice(start), address, this.context.sink);
  }

  /** Adds a block to the open cell, note or text. */
  #addBlock(block: TextBlock): void {
    const cell = this.#rows.length > (this.#around.at(-1)?.rows ?? 0) ? this.#rows.at(-1)!.cell : undefined;
    if (cell !== undefined) cell.text = `${cell.text} ${block.text}`.trim();
    else this.blocks.push(block);
  }

  #startNote(mark: string): void {
    this.#around.push({ blocks: this.blocks, mark, author: "", rows: this.#rows.length });
    this.blocks = [];
  }

  #endNote(): void {
    const note = this.#around.pop();
    if (note === undefined) return;
    const text = this.blocks.map(({ text }) => text).join("\n");
    this.blocks = note.blocks;
    const author = note.author.trim();
    if (text !== "") this.#notes.push({ text: `${note.mark} ${author === "" ? "" : `${author}: `}${text}` });
  }
}
