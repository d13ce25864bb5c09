/** Extracts Jupyter notebooks: cells, and the text of their outputs. */
import { asObject, asText, isJsonObject, type JsonObject } from "../../json/type_guards.ts";
import { ExtractionFault, type ExtractionInput, type PageSink, type TextBlock, toSections } from "./extraction.ts";
import { convertHtml } from "./html_text.ts";

/** A text is a string, or a list of lines. */
function joinLines(value: unknown): string {
  return (Array.isArray(value) ? value.map(asText).join("") : asText(value)).replace(/\s+$/, "");
}

/** Colors of terminals. */
// deno-lint-ignore no-control-regex
const ANSI = /\u001b\[[\d;]*m/g;

/**
 * Extracts a notebook. Code and outputs are between fences.
 *
 * @throws {ExtractionFault} `damaged`
 * @see https://nbformat.readthedocs.io/en/latest/format_description.html
 */
export async function extractNotebook({ bytes }: ExtractionInput, sink: PageSink): Promise<void> {
  let notebook: JsonObject;
  try {
    notebook = asObject(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)));
  } catch {
    throw new ExtractionFault("damaged", "Can't read the file: it isn't a notebook in JSON");
  }
  const metadata = asObject(notebook.metadata);
  const language = asText(asObject(metadata.language_info).name) || asText(asObject(metadata.kernelspec).language);
  // Version 3 had worksheets.
  const lists = Array.isArray(notebook.worksheets)
    ? notebook.worksheets.map((sheet) => asObject(sheet).cells)
    : [notebook.cells];
  const cells = lists.flatMap((list) => Array.isArray(list) ? list.filter(isJsonObject) : []);
  sink.begin({ unit: "section", total: 0 });
  const blocks = cells.flatMap((cell) => [...listBlocks(cell, language, sink)]);
  for (const section of toSections(blocks)) await sink.add(section);
}

function* listBlocks(cell: JsonObject, language: string, sink: PageSink): Generator<TextBlock> {
  const type = asText(cell.cell_type);
  const source = joinLines(cell.source ?? cell.input);
  const attachments = Object.keys(asObject(cell.attachments));
  for (const name of attachments) sink.note("image", { example: name });
  if (type === "code") {
    if (source !== "") yield { text: `\`\`\`${language}\n${source}\n\`\`\`` };
    for (const output of Array.isArray(cell.outputs) ? cell.outputs.filter(isJsonObject) : []) {
      const text = getOutputText(output, sink);
      if (text.trim() !== "") yield { text: `Output:\n\`\`\`\n${text}\n\`\`\`` };
    }
    return;
  }
  if (!["markdown", "raw", "heading", "html"].includes(type)) sink.note("unknown", { example: `cell ${type}` });
  if (source === "") return;
  const heading = /^(#{1,6})\s/.exec(source)?.[1]?.length ?? (type === "heading" ? Number(cell.level) || 1 : undefined);
  yield { text: source, ...(heading !== undefined && { heading }) };
}

function getOutputText(output: JsonObject, sink: PageSink): string {
  const type = asText(output.output_type);
  if (type === "stream") return joinLines(output.text).replace(ANSI, "");
  if (type === "error" || type === "pyerr") {
    const trace = Array.isArray(output.traceback) ? output.traceback.map(asText).join("\n") : "";
    return (trace || `${asText(output.ename)}: ${asText(output.evalue)}`).replace(ANSI, "");
  }
  // Version 3 had the formats next to the type.
  const data = isJsonObject(output.data) ? output.data : output;
  const images = Object.keys(data).filter((format) => /^(image\/|png$|jpeg$|svg$)/.test(format));
  if (images.length > 0) sink.note("image", { example: images[0] });
  for (const format of ["text/markdown", "text/plain", "text/latex", "text"]) {
    const text = joinLines(data[format]);
    if (text !== "") return text.replace(ANSI, "");
  }
  const html = joinLines(data["text/html"] ?? data.html);
  if (html !== "") return convertHtml(html).blocks.map(({ text }) => text).join("\n");
  if (images.length === 0) sink.note("unknown", { example: Object.keys(data)[0] ?? type });
  return "";
}
