/** Extracts XLSX files: the cells of all sheets as tables, with comments, text boxes and charts. */
import { ExtractionFault, type ExtractionInput, formatLink, isOle2, type PageSink } from "./extraction.ts";
import { findFormulaAddress, noteMacros, readDrawings, type Relation } from "./office_parts.ts";
import { TableWriter } from "./table_writer.ts";
import {
  Archive,
  readAddresses,
  readPart,
  readRelations,
  readXmlTags,
  streamXmlTags,
  type XmlAttributes,
} from "./xml_archive.ts";

/**
 * Extracts an XLSX file. Formulas are read as their stored results; without one, as they're written.
 *
 * @throws {ExtractionFault} `encrypted`, `damaged`, `too_large`, `unsupported`
 * @see ECMA-376, part 1, section 18 (SpreadsheetML)
 */
export async function extractXlsx({ bytes, limits }: ExtractionInput, sink: PageSink): Promise<void> {
  // ECMA-376 encryption wraps the ZIP in an OLE2 file ([MS-OFFCRYPTO], section 2.3.4.4).
  if (isOle2(bytes)) throw new ExtractionFault("encrypted", "Can't read the file: it's protected by a password");
  const archive = await Archive.open(bytes, limits);
  const main = (await readRelations(archive, "")).find(({ kind }) => kind === "officeDocument")?.path ??
    "xl/workbook.xml";
  const { sheets, is1904 } = parseWorkbook(await readPart(archive, main));
  const relations = await readRelations(archive, main);
  if (sheets.length === 0) throw new ExtractionFault("unsupported", "Can't read the file: it isn't a workbook");
  const readOne = async (kind: string) => {
    const path = relations.find((relation) => relation.kind === kind)?.path;
    return path === undefined ? "" : await readPart(archive, path);
  };
  const book: Workbook = {
    ...{ archive, sink, is1904 },
    formats: parseFormats(await readOne("styles")),
    strings: parseStrings(await readOne("sharedStrings")),
    people: parsePeople(await readOne("person")),
  };
  sink.begin({ unit: "section", total: 0 });
  noteMacros(archive, sink);
  for (const { kind, path } of relations) {
    if (kind === "pivotCacheDefinition" || kind === "externalLink") sink.note("embedded", { example: path });
  }
  for (const { name, id, isHidden } of sheets) {
    const relation = relations.find((relation) => relation.id === id);
    if (isHidden) sink.note("hidden", { example: name });
    if (relation === undefined || !archive.entries.has(relation.path)) sink.note("missing", { example: name });
    else if (relation.kind === "worksheet") await readSheet(book, isHidden ? `${name} (hidden)` : name, relation.path);
    else if (relation.kind === "chartsheet") {
      const table = new TableWriter(sink, name);
      await readSheetParts(book, table, await readRelations(archive, relation.path));
      await table.end();
    } else sink.note("unknown", { example: `${name} (${relation.kind})` });
  }
}

/** What the sheets of a file share. */
interface Workbook {
  archive: Archive;
  sink: PageSink;
  is1904: boolean;
  formats: (style: number) => NumberFormat;
  strings: string[];
  people: ReadonlyMap<string, string>;
}

function parseWorkbook(xml: string): { sheets: { name: string; id: string; isHidden: boolean }[]; is1904: boolean } {
  const sheets: { name: string; id: string; isHidden: boolean }[] = [];
  let is1904 = false;
  readXmlTags(xml, {
    open(tag, { name = "", id = "", state = "visible", date1904 = "0" }) {
      if (tag === "sheet") sheets.push({ name, id, isHidden: state !== "visible" });
      if (tag === "workbookpr") is1904 = isTrue(date1904);
    },
  });
  return { sheets, is1904 };
}

function isTrue(value: string | undefined): boolean {
  return value === "1" || value === "true";
}

/** Returns the texts that cells share. Readings of East Asian text (`rPh`) aren't part of them. */
function parseStrings(xml: string): string[] {
  const strings: string[] = [];
  let isReading = false;
  readXmlTags(xml, {
    open(name) {
      if (name === "si") strings.push("");
      if (name === "rph") isReading = true;
    },
    text(data, name) {
      if (name === "t" && !isReading && strings.length > 0) strings[strings.length - 1] += data;
    },
    close: (name) => void (isReading &&= name !== "rph"),
  });
  return strings;
}

function parsePeople(xml: string): Map<string, string> {
  const people = new Map<string, string>();
  readXmlTags(xml, {
    open(name, { id, displayname }) {
      if (name === "person" && id && displayname) people.set(id, displayname);
    },
  });
  return people;
}

/** How a number is shown, as far as its meaning depends on it. */
interface NumberFormat {
  kind: "number" | "percent" | "date" | "time" | "date_time" | "duration";
  /** Units before and after the number: `"€"`, `" kg"`. */
  prefix: string;
  suffix: string;
}

const GENERAL: NumberFormat = { kind: "number", prefix: "", suffix: "" };

/** Built-in formats with a meaning. @see ECMA-376, part 1, section 18.8.30 */
function findBuiltInFormat(id: number): NumberFormat {
  const kind = id === 9 || id === 10
    ? "percent"
    : id === 22
    ? "date_time"
    : id === 46
    ? "duration"
    : (id >= 18 && id <= 21) || id === 45 || id === 47 || (id >= 32 && id <= 35) || id === 55 || id === 56
    ? "time"
    : (id >= 14 && id <= 17) || (id >= 27 && id <= 36) || (id >= 50 && id <= 58)
    ? "date"
    : "number";
  return { ...GENERAL, kind };
}

/** Parses the first section of a format code, which is that of positive numbers. */
function parseFormat(written: string): NumberFormat {
  // Programs write at most 255 characters.
  const code = written.slice(0, 1000);
  let prefix = "";
  let suffix = "";
  let signs = "";
  // Texts in quotes, escaped characters, currencies and conditions in brackets, padding, and anything else
  for (const [token] of code.matchAll(/"[^"]*"?|\\.|\[[^\]]*\]|[_*].|[^]/g)) {
    if (token === ";") break;
    const text = token.startsWith('"')
      ? token.replaceAll('"', "")
      : token.startsWith("\\")
      ? token.slice(1)
      : /^\[\$[^-\]]/.test(token)
      ? token.slice(2, -1).replace(/-[^-]*$/, "")
      : /^[$€£¥ ]$/.test(token)
      ? token
      : undefined;
    if (text === undefined) {
      if (/^\[(h+|m+|s+)\]$/i.test(token)) signs += "E";
      else if (token.length === 1) signs += token.toLowerCase();
    } else if (/[0#?]/.test(signs)) suffix += text;
    else prefix += text;
  }
  if (signs.includes("E")) return { ...GENERAL, kind: "duration" };
  const letters = signs.replaceAll("general", "").replace(/am\/pm|a\/p/g, "h");
  const hasTime = /[hs]/.test(letters);
  const plain = letters.replace(/[0#?][.0#?]*e[+-]/g, ""); // Without exponents
  const hasDate = !/[#?]/.test(letters) && (/[yde]/.test(plain) || (plain.includes("m") && !hasTime));
  if (hasDate || hasTime) return { ...GENERAL, kind: hasDate ? hasTime ? "date_time" : "date" : "time" };
  if (signs.includes("%")) return { ...GENERAL, kind: "percent" };
  return { kind: "number", prefix: prefix.trimStart(), suffix: suffix.trimEnd() };
}

/** Returns a function that finds the format of a style. */
function parseFormats(xml: string): (style: number) => NumberFormat {
  const own = new Map<number, NumberFormat>();
  const styles: NumberFormat[] = [];
  let isCellStyles = false;
  readXmlTags(xml, {
    open(name, { numfmtid = "0", formatcode = "" }) {
      if (name === "numfmt") own.set(Number(numfmtid), parseFormat(formatcode));
      if (name === "cellxfs") isCellStyles = true;
      if (name === "xf" && isCellStyles) {
        styles.push(own.get(Number(numfmtid)) ?? findBuiltInFormat(Number(numfmtid)));
      }
    },
    close: (name) => void (isCellStyles &&= name !== "cellxfs"),
  });
  return (style) => styles[style] ?? GENERAL;
}

const DAY_MS = 86_400_000;

/** Formats a stored number. Dates are written as in ISO 8601. */
function formatValue(value: string, { kind, prefix, suffix }: NumberFormat, is1904: boolean): string {
  const number = Number(value);
  if (value.trim() === "" || !Number.isFinite(number)) return value;
  // The stored number may have more digits than it's exact to.
  const clean = String(Number(number.toPrecision(15)));
  switch (kind) {
    case "percent":
      return `${Number((number * 100).toPrecision(12))} %`;
    case "number":
      return `${prefix}${clean}${suffix}`;
    case "duration": {
      const seconds = Math.round(number * 86_400);
      return [Math.trunc(seconds / 3600), ...[Math.trunc(seconds / 60) % 60, seconds % 60].map(padTwo)].join(":");
    }
  }
  // Day 60 is 29 February 1900, which didn't exist (ECMA-376, part 1, section 18.17.4.1).
  const days = is1904 ? number + 1462 : number < 60 ? number + 1 : number;
  const time = new Date(Math.round((days - 25_569) * DAY_MS / 1000) * 1000);
  if (number < 0 || Number.isNaN(time.getTime()) || time.getUTCFullYear() > 9999) return clean;
  const [date, clock] = time.toISOString().slice(0, 19).split("T") as [string, string];
  if (kind === "time" && number < 1) return clock;
  return kind === "date" && clock === "00:00:00" ? date : `${date} ${clock}`;
}

/** Decodes characters that XML can't have: `_x000D_`. @see ECMA-376, part 1, section 22.9.2.19 */
function decodeEscapes(text: string): string {
  return text.replace(/_x([\dA-Fa-f]{4})_/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16)));
}

function padTwo(number: number): string {
  return String(Math.abs(number)).padStart(2, "0");
}

/** Returns the number of a column, from 0: 27 for `"AB12"`. */
function parseColumn(reference: string): number | undefined {
  const letters = /^([A-Z]{1,3})\d/i.exec(reference)?.[1]?.toUpperCase();
  if (letters === undefined) return undefined;
  return Array.from(letters, (letter) => letter.charCodeAt(0) - 64).reduce((sum, n) => sum * 26 + n, 0) - 1;
}

async function readSheet(book: Workbook, name: string, path: string): Promise<void> {
  const table = new TableWriter(book.sink, name);
  const reader = new SheetReader(book, table, name, await readAddresses(book.archive, path));
  for await (
    const _ of streamXmlTags(book.archive, path, {
      open: (name, attributes) => reader.open(name, attributes),
      text: (data, name) => reader.text(data, name),
      close: (name) => reader.close(name),
    })
  ) await table.flush();
  await readSheetParts(book, table, await readRelations(book.archive, path));
  await table.end();
}

/** Reads the rows of a sheet from its tags. */
class SheetReader {
  #row = 0;
  #column = 0;
  #cell:
    | { r: string; type: string; style: number; value: string; text: string; formula: string; hasFormula: boolean }
    | undefined;
  #isReading = false;
  #headerText: string | undefined;

  /** Texts of the cells that can be an address, by their references. */
  readonly #addressTexts = new Map<string, string>();

  /** @param addresses Addresses of links by the IDs of the part. */
  constructor(
    readonly book: Workbook,
    readonly table: TableWriter,
    readonly name: string,
    readonly addresses: ReadonlyMap<string, string>,
  ) {}

  open(name: string, { r = "", t = "n", s = "0", hidden, ...others }: XmlAttributes): void {
    const { sink } = this.book;
    switch (name) {
      case "col":
        if (isTrue(hidden)) sink.note("hidden", { example: `${this.name}, column ${others.min ?? ""}` });
        break;
      case "row":
        this.#row = Number(r) || this.#row + 1;
        this.#column = 0;
        if (isTrue(hidden)) sink.note("hidden", { example: `${this.name}, row ${this.#row}` });
        break;
      case "c":
        this.#column = parseColumn(r) ?? this.#column;
        this.#cell = { r, type: t, style: Number(s), value: "", text: "", formula: "", hasFormula: false };
        break;
      case "hyperlink":
        this.#addLink(others.ref ?? "", this.addresses.get(others.id ?? "") ?? "");
        break;
      case "f":
        if (this.#cell) this.#cell.hasFormula = true;
        break;
      case "rph":
        this.#isReading = true;
        break;
      case "oddheader":
      case "oddfooter":
        this.#headerText = "";
    }
  }

  text(data: string, name: string): void {
    if (this.#headerText !== undefined) this.#headerText += data;
    if (this.#cell === undefined) return;
    if (name === "v") this.#cell.value += data;
    else if (name === "f") this.#cell.formula += data;
    else if (name === "t" && !this.#isReading) this.#cell.text += data;
  }

  close(name: string): void {
    switch (name) {
      case "rph":
        this.#isReading = false;
        break;
      case "c":
        this.#addCell(this.#cell!.r, this.#getText());
        this.#cell = undefined;
        break;
      case "row":
        this.table.endRow(this.#row);
        break;
      case "oddheader":
      case "oddfooter": {
        // Codes for fonts, sizes, colors, positions and fields start with "&" (section 18.3.1.46).
        const text = (this.#headerText ?? "").replace(/&(?:"[^"]*"|\d+|K[\dA-F]{6}|[A-Z])/g, " ").replaceAll("&&", "&");
        if (/\p{L}/u.test(text)) this.table.addNote(text.replace(/\s+/g, " ").trim());
        this.#headerText = undefined;
      }
    }
  }

  #addCell(reference: string, text: string): void {
    if (/:\/\/|www\.|@/.test(text)) this.#addressTexts.set(reference, text);
    this.table.addCell(this.#column++, text);
  }

  /** Adds the address of a link below the table unless the cell has it. Links are listed after the cells. */
  #addLink(reference: string, address: string): void {
    const [first = ""] = reference.split(":");
    const text = this.#addressTexts.get(first) ?? first;
    if (formatLink(text, address, this.book.sink) !== text) this.table.addNote(`[${first}] ${address.trim()}`);
  }

  #getText(): string {
    const text = this.#getStoredText();
    const address = findFormulaAddress(this.#cell!.formula);
    return address === undefined || text.startsWith("=") ? text : formatLink(text, address, this.book.sink);
  }

  #getStoredText(): string {
    const { type, style, value, text, formula, hasFormula } = this.#cell!;
    const { sink, strings, formats, is1904 } = this.book;
    if (hasFormula) {
      if (value === "" && text === "") {
        sink.note("formula", { example: `${this.name}, row ${this.#row}` });
        return formula === "" ? "" : `=${formula}`;
      }
      sink.note("stored_result");
    }
    switch (type) {
      case "s": {
        const found = strings[Number(value)];
        if (found === undefined) sink.note("missing", { example: `${this.name}, row ${this.#row}` });
        return decodeEscapes(found ?? "");
      }
      case "inlineStr":
        return decodeEscapes(text);
      case "str":
        return decodeEscapes(value);
      case "b":
        return isTrue(value) ? "TRUE" : "FALSE";
      case "n":
        return value === "" ? text : formatValue(value, formats(style), is1904);
      default: // Text, errors, and dates in ISO 8601
        return value;
    }
  }
}

/** Reads what a sheet has besides its cells: comments, text boxes, images and charts. */
async function readSheetParts(
  { archive, sink, people }: Workbook,
  table: TableWriter,
  relations: readonly Relation[],
): Promise<void> {
  const hasThreads = relations.some(({ kind }) => kind === "threadedComment");
  for (const { kind, path } of relations) {
    // Threads have copies among the old comments, for old programs.
    if (kind === "threadedComment" || (kind === "comments" && !hasThreads)) {
      for (const comment of parseComments(await readPart(archive, path), people)) table.addNote(comment);
    } else if (kind === "drawing") {
      const drawing = parseDrawing(await readPart(archive, path));
      for (const text of drawing.texts) table.addNote(text);
      sink.note("image", { count: drawing.images });
      for (const { text } of await readDrawings(archive, await readRelations(archive, path), sink)) table.addNote(text);
    } else if (/^(oleObject|package|control|ctrlProp)$/.test(kind)) sink.note("embedded", { example: path });
    else if (kind === "image") sink.note("image", { example: path });
    else if (
      !/^(vmlDrawing|comments|printerSettings|table|hyperlink|pivotTable|queryTable|customProperty)$/.test(kind)
    ) {
      sink.note("unknown", { example: `${table.name}: ${kind}` });
    }
  }
}

function parseComments(xml: string, people: ReadonlyMap<string, string>): string[] {
  const authors: string[] = [];
  const comments: { at: string; author: string; text: string }[] = [];
  readXmlTags(xml, {
    open(name, { ref = "", authorid = "", personid = "" }) {
      if (name === "author") authors.push("");
      if (name === "comment") comments.push({ at: ref, author: authors[Number(authorid)] ?? "", text: "" });
      if (name === "threadedcomment") comments.push({ at: ref, author: people.get(personid) ?? "", text: "" });
    },
    text(data, name) {
      if (name === "author") authors[authors.length - 1] += data;
      const comment = comments.at(-1);
      if (comment !== undefined && (name === "t" || name === "text")) comment.text += data;
    },
  });
  return comments.map(({ at, author, text }) => {
    const clean = text.trim();
    const by = author === "" || clean.startsWith(`${author}:`) ? "" : `${author}: `;
    return `[${at}] ${by}${clean}`;
  });
}

function parseDrawing(xml: string): { texts: string[]; images: number } {
  const texts: string[] = [];
  let text = "";
  let images = 0;
  readXmlTags(xml, {
    open(name, { descr = "" }) {
      if (name === "blip") images++;
      if (name === "cnvpr" && descr !== "") texts.push(descr);
    },
    text: (data, name) => void (text += name === "t" ? data : ""),
    close(name) {
      if (name === "p" && text !== "") text += "\n";
      if (name !== "txbody") return;
      if (text.trim() !== "") texts.push(text.trim());
      text = "";
    },
  });
  return { texts, images };
}
