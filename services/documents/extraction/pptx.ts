/** Extracts PPTX files: the text of the slides, with tables, charts, speaker notes and comments. */
import { Equation, formatSubscript, formatSuperscript } from "./equations.ts";
import {
  ExtractionFault,
  type ExtractionInput,
  formatLink,
  isOle2,
  type PageSink,
  type TextBlock,
  toSections,
} from "./extraction.ts";
import { noteMacros, readDrawings, type Relation } from "./office_parts.ts";
import { Archive, readAddresses, readPart, readRelations, readXmlTags, type XmlAttributes } from "./xml_archive.ts";

/**
 * Extracts a PPTX file. Each slide starts a section.
 *
 * @throws {ExtractionFault} `encrypted`, `damaged`, `too_large`, `unsupported`
 * @see ECMA-376, part 1, section 19 (PresentationML)
 */
export async function extractPptx({ bytes, limits }: ExtractionInput, sink: PageSink): Promise<void> {
  // ECMA-376 encryption wraps the ZIP in an OLE2 file ([MS-OFFCRYPTO], section 2.3.4.4).
  if (isOle2(bytes)) throw new ExtractionFault("encrypted", "Can't read the file: it's protected by a password");
  const archive = await Archive.open(bytes, limits);
  const main = (await readRelations(archive, "")).find(({ kind }) => kind === "officeDocument")?.path ??
    "ppt/presentation.xml";
  if (!archive.entries.has(main)) {
    throw new ExtractionFault("unsupported", "Can't read the file: it isn't a presentation");
  }
  const ids: string[] = [];
  readXmlTags(await readPart(archive, main), {
    open(name, _, written) {
      // Slides have an id of their own, too, whose name has no namespace.
      if (name === "sldid") ids.push(Object.entries(written).find(([key]) => /:id$/i.test(key))?.[1] ?? "");
    },
  });
  const relations = await readRelations(archive, main);
  const people = await readAuthors(archive, relations);
  sink.begin({ unit: "section", total: 0 });
  noteMacros(archive, sink);
  for (const [index, id] of ids.entries()) {
    const path = relations.find((relation) => relation.id === id)?.path;
    if (path === undefined || !archive.entries.has(path)) {
      sink.note("missing", { example: `slide ${index + 1}` });
      continue;
    }
    for (const section of toSections(await readSlide(archive, path, index + 1, people, sink))) await sink.add(section);
  }
}

/** Returns the names of the authors of comments by their ids. */
async function readAuthors(archive: Archive, relations: readonly Relation[]): Promise<Map<string, string>> {
  const people = new Map<string, string>();
  for (const { path } of relations.filter(({ kind }) => kind === "commentAuthors" || kind === "authors")) {
    readXmlTags(await readPart(archive, path), {
      open(tag, { id, name }) {
        if (/^(cmauthor|author)$/.test(tag) && id !== undefined && name) people.set(id, name);
      },
    });
  }
  return people;
}

async function readSlide(
  archive: Archive,
  path: string,
  number: number,
  people: ReadonlyMap<string, string>,
  sink: PageSink,
): Promise<TextBlock[]> {
  const relations = await readRelations(archive, path);
  const { title, blocks, isHidden } = parseShapes(
    await readPart(archive, path),
    await readAddresses(archive, path),
    sink,
  );
  if (isHidden) sink.note("hidden", { example: `slide ${number}` });
  const heading = `# Slide ${number}${isHidden ? " (hidden)" : ""}${title === "" ? "" : `: ${title}`}`;
  const after = await readDrawings(archive, relations, sink);
  for (const { kind, path } of relations) {
    if (kind === "notesSlide") {
      // Notes pages have the slide as an image, which isn't an image of the file.
      const notes = parseShapes(await readPart(archive, path), await readAddresses(archive, path), undefined);
      const text = notes.blocks.map(({ text }) => text).join("\n");
      if (text !== "") after.push({ text: `Notes: ${text}` });
    } else if (kind === "comments") {
      after.push(...parseComments(await readPart(archive, path), people));
    } else if (/^(audio|video|media)$/.test(kind)) {
      // A recording has two relations: one of them is for old programs.
      if (kind !== "media") sink.note("media", { example: path });
    } else if (/^(oleObject|package|control|customXml)$/.test(kind)) sink.note("embedded", { example: path });
    else if (!KNOWN_PARTS.test(kind)) sink.note("unknown", { example: `slide ${number}: ${kind}` });
  }
  return [{ text: heading, heading: 1, isChapter: true }, ...blocks, ...after];
}

/** Parts without text, and those that are read elsewhere. */
const KNOWN_PARTS = new RegExp(
  "^(slideLayout|image|hdphoto|chart|chartEx|diagram\\w+|vmlDrawing|hyperlink|slide|tags|themeOverride|notesMaster|" +
    "slideUpdateInfo|theme)$",
);

/** Placeholders whose text isn't written by the author of the slide. */
const FILLED_IN = new Set(["sldnum", "dt", "sldimg"]);

/** Returns title, paragraphs and table rows of a slide or its notes, in the order of the file. */
function parseShapes(
  xml: string,
  addresses: ReadonlyMap<string, string>,
  sink: PageSink | undefined,
): { title: string; blocks: TextBlock[]; isHidden: boolean } {
  const parser = new ShapeParser(addresses, sink);
  readXmlTags(xml, {
    open: (name, attributes) => parser.open(name, attributes),
    text: (data, name) => parser.text(data, name),
    close: (name) => parser.close(name),
  });
  return parser;
}

/** Collects the text of shapes from tags. */
class ShapeParser {
  title = "";
  readonly blocks: TextBlock[] = [];
  isHidden = false;
  /** The kind of the shape's placeholder. */
  #kind = "";
  #text = "";
  #level = 0;
  #shift = 0;
  /** Nesting depth in copies for old programs, and in fields that are filled in. */
  #skipped = 0;
  #cells: string[] | undefined;
  #equation: { content: Equation; depth: number } | undefined;

  #runStart = 0;
  #isRun = false;
  /** Links of the paragraph: neighboring runs with the same address are one. */
  #links: { start: number; end: number; address: string }[] = [];
  #address: string | undefined;

  constructor(readonly addresses: ReadonlyMap<string, string>, readonly sink: PageSink | undefined) {}

  open(name: string, attributes: XmlAttributes): void {
    if (name === "fallback" || this.#skipped > 0) return void this.#skipped++;
    if (this.#equation !== undefined) {
      this.#equation.depth++;
      return this.#equation.content.open(name, attributes);
    }
    const { type = "", show = "1", descr = "", baseline = "0", lvl = "0" } = attributes;
    switch (name) {
      case "sld":
        this.isHidden = /^(0|false)$/.test(show);
        break;
      case "sp":
      case "graphicframe":
      case "pic":
        this.#kind = "";
        break;
      case "ph":
        this.#kind = type.toLowerCase();
        break;
      case "cnvpr":
        if (descr !== "" && this.sink) this.blocks.push({ text: descr });
        break;
      case "blip":
        this.sink?.note("image");
        break;
      case "r":
        this.#isRun = true;
        this.#runStart = this.#text.length;
        break;
      case "hlinkclick": {
        const address = this.addresses.get(attributes.id ?? "");
        if (this.#isRun) this.#address = address;
        else formatLink("", address ?? "", this.sink ?? { note: () => {} });
        break;
      }
      case "ppr":
        this.#level = Number(lvl) || 0;
        break;
      case "rpr":
        this.#shift = Number(baseline) || 0;
        break;
      case "fld":
        // Slide numbers and dates
        if (/^(slidenum|datetime)/.test(type)) this.#skipped++;
        break;
      case "br":
        this.#text += "\n";
        break;
      case "tr":
        this.#cells = [];
        break;
      case "tc":
        this.#cells?.push("");
        break;
      case "omath":
        this.#equation = { content: new Equation(), depth: 1 };
    }
  }

  text(data: string, name: string): void {
    if (this.#skipped > 0) return;
    if (this.#equation !== undefined) return this.#equation.content.text(data);
    if (name !== "t") return;
    this.#text += this.#shift > 0 ? formatSuperscript(data) : this.#shift < 0 ? formatSubscript(data) : data;
  }

  close(name: string): void {
    if (this.#skipped > 0) return void this.#skipped--;
    if (this.#equation !== undefined) {
      if (--this.#equation.depth > 0) return this.#equation.content.close();
      this.#text += this.#equation.content.result;
      this.#equation = undefined;
      return;
    }
    if (name === "r") this.#endRun();
    else if (name === "p") this.#endParagraph();
    else if (name === "tr") {
      const row = this.#cells?.join(" | ") ?? "";
      if (/[^ |]/.test(row)) this.blocks.push({ text: row });
      this.#cells = undefined;
    }
  }

  #endRun(): void {
    this.#shift = 0;
    this.#isRun = false;
    const address = this.#address;
    this.#address = undefined;
    if (address === undefined) return;
    const last = this.#links.at(-1);
    if (last?.address === address && last.end === this.#runStart) last.end = this.#text.length;
    else this.#links.push({ start: this.#runStart, end: this.#text.length, address });
  }

  #endParagraph(): void {
    for (const { start, end, address } of this.#links.splice(0).reverse()) {
      const linked = formatLink(this.#text.slice(start, end), address, this.sink ?? { note: () => {} });
      this.#text = this.#text.slice(0, start) + linked + this.#text.slice(end);
    }
    const text = this.#text.trim();
    const level = this.#level;
    this.#text = "";
    this.#level = 0;
    this.#shift = 0;
    if (text === "" || FILLED_IN.has(this.#kind)) return;
    if (this.#cells !== undefined) return void this.#cells.push(`${this.#cells.pop() ?? ""} ${text}`.trim());
    if (/^(title|ctrtitle)$/.test(this.#kind)) this.title = `${this.title} ${text}`.replace(/\s+/g, " ").trim();
    else this.blocks.push({ text: level === 0 ? text : `${"  ".repeat(level - 1)}- ${text}` });
  }
}

/** Returns the comments of a slide, those of current and of old programs. */
function parseComments(xml: string, people: ReadonlyMap<string, string>): TextBlock[] {
  const comments: { author: string; text: string }[] = [];
  readXmlTags(xml, {
    open(name, { authorid = "" }) {
      if (name === "cm" || name === "reply") comments.push({ author: people.get(authorid) ?? "", text: "" });
    },
    text(data, name) {
      const comment = comments.at(-1);
      if (comment !== undefined && (name === "t" || name === "text")) comment.text += data;
    },
  });
  return comments.map(({ author, text }) => ({ text: `[${author === "" ? "" : `${author}: `}${text.trim()}]` }));
}
