/** Text of HTML files and of linked pages. A page's main text is found by Readability. */
import { Readability } from "@mozilla/readability";
import { parseHTML } from "linkedom/worker";
import type { ExtractionInput, PageSink } from "./extraction.ts";
import { convertHtml, type HtmlText } from "./html_text.ts";
import { toSections } from "./sections.ts";
import { decodeText } from "./text_files.ts";

/** Readability recurses; pages nested deeper are used whole. */
const MAX_DEPTH = 400;
/** Readability takes seconds on longer pages, which are hardly articles. */
const MAX_READABLE_LENGTH = 4 * 1024 * 1024;
/** The shortest text that is worth more than the whole page. */
const MIN_MAIN_TEXT = 200;

/** Reads an HTML file. Of a link only the main text is used, if it has one. */
export async function extractHtml(input: ExtractionInput, sink: PageSink): Promise<void> {
  const html = decodeText(input.bytes, findCharset(input.bytes));
  const whole = convertHtml(html);
  const main = input.url === undefined ? undefined : findMainText(html, whole);
  const { title, blocks } = main ?? whole;
  sink.begin({ unit: "section", total: 0, ...(title !== "" && { title }) });
  for (const section of toSections(blocks)) await sink.add(section);
}

function findMainText(html: string, whole: HtmlText): HtmlText | undefined {
  if (whole.depth > MAX_DEPTH || html.length > MAX_READABLE_LENGTH) return undefined;
  try {
    const { document } = parseHTML(html);
    const article = new Readability(document as unknown as Document, { charThreshold: MIN_MAIN_TEXT }).parse();
    if (!article?.content || (article.textContent ?? "").trim().length < MIN_MAIN_TEXT) return undefined;
    const { blocks, depth } = convertHtml(article.content);
    return { title: article.title?.trim() || whole.title, blocks, depth };
  } catch {
    return undefined; // the whole page still has its text
  }
}

/** @see https://html.spec.whatwg.org/multipage/parsing.html#prescan-a-byte-stream-to-determine-its-encoding */
function findCharset(bytes: Uint8Array): string | undefined {
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, 1024));
  return /<meta[^>]{0,200}charset\s*=\s*["']?([\w:-]{2,40})/i.exec(head)?.[1];
}
