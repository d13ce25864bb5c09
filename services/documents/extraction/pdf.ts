/** Text of PDF files, page by page. Scripts aren't run, and nothing that the file refers to is fetched. */
import { getDocument, PasswordResponses, VerbosityLevel } from "unpdf/pdfjs";
import { messageOf } from "../../errors.ts";
import { ExtractionFault, type ExtractionInput, type PageSink } from "./extraction.ts";

/** A gap of more than this many line heights starts a paragraph. */
const PARAGRAPH_GAP = 1.6;
/** Pages after which the parser's caches are dropped. */
const CLEAN_UP_PAGES = 50;

/** One piece of text on a page, as far as it matters. */
interface TextItem {
  str: string;
  hasEOL: boolean;
  height: number;
  /** A matrix; the last two numbers are the position. */
  transform: number[];
}

/** Reads a PDF file. @throws {ExtractionFault} `encrypted`, `damaged`, `no_text`, `too_large` */
export async function extractPdf({ bytes, limits }: ExtractionInput, sink: PageSink): Promise<void> {
  const task = getDocument({
    data: bytes,
    disableFontFace: true,
    useSystemFonts: false,
    useWorkerFetch: false,
    isOffscreenCanvasSupported: false,
    enableXfa: false,
    stopAtErrors: false,
    verbosity: VerbosityLevel.ERRORS,
  });
  try {
    const pdf = await task.promise;
    if (pdf.numPages > limits.pages) {
      throw new ExtractionFault("too_large", `The file has ${pdf.numPages} pages, more than ${limits.pages}`);
    }
    sink.begin({ unit: "page", total: pdf.numPages });
    let damagedPages = 0;
    for (let n = 1; n <= pdf.numPages; n++) {
      try {
        const page = await pdf.getPage(n);
        const { items } = await page.getTextContent();
        page.cleanup();
        await sink.add(joinItems(items as TextItem[]));
      } catch (error) {
        if (error instanceof ExtractionFault) throw error;
        damagedPages++;
        await sink.add(""); // pages keep their numbers
      }
      if (n % CLEAN_UP_PAGES === 0) await pdf.cleanup();
    }
    if (damagedPages === pdf.numPages) throw new ExtractionFault("damaged", "No page of the file can be read");
  } catch (error) {
    throw toPdfFault(error);
  } finally {
    await task.destroy();
  }
}

/** Converts an error of the parser to an ExtractionFault. */
export function toPdfFault(error: unknown): unknown {
  if (error instanceof ExtractionFault) return error;
  const { name, code } = error as { name?: string; code?: number };
  if (name === "PasswordException" || code === PasswordResponses.NEED_PASSWORD) {
    return new ExtractionFault("encrypted", "The file is protected by a password");
  }
  return new ExtractionFault("damaged", `The file can't be read: ${messageOf(error)}`);
}

/** Joins the pieces to lines and paragraphs. */
function joinItems(items: readonly TextItem[]): string {
  let text = "";
  let lastY: number | undefined;
  for (const { str, hasEOL, height, transform } of items) {
    if (str === undefined) continue; // a mark, not text
    const y = transform[5]!;
    if (str !== "") {
      const isParagraph = lastY !== undefined && text.endsWith("\n") && Math.abs(lastY - y) > PARAGRAPH_GAP * height;
      if (isParagraph && height > 0) text += "\n";
      text += str;
      lastY = y;
    }
    if (hasEOL) text += "\n";
  }
  return text.replace(/[ \t]+\n/g, "\n").trim();
}
