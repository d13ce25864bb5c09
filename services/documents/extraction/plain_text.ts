/** Decodes text files and parts of files, and extracts plain text, Markdown and tables. */
import { decode, type EncodingHints } from "./encoding.ts";
import { type ExtractionInput, type PageSink, type TextBlock, toSections } from "./extraction.ts";

/** Extracts a plain file: Markdown, CSV, source code and any other text. */
export async function extractText(input: ExtractionInput, sink: PageSink): Promise<void> {
  const { contentType } = input;
  const text = decodeInput(input, sink).replaceAll("\r\n", "\n").replaceAll("\r", "\n");
  sink.begin({ unit: "section", total: 0 });
  if (contentType === "text/csv") return await extractTable(text, sink);
  const isMarkdown = contentType === "text/markdown";
  for (const section of toSections(splitLines(text, isMarkdown), "\n")) await sink.add(section);
}

/**
 * Decodes a text file, and notes what is uncertain.
 *
 * @param declared Encodings that the file names, the most trusted first.
 */
export function decodeInput(
  { bytes, charset, encoding: chosen, languages }: ExtractionInput,
  sink: PageSink,
  declared: readonly (string | undefined)[] = [],
): string {
  const { text, encoding, found, replaced } = decode(bytes, { chosen, declared: [charset, ...declared], languages });
  sink.setEncoding(encoding);
  if (found === "unsure") sink.note("encoding_unsure", { example: encoding });
  else if (found === "guessed" || found === "chosen") sink.note("encoding", { example: encoding });
  sink.note("undecodable", { count: replaced });
  return text;
}

/** Decodes a part of a file. */
export function decodePart(bytes: Uint8Array, hints: EncodingHints = {}): string {
  return decode(bytes, { declared: [findXmlEncoding(bytes)], ...hints }).text;
}

/** Finds the encoding in an XML declaration. */
export function findXmlEncoding(bytes: Uint8Array): string | undefined {
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, 200));
  return /^(?:\u00ef\u00bb\u00bf)?\s*<\?xml[^>]{0,100}\sencoding\s*=\s*["']([\w.:-]{2,40})["']/.exec(head)?.[1];
}

/** Extracts a table. Repeats the first line in every section, because rows mean little without column names. */
async function extractTable(text: string, sink: PageSink): Promise<void> {
  const end = text.indexOf("\n");
  const header = end < 0 ? text : text.slice(0, end);
  const isHeader = header.length <= 500;
  let isFirst = true;
  for (const section of toSections(splitLines(text, false), "\n")) {
    await sink.add(isFirst || !isHeader ? section : `${header}\n${section}`);
    isFirst = false;
  }
}

/** Yields the lines of a text. In Markdown, detects headings, except in code blocks. */
function* splitLines(text: string, isMarkdown: boolean): Generator<TextBlock> {
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
