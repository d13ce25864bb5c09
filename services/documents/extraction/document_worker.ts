/**
 * The Worker of extractor.ts: extracts one document, then ends. It's a Node Worker, because only those have a memory
 * limit.
 */
import { parentPort } from "node:worker_threads";
import { getErrorMessage } from "../../errors.ts";
import { reportDefects } from "../../process/worker.ts";
import type { DocumentPage, PageUnit } from "../document.ts";
import {
  ExtractionFault,
  type ExtractionInput,
  type ExtractionOrder,
  type ExtractionResponse,
  extractText,
  type PageSink,
} from "./extraction.ts";

/** Maximum size of a batch of pages in UTF-16 units. */
const BATCH_CHARS = 64 * 1024;

type Extractor = (input: ExtractionInput, sink: PageSink) => Promise<void>;

/** Loads the extractor for a type. Except for plain text, each is only loaded if needed. */
async function loadExtractor(contentType: string): Promise<Extractor> {
  switch (contentType) {
    case "application/pdf":
      return (await import("./pdf.ts")).extractPdf;
    case "application/epub+zip":
      return (await import("./html_text.ts")).extractEpub;
    case "text/html":
      return (await import("./html_text.ts")).extractHtml;
    case "text/plain":
    case "text/markdown":
    case "text/csv":
      return extractText;
    default:
      return (await import("./xml_archive.ts")).extractDocx;
  }
}

/** Sends pages in batches and waits until each is stored. */
class BatchSink implements PageSink {
  #batch: DocumentPage[] = [];
  #batchChars = 0;
  #chars = 0;
  #count = 0;
  #hasText = false;
  #unit: PageUnit = "section";
  #next: PromiseWithResolvers<void> | undefined;

  constructor(readonly limits: ExtractionInput["limits"], readonly send: (answer: ExtractionResponse) => void) {}

  begin(about: Parameters<PageSink["begin"]>[0]): void {
    this.#unit = about.unit;
    this.send({ kind: "begin", ...about });
  }

  async add(addition: string): Promise<void> {
    const text = addition.replaceAll("\0", "").toWellFormed();
    this.#chars += text.length;
    this.#count++;
    if (this.#count > this.limits.pages) {
      throw new ExtractionFault("too_large", `The text has more than ${this.limits.pages} sections`);
    }
    if (this.#chars > this.limits.chars) {
      const limit = Math.round(this.limits.chars / 1024 / 1024);
      throw new ExtractionFault("too_large", `The text has more than ${limit} million characters`);
    }
    if (/[\p{L}\p{N}]/u.test(text)) this.#hasText = true;
    this.#batch.push({ n: this.#count, text });
    this.#batchChars += text.length;
    if (this.#batchChars >= BATCH_CHARS) await this.#flush();
  }

  /** @throws {ExtractionFault} `no_text` */
  async end(): Promise<void> {
    if (!this.#hasText) {
      throw new ExtractionFault(
        "no_text",
        "The file has no text. It may be a scan: attach its pages as images instead",
        this.#unit === "page" ? this.#count : 0,
      );
    }
    await this.#flush();
  }

  /** Called when the last batch is stored. */
  resume(): void {
    this.#next?.resolve();
  }

  async #flush(): Promise<void> {
    if (this.#batch.length === 0) return;
    this.#next = Promise.withResolvers();
    const { heapUsed, external } = Deno.memoryUsage();
    this.send({ kind: "memory", bytes: heapUsed + external });
    this.send({ kind: "pages", pages: this.#batch });
    this.#batch = [];
    this.#batchChars = 0;
    await this.#next.promise;
  }
}

async function extract(input: ExtractionInput, sink: BatchSink): Promise<ExtractionResponse> {
  try {
    if (input.imagePage !== undefined) {
      const { drawPageImages } = await import("./pdf.ts");
      return { kind: "image", jpeg: await drawPageImages(input.bytes, input.imagePage) };
    }
    const run = await loadExtractor(input.contentType);
    await run(input, sink);
    await sink.end();
    return { kind: "end" };
  } catch (error) {
    if (error instanceof ExtractionFault) {
      const { code, message, pages } = error;
      return { kind: "fault", code, message, pages };
    }
    // An error of a parser: the file is the likely cause.
    const isTooDeep = error instanceof RangeError;
    const found = isTooDeep ? "it's nested too deeply or too large" : getErrorMessage(error).slice(0, 200);
    return { kind: "fault", code: "damaged", message: `Can't read the file: ${found}`, pages: 0 };
  }
}

// Importing this file outside a Worker does nothing.
if (parentPort !== null) {
  const port = parentPort;
  let input: ExtractionInput | undefined;
  let sink: BatchSink | undefined;
  let at = 0;
  const send = (answer: ExtractionResponse) => port.postMessage(answer);
  reportDefects({
    name: "document_worker",
    report: (found) => send({ kind: "fault", code: "damaged", message: `Can't read the file: ${found}`, pages: 0 }),
  });
  port.on("message", (order: ExtractionOrder) => {
    switch (order.kind) {
      case "begin": {
        const { kind: _, sizeBytes, ...rest } = order;
        input = { bytes: new Uint8Array(sizeBytes), ...rest };
        sink = new BatchSink(rest.limits, send);
        return;
      }
      case "bytes":
        input!.bytes.set(order.bytes, at);
        at += order.bytes.length;
        return;
      case "end":
        extract(input!, sink!).then(send);
        return;
      case "more":
        sink!.resume();
    }
  });
}
