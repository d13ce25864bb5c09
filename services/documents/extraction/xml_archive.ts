/** ZIP archives of XML, read in memory, and extraction of DOCX files, which are such archives. */
import { AppError } from "../../errors.ts";
import { readWholeContent, readZipDirectory, type ZipEntry } from "../../storage/zip/zip_reader.ts";
import {
  decodeText,
  ExtractionFault,
  type ExtractionInput,
  type ExtractionLimits,
  isOle2,
  type PageSink,
  type TextBlock,
  toSections,
} from "./extraction.ts";
import type { RandomAccessFile } from "../../storage/atomic_file.ts";
import { Parser } from "htmlparser2";

/** Maximum number of entries. No book or text has more. */
const MAX_ENTRIES = 50_000;

/** An archive of a document. Inflates up to a number of bytes for all entries together. */
export class Archive {
  #inflatedBytes = 0;

  private constructor(
    readonly file: MemoryFile,
    readonly entries: ReadonlyMap<string, ZipEntry>,
    readonly limits: ExtractionLimits,
  ) {}

  /** @throws {ExtractionFault} `damaged`, `too_large` */
  static async open(bytes: Uint8Array, limits: ExtractionLimits): Promise<Archive> {
    const file = new MemoryFile(bytes);
    const { entries } = await toFault(readZipDirectory(file, MAX_ENTRIES));
    return new Archive(file, new Map(entries.map((entry) => [entry.path, entry])), limits);
  }

  /** Returns the content of an entry; `undefined` if there is none. @throws {ExtractionFault} */
  async read(path: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const entry = this.entries.get(path);
    if (entry === undefined) return undefined;
    if (entry.method === -1) {
      throw new ExtractionFault("encrypted", "Can't read the file: it's protected by a password");
    }
    this.#inflatedBytes += entry.sizeBytes;
    if (this.#inflatedBytes > this.limits.inflatedBytes) {
      const limit = Math.round(this.limits.inflatedBytes / 1024 / 1024);
      throw new ExtractionFault("too_large", `Can't read the file: it's larger than ${limit} MiB when decompressed`);
    }
    return await toFault(readWholeContent(this.file, entry));
  }
}

async function toFault<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new ExtractionFault(error.code === "too_large" ? "too_large" : "damaged", error.message);
  }
}

/** A file in memory. */
class MemoryFile implements RandomAccessFile {
  #at = 0;

  constructor(readonly bytes: Uint8Array) {}

  stat(): Promise<{ size: number }> {
    return Promise.resolve({ size: this.bytes.length });
  }

  seek(offset: number): Promise<number> {
    return Promise.resolve(this.#at = offset);
  }

  read(into: Uint8Array): Promise<number | null> {
    const piece = this.bytes.subarray(this.#at, this.#at + into.length);
    into.set(piece);
    this.#at += piece.length;
    return Promise.resolve(piece.length === 0 && into.length > 0 ? null : piece.length);
  }
}

/** Attributes by their names without namespaces. */
type XmlAttributes = Record<string, string | undefined>;

/** Handlers for the parts of a file. Names are in lower case, without namespaces. */
interface XmlHandlers {
  open?(name: string, attributes: XmlAttributes): void;
  /** @param name The innermost open element. */
  text?(text: string, name: string): void;
  close?(name: string): void;
}

/**
 * Reads a file as a stream of tags: memory and time are proportional to its length, no matter how deeply it's nested.
 * Declared entities aren't expanded, and nothing outside the file is read.
 */
export function readXmlTags(xml: string, { open, text, close }: XmlHandlers): void {
  const stack: string[] = [];
  const parser = new Parser({
    onopentag(name, attributes) {
      stack.push(toLocalName(name));
      open?.(stack.at(-1)!, toLocalNames(attributes));
    },
    ontext: (data) => text?.(data, stack.at(-1) ?? ""),
    onclosetag() {
      const name = stack.pop();
      if (name !== undefined) close?.(name);
    },
  }, { xmlMode: true, decodeEntities: true });
  parser.write(xml);
  parser.end();
}

function toLocalName(name: string): string {
  return name.slice(name.indexOf(":") + 1).toLowerCase();
}

function toLocalNames(attributes: Record<string, string>): XmlAttributes {
  const local: XmlAttributes = Object.create(null);
  for (const name in attributes) local[toLocalName(name)] = attributes[name];
  return local;
}

const MAIN_PART = /^word\/document\d*\.xml$/i;
/** Elements whose text isn't part of the document: deleted text, field codes, copies of drawings for old programs. */
const SKIPPED = new Set(["del", "movefrom", "instrtext", "deltext", "fallback"]);

/**
 * Extracts a DOCX file. The file doesn't say where pages end, so the text is divided into sections.
 *
 * @throws {ExtractionFault} `encrypted`, `damaged`, `too_large`, `unsupported`
 * @see ECMA-376, part 1, section 17 (WordprocessingML)
 */
export async function extractDocx({ bytes, limits }: ExtractionInput, sink: PageSink): Promise<void> {
  // ECMA-376 encryption wraps the ZIP in an OLE2 file ([MS-OFFCRYPTO], section 2.3.4.4).
  if (isOle2(bytes)) throw new ExtractionFault("encrypted", "Can't read the file: it's protected by a password");
  const archive = await Archive.open(bytes, limits);
  const main = [...archive.entries.keys()].find((path) => MAIN_PART.test(path));
  if (main === undefined) throw new ExtractionFault("unsupported", "Can't read the file: it isn't a Word document");
  const headings = parseHeadings(await readPart(archive, "word/styles.xml"));
  const text = await readPart(archive, main);
  const { blocks, isComplete } = parseBody(text, headings);
  if (!isComplete) throw new ExtractionFault("damaged", "Can't read the file: its text is truncated");
  sink.begin({ unit: "section", total: 0 });
  const notes = parseNotes(await readPart(archive, "word/footnotes.xml"));
  for (const section of toSections([...blocks, ...notes])) await sink.add(section);
}

async function readPart(archive: Archive, path: string): Promise<string> {
  const bytes = await archive.read(path);
  return bytes === undefined ? "" : decodeText(bytes);
}

/** Returns the levels of heading styles by ID. */
function parseHeadings(xml: string): Map<string, number> {
  const headings = new Map<string, number>();
  let style = "";
  readXmlTags(xml, {
    open(name, { styleid = "", val = "" }) {
      if (name === "style") style = styleid;
      const byName = name === "name"
        ? /^heading ([1-6])$/i.exec(val)?.[1] ?? (/^title$/i.test(val) ? "1" : undefined)
        : undefined;
      const level = name === "outlinelvl" ? Number(val) + 1 : Number(byName);
      if (style !== "" && level >= 1 && level <= 6) headings.set(style, level);
    },
  });
  return headings;
}

/** Returns paragraphs and table rows. @returns `isComplete` false if the document isn't closed. */
function parseBody(xml: string, headings: ReadonlyMap<string, number>): { blocks: TextBlock[]; isComplete: boolean } {
  const blocks: TextBlock[] = [];
  let text = "";
  let heading: number | undefined;
  let isItem = false;
  let skipped = 0;
  let notes = 0;
  let isTextOpen = false;
  /** Cells of the open rows, the innermost last. Tables can be nested. */
  const rows: string[][] = [];
  const endParagraph = () => {
    const clean = text.trim();
    const cells = rows.at(-1);
    if (clean !== "" && cells !== undefined) cells.push(`${cells.pop() ?? ""} ${clean}`.trim());
    else if (clean !== "") {
      blocks.push({ text: isItem ? `- ${clean}` : clean, ...(heading !== undefined && { heading }) });
    }
    [text, heading, isItem] = ["", undefined, false];
  };
  readXmlTags(xml, {
    open(name, { val = "" }) {
      if (SKIPPED.has(name)) skipped++;
      if (skipped > 0) return;
      if (name === "p") endParagraph(); // A text box inside a paragraph
      else if (name === "pstyle") heading = headings.get(val);
      else if (name === "numpr") isItem = true;
      else if (name === "tr") rows.push([]);
      else if (name === "tc") rows.at(-1)?.push("");
      else if (name === "t") isTextOpen = true;
      else if (name === "tab") text += "\t";
      else if (name === "br" || name === "cr") text += "\n";
      else if (name === "nobreakhyphen") text += "-";
      else if (name === "footnotereference") text += `[${++notes}]`;
    },
    text(data) {
      if (skipped === 0 && isTextOpen) text += data;
    },
    close(name) {
      if (SKIPPED.has(name)) skipped = Math.max(0, skipped - 1);
      if (name === "t") isTextOpen = false;
      if (skipped > 0) return;
      if (name === "p") endParagraph();
      if (name !== "tr") return;
      const row = rows.pop()?.join(" | ") ?? "";
      const outer = rows.at(-1);
      if (outer !== undefined) outer.push(`${outer.pop() ?? ""} ${row}`.trim());
      else if (/[^ |]/.test(row)) blocks.push({ text: row });
    },
  });
  endParagraph();
  return { blocks, isComplete: /<\/(?:[\w.-]{1,20}:)?document\s*>\s*$/.test(xml.slice(-200)) };
}

/** Returns the footnotes, numbered as in the text. The first two are separators ([ECMA-376], 17.11.23). */
function parseNotes(xml: string): TextBlock[] {
  const notes: string[] = [];
  let isNote = false;
  readXmlTags(xml, {
    open(name, { type = "normal" }) {
      if (name !== "footnote") return;
      isNote = type === "normal";
      if (isNote) notes.push("");
    },
    text(data, name) {
      if (isNote && name === "t") notes.push(notes.pop() + data);
    },
  });
  return notes.map((note, n) => ({ text: `[${n + 1}] ${note.trim()}` }));
}
