/**
 * Text of DOCX files. They don't say where pages end, so they have sections.
 *
 * @see ECMA-376, part 1, section 17 (WordprocessingML)
 */
import { Archive, readXmlTags } from "./archive.ts";
import { isOle2 } from "./document_type.ts";
import { ExtractionFault, type ExtractionInput, type PageSink, type TextBlock, toSections } from "./extraction.ts";
import { decodeText } from "./text_files.ts";

const MAIN_PART = /^word\/document\d*\.xml$/i;
/** Elements without text of the document: deleted text, field codes, the copies of drawings for old programs. */
const SKIPPED = new Set(["del", "movefrom", "instrtext", "deltext", "fallback"]);

/** Reads a DOCX file. @throws {ExtractionFault} `encrypted`, `damaged`, `too_large`, `unsupported` */
export async function extractDocx({ bytes, limits }: ExtractionInput, sink: PageSink): Promise<void> {
  // ECMA-376 encryption wraps the ZIP in an OLE2 file ([MS-OFFCRYPTO], section 2.3.4.4).
  if (isOle2(bytes)) throw new ExtractionFault("encrypted", "The file is protected by a password");
  const archive = await Archive.open(bytes, limits);
  const main = [...archive.entries.keys()].find((path) => MAIN_PART.test(path));
  if (main === undefined) throw new ExtractionFault("unsupported", "The file isn't a Word document");
  const headings = parseHeadings(await readPart(archive, "word/styles.xml"));
  const text = await readPart(archive, main);
  const { blocks, isWhole } = parseBody(text, headings);
  if (!isWhole) throw new ExtractionFault("damaged", "The file can't be read: its text is cut off");
  sink.begin({ unit: "section", total: 0 });
  const notes = parseNotes(await readPart(archive, "word/footnotes.xml"));
  for (const section of toSections([...blocks, ...notes])) await sink.add(section);
}

async function readPart(archive: Archive, path: string): Promise<string> {
  const bytes = await archive.read(path);
  return bytes === undefined ? "" : decodeText(bytes);
}

/** Returns the levels of heading styles by id. */
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

/** Returns paragraphs and table rows. @returns `isWhole` false if the document isn't closed. */
function parseBody(xml: string, headings: ReadonlyMap<string, number>): { blocks: TextBlock[]; isWhole: boolean } {
  const blocks: TextBlock[] = [];
  let text = "";
  let heading: number | undefined;
  let isItem = false;
  let skipped = 0;
  let notes = 0;
  let isTextOpen = false;
  /** Cells of the open rows, the innermost last; tables can be nested. */
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
      if (name === "p") endParagraph(); // a text box inside a paragraph
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
  return { blocks, isWhole: /<\/(?:[\w.-]{1,20}:)?document\s*>\s*$/.test(xml.slice(-200)) };
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
