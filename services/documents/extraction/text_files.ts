/** Text of plain files: Markdown, CSV, source code and any other text. */
import { type ExtractionInput, type PageSink, type TextBlock, toSections } from "./extraction.ts";
import { hasUtf16Mark } from "./document_type.ts";

/** Reads a text file. Lines stay as they are; long files are divided between lines. */
export async function extractText({ bytes, contentType }: ExtractionInput, sink: PageSink): Promise<void> {
  const text = decodeText(bytes).replaceAll("\r\n", "\n").replaceAll("\r", "\n");
  sink.begin({ unit: "section", total: 0 });
  if (contentType === "text/csv") return await extractTable(text, sink);
  const isMarkdown = contentType === "text/markdown";
  for (const section of toSections(lines(text, isMarkdown), "\n")) await sink.add(section);
}

/** Decodes text: UTF-8 or UTF-16 by its mark, valid UTF-8, else Windows-1252, which decodes any bytes. */
export function decodeText(bytes: Uint8Array, declaredCharset?: string): string {
  if (hasUtf16Mark(bytes)) return new TextDecoder(bytes[0] === 0xff ? "utf-16le" : "utf-16be").decode(bytes);
  if (declaredCharset !== undefined) {
    try {
      return new TextDecoder(declaredCharset).decode(bytes);
    } catch {
      // not a known charset
    }
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

/** Repeats the first line in every section: rows mean little without the names of their columns. */
async function extractTable(text: string, sink: PageSink): Promise<void> {
  const end = text.indexOf("\n");
  const header = end < 0 ? text : text.slice(0, end);
  const isHeader = header.length <= 500;
  let isFirst = true;
  for (const section of toSections(lines(text, false), "\n")) {
    await sink.add(isFirst || !isHeader ? section : `${header}\n${section}`);
    isFirst = false;
  }
}

/** A fence hides lines that look like headings. */
function* lines(text: string, isMarkdown: boolean): Generator<TextBlock> {
  let fence: string | undefined;
  for (let at = 0; at <= text.length;) {
    const next = text.indexOf("\n", at);
    const end = next < 0 ? text.length : next;
    const line = text.slice(at, end);
    at = end + 1;
    if (!isMarkdown) {
      yield { text: line };
      continue;
    }
    const mark = /^ {0,3}(```|~~~)/.exec(line)?.[1];
    if (mark !== undefined) fence = fence === undefined ? mark : fence === mark ? undefined : fence;
    const heading = fence === undefined ? /^ {0,3}(#{1,6})\s/.exec(line)?.[1]?.length : undefined;
    yield { text: line, heading };
  }
}
