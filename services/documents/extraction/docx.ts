/** Extracts DOCX files: text, tables, notes, comments, headers, numbers of lists, symbols and equations. */
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
import { findFieldAddress, findSymbol, formatNumber, noteMacros, readDrawings } from "./office_parts.ts";
import { Archive, readAddresses, readPart, readRelations, readXmlTags, type XmlAttributes } from "./xml_archive.ts";

const MAIN_PART = /^word\/document\d*\.xml$/i;
/** Elements whose text isn't part of the document: deleted text, copies of drawings for old programs. */
const SKIPPED = new Set(["del", "movefrom", "deltext", "fallback"]);
/** Elements around changed text. */
const CHANGES = new Set(["ins", "del", "moveto", "movefrom"]);

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
  const named = (await readRelations(archive, "")).find(({ kind }) => kind === "officeDocument")?.path;
  const main = named !== undefined && archive.entries.has(named)
    ? named
    : [...archive.entries.keys()].find((path) => MAIN_PART.test(path));
  if (main === undefined) throw new ExtractionFault("unsupported", "Can't read the file: it isn't a Word document");
  const relations = await readRelations(archive, main);
  /** Reads all parts of a kind. Without relationships, they have their usual names. */
  const readParts = async (kind: string) => {
    const own = relations.filter((relation) => relation.kind === kind).map(({ path }) => path);
    const paths = own.length > 0 ? own : [`word/${kind}.xml`];
    // One after the other: the archive is read at one position.
    return await Array.fromAsync(
      paths,
      async (path) => ({ xml: await readPart(archive, path), addresses: await readAddresses(archive, path) }),
    );
  };
  const styles = parseStyles((await readParts("styles"))[0]!.xml);
  const numbering = parseNumbering((await readParts("numbering"))[0]!.xml);
  const xml = await readPart(archive, main);
  if (!/<\/(?:[\w.-]{1,20}:)?document\s*>\s*$/.test(xml.slice(-200))) {
    throw new ExtractionFault("damaged", "Can't read the file: its text is truncated");
  }
  const context = { styles, numbering, references: new References(), sink, addresses: new Map<string, string>() };
  const body = parseBlocks(xml, { ...context, addresses: await readAddresses(archive, main) });
  const [headers, footers] = [await readParts("header"), await readParts("footer")].map((parts) =>
    listDistinct(parts.flatMap(({ xml, addresses }) => parseBlocks(xml, { ...context, addresses })))
  );
  const notes: TextBlock[] = [];
  for (const kind of ["footnote", "endnote"] as const) {
    for (const { xml, addresses } of await readParts(`${kind}s`)) {
      notes.push(...parseNotes(xml, kind, { ...context, addresses }));
    }
  }
  const comments: TextBlock[] = [];
  for (const { xml, addresses } of await readParts("comments")) {
    comments.push(...parseNotes(xml, "comment", { ...context, addresses }));
  }
  sink.begin({ unit: "section", total: 0 });
  noteMacros(archive, sink);
  const drawings = await readDrawings(archive, relations, sink);
  for (const section of toSections([...headers!, ...body, ...notes, ...comments, ...drawings, ...footers!])) {
    await sink.add(section);
  }
}

/** Returns blocks with letters, each once: documents have a header for first, odd and even pages. */
function listDistinct(blocks: readonly TextBlock[]): TextBlock[] {
  const seen = new Set<string>();
  return blocks.filter(({ text }) => /\p{L}/u.test(text) && !seen.has(text) && seen.add(text));
}

/** Where a paragraph is in a list. */
interface ListPosition {
  numId?: string;
  level?: number;
}

/** The relevant properties of a style. */
interface Style extends ListPosition {
  heading?: number;
  basedOn?: string;
}

function parseStyles(xml: string): (id: string) => Style {
  const styles = new Map<string, Style>();
  let style: Style | undefined;
  readXmlTags(xml, {
    open(name, { styleid = "", val = "" }) {
      if (name === "style") styles.set(styleid, style = {});
      if (style === undefined) return;
      const byName = /^heading ([1-6])$/i.exec(val)?.[1] ?? (/^title$/i.test(val) ? "1" : undefined);
      const level = name === "outlinelvl" ? Number(val) + 1 : name === "name" ? Number(byName) : NaN;
      if (level >= 1 && level <= 6) style.heading = level;
      if (name === "basedon") style.basedOn = val;
      if (name === "numid") style.numId = val;
      if (name === "ilvl") style.level = Number(val);
    },
  });
  return (id) => {
    const found: Style = {};
    const seen = new Set<string>();
    for (let at: string | undefined = id; at !== undefined && !seen.has(at);) {
      seen.add(at);
      const { heading, numId, level, basedOn }: Style = styles.get(at) ?? {};
      found.heading ??= heading;
      found.numId ??= numId;
      found.level ??= level;
      at = basedOn;
    }
    return found;
  };
}

/** A level of a list. */
interface ListLevel {
  start: number;
  format: string;
  /** `%1.%2` */
  text: string;
}

/** Lists: their levels, and the numbers reached so far. */
interface ListKind {
  levels: Map<number, ListLevel>;
  counts: number[];
}

/** Returns a function that counts a paragraph and returns its number: `"2.1 "`, or `"- "`. */
function parseNumbering(xml: string): (position: ListPosition) => string {
  const kinds = new Map<string, ListKind>();
  const lists = new Map<string, { kind?: ListKind; starts: Map<number, number> }>();
  let kind: ListKind | undefined;
  let list: { kind?: ListKind; starts: Map<number, number> } | undefined;
  let level: ListLevel | undefined;
  let overridden = 0;
  readXmlTags(xml, {
    open(name, { abstractnumid = "", numid = "", ilvl = "0", val = "" }) {
      if (name === "abstractnum") kinds.set(abstractnumid, kind = { levels: new Map(), counts: [] });
      else if (name === "num") lists.set(numid, list = { starts: new Map() });
      else if (name === "abstractnumid") list && (list.kind = kinds.get(val));
      else if (name === "lvloverride") overridden = Number(ilvl);
      else if (name === "startoverride") list?.starts.set(overridden, Number(val));
      else if (name === "lvl" && list === undefined) {
        kind?.levels.set(Number(ilvl), level = { start: 1, format: "decimal", text: "" });
      } else if (level !== undefined && list === undefined) {
        if (name === "start") level.start = Number(val);
        if (name === "numfmt") level.format = val;
        if (name === "lvltext") level.text = val;
      }
    },
  });
  const started = new Set<string>();
  return ({ numId = "", level: at = 0 }) => {
    if (numId === "0") return "";
    const found = lists.get(numId);
    const own = found?.kind?.levels.get(at);
    if (found?.kind === undefined || own === undefined) return "- ";
    const { kind: { counts, levels }, starts } = found;
    const isFirst = !started.has(`${numId}/${at}`);
    started.add(`${numId}/${at}`);
    if (isFirst && starts.has(at)) counts.length = Math.min(counts.length, at);
    counts[at] = counts[at] === undefined ? starts.get(at) ?? own.start : counts[at] + 1;
    counts.length = at + 1;
    if (own.format === "bullet") return "- ";
    if (own.format === "none") return "";
    const text = own.text.replace(/%([1-9])/g, (_, digit) => {
      const n = Number(digit) - 1;
      const format = levels.get(n)?.format ?? "decimal";
      return formatNumber(counts[n] ?? levels.get(n)?.start ?? 1, format);
    });
    return text === "" ? "" : `${text} `;
  };
}

/** Numbers notes in the order in which the text refers to them. */
class References {
  readonly #numbers = new Map<string, number>();
  #notes = 0;
  #comments = 0;

  /** Returns the mark of a note: `[1]`, or `[c1]` for a comment. */
  mark(kind: "footnote" | "endnote" | "comment", id: string): string {
    const key = `${kind} ${id}`;
    const known = this.#numbers.get(key);
    const number = known ?? (kind === "comment" ? ++this.#comments : ++this.#notes);
    this.#numbers.set(key, number);
    return kind === "comment" ? `[c${number}]` : `[${number}]`;
  }

  order(kind: string, id: string): number {
    return this.#numbers.get(`${kind} ${id}`) ?? Infinity;
  }
}

/** What the parts of a file share. */
interface DocxContext {
  styles: (id: string) => Style;
  numbering: (position: ListPosition) => string;
  references: References;
  sink: PageSink;
  /** Addresses of links by the IDs of the part. */
  addresses: ReadonlyMap<string, string>;
}

/** Returns paragraphs and table rows of a part. */
function parseBlocks(xml: string, context: DocxContext): TextBlock[] {
  const parser = new BlockParser(context);
  readXmlTags(xml, {
    open: (name, attributes) => parser.open(name, attributes),
    text: (data) => parser.text(data),
    close: (name) => parser.close(name),
  });
  return parser.end();
}

/** Returns the notes of a part in the order of their marks. Separators aren't notes (ECMA-376, part 1, 17.11.23). */
function parseNotes(xml: string, kind: "footnote" | "endnote" | "comment", context: DocxContext): TextBlock[] {
  const found: { id: string; author: string; blocks: TextBlock[] }[] = [];
  let parser: BlockParser | undefined;
  readXmlTags(xml, {
    open(name, attributes) {
      if (name !== kind) return parser?.open(name, attributes);
      const { type = "normal", id = "", author = "" } = attributes;
      if (type !== "normal") return;
      parser = new BlockParser(context);
      found.push({ id, author, blocks: [] });
    },
    text: (data) => parser?.text(data),
    close(name) {
      if (name !== kind) return parser?.close(name);
      if (parser !== undefined) found.at(-1)!.blocks = parser.end();
      parser = undefined;
    },
  });
  return found.sort((a, b) => context.references.order(kind, a.id) - context.references.order(kind, b.id))
    .map(({ id, author, blocks }) => {
      const text = blocks.map((block) => block.text).join("\n");
      return { text: `${context.references.mark(kind, id)} ${author === "" ? "" : `${author}: `}${text}`.trim() };
    });
}

/** A run of text that is raised, lowered or neither. */
type Script = "superscript" | "subscript" | "baseline";

/** Collects blocks from tags. */
class BlockParser {
  readonly #blocks: TextBlock[] = [];
  #text = "";
  #script: { kind: Script; text: string } = { kind: "baseline", text: "" };
  #runScript: Script = "baseline";
  #style: Style = {};
  #list: ListPosition | undefined;
  #skipped = 0;
  #isTextOpen = false;
  #isCodeOpen = false;
  #isInRun = false;
  /** Open fields and links: the code of a field, and where the text starts. */
  readonly #fields: { code: string; address?: string; start: number }[] = [];
  #isInProperties = 0;
  #equation: { content: Equation; depth: number } | undefined;
  #rubyText: string | undefined;
  #checkbox: string | undefined;
  /** Cells of the open rows, the innermost last. Tables can be nested. */
  readonly #rows: string[][] = [];

  constructor(readonly context: DocxContext) {}

  open(name: string, attributes: XmlAttributes): void {
    const { val = "" } = attributes;
    const { sink, references, styles } = this.context;
    if (CHANGES.has(name) && this.#isInProperties === 0) sink.note("tracked_changes");
    if (SKIPPED.has(name)) this.#skipped++;
    if (this.#skipped > 0) return;
    if (this.#equation !== undefined) {
      this.#equation.depth++;
      return this.#equation.content.open(name, attributes);
    }
    switch (name) {
      case "omath":
        this.#equation = { content: new Equation(), depth: 1 };
        break;
      case "p": // Also a text box inside a paragraph
        this.#endParagraph();
        break;
      case "ppr":
      case "rpr":
        this.#isInProperties++;
        break;
      case "pstyle":
        this.#style = styles(val);
        break;
      case "outlinelvl":
        if (Number(val) < 6) this.#style = { ...this.#style, heading: Number(val) + 1 };
        break;
      case "numpr":
        this.#list = {};
        break;
      case "numid":
        if (this.#list) this.#list.numId = val;
        break;
      case "ilvl":
        if (this.#list) this.#list.level = Number(val);
        break;
      case "tr":
        this.#rows.push([]);
        break;
      case "tc":
        this.#rows.at(-1)?.push("");
        break;
      case "r":
        this.#isInRun = true;
        this.#runScript = "baseline";
        break;
      case "vanish":
        // A mark of a paragraph can be hidden, too, which says nothing about its text.
        if (this.#isInRun && !/^(0|false|off)$/.test(val)) sink.note("hidden");
        break;
      case "vertalign":
        this.#runScript = val === "superscript" || val === "subscript" ? val : "baseline";
        break;
      case "t":
        this.#isTextOpen = true;
        break;
      case "instrtext":
        this.#isCodeOpen = true;
        break;
      case "fldchar":
        this.#readFieldMark(attributes.fldchartype ?? "");
        break;
      case "fldsimple":
        this.#openField({ code: attributes.instr ?? "" });
        break;
      case "hyperlink":
        this.#openField({ code: "", address: this.context.addresses.get(attributes.id ?? "") });
        break;
      case "tab":
      case "ptab":
        if (this.#isInProperties === 0) this.#add("\t");
        break;
      case "br":
      case "cr":
        this.#add("\n");
        break;
      case "nobreakhyphen":
        this.#add("-");
        break;
      case "sym":
        this.#addSymbol(attributes);
        break;
      case "footnotereference":
      case "endnotereference":
      case "commentreference":
        this.#runScript = "baseline";
        this.#add(references.mark(name.replace("reference", "") as "footnote", attributes.id ?? ""));
        break;
      case "docpr":
        if (attributes.descr) this.#add(` ${attributes.descr} `);
        break;
      case "blip":
      case "imagedata":
        sink.note("image");
        break;
      case "oleobject":
      case "altchunk":
        sink.note("embedded", { example: attributes.progid });
        break;
      case "rt":
        this.#flushScript();
        this.#rubyText = this.#text;
        this.#text = "";
        break;
      case "checkbox":
        this.#checkbox = "[ ]";
        break;
      case "checked":
        if (this.#checkbox !== undefined) this.#checkbox = /^(0|false|off)$/.test(val) ? "[ ]" : "[x]";
    }
  }

  text(data: string): void {
    if (this.#skipped > 0) return;
    if (this.#equation !== undefined) return this.#equation.content.text(data);
    if (this.#isTextOpen) this.#add(data);
    const field = this.#isCodeOpen ? this.#fields.at(-1) : undefined;
    if (field !== undefined) field.code += data;
  }

  close(name: string): void {
    if (SKIPPED.has(name)) return void (this.#skipped = Math.max(0, this.#skipped - 1));
    if (this.#skipped > 0) return;
    if (this.#equation !== undefined) {
      if (--this.#equation.depth > 0) return this.#equation.content.close();
      const { result } = this.#equation.content;
      this.#equation = undefined;
      this.#runScript = "baseline";
      return this.#add(result);
    }
    switch (name) {
      case "t":
        this.#isTextOpen = false;
        break;
      case "instrtext":
        this.#isCodeOpen = false;
        break;
      case "r":
        this.#isInRun = false;
        break;
      case "fldsimple":
      case "hyperlink":
        this.#endField();
        break;
      case "ppr":
      case "rpr":
        this.#isInProperties = Math.max(0, this.#isInProperties - 1);
        break;
      case "p":
        this.#endParagraph();
        break;
      case "rt": {
        this.#flushScript();
        const before = this.#rubyText ?? "";
        this.#rubyText = this.#text;
        this.#text = before;
        break;
      }
      case "rubybase":
        if (this.#rubyText) this.#add(`(${this.#rubyText})`);
        this.#rubyText = undefined;
        break;
      case "checkbox":
        if (this.#checkbox !== undefined) this.#add(this.#checkbox);
        this.#checkbox = undefined;
        break;
      case "tr":
        this.#endRow();
    }
  }

  end(): TextBlock[] {
    this.#endParagraph();
    return this.#blocks;
  }

  /** Adds text. Neighboring runs with the same script are one. */
  #add(text: string): void {
    if (this.#script.kind !== this.#runScript) this.#flushScript();
    this.#script = { kind: this.#runScript, text: this.#script.text + text };
  }

  #flushScript(): void {
    const { kind, text } = this.#script;
    this.#text += kind === "superscript"
      ? formatSuperscript(text)
      : kind === "subscript"
      ? formatSubscript(text)
      : text;
    this.#script = { kind: this.#runScript, text: "" };
  }

  #readFieldMark(type: string): void {
    if (type === "begin") this.#openField({ code: "" });
    else if (type === "end") this.#endField();
  }

  #openField(field: { code: string; address?: string | undefined }): void {
    this.#flushScript();
    this.#fields.push({ code: field.code, start: this.#text.length, ...(field.address && { address: field.address }) });
  }

  #endField(): void {
    const field = this.#fields.pop();
    const address = field?.address ?? findFieldAddress(field?.code ?? "");
    if (field === undefined || address === undefined) return;
    this.#flushScript();
    const { start } = field;
    this.#text = this.#text.slice(0, start) + formatLink(this.#text.slice(start), address, this.context.sink);
  }

  #addSymbol({ font = "", char = "" }: XmlAttributes): void {
    const found = findSymbol(font, Number.parseInt(char, 16));
    if (found === undefined) this.context.sink.note("unmapped", { example: `${font} ${char}` });
    else this.#add(found);
  }

  #endParagraph(): void {
    this.#flushScript();
    const clean = this.#text.trim();
    const cells = this.#rows.at(-1);
    const { heading, numId, level } = this.#style;
    const position: ListPosition | undefined = this.#list ?? (numId === undefined ? undefined : { numId, level });
    if (clean !== "") {
      const text = (position === undefined ? "" : this.context.numbering({ numId, level, ...position })) + clean;
      if (cells !== undefined) cells.push(`${cells.pop() ?? ""} ${text}`.trim());
      else this.#blocks.push({ text, ...(heading !== undefined && { heading }) });
    }
    this.#text = "";
    for (const field of this.#fields) field.start = 0;
    this.#style = {};
    this.#list = undefined;
  }

  #endRow(): void {
    const row = this.#rows.pop()?.join(" | ") ?? "";
    const outer = this.#rows.at(-1);
    if (outer !== undefined) outer.push(`${outer.pop() ?? ""} ${row}`.trim());
    else if (/[^ |]/.test(row)) this.#blocks.push({ text: row });
  }
}
