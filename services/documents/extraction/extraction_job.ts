/** Extraction in the sandbox, for both of its kinds: asks for the file, and sends pages in batches. */
import { getErrorMessage } from "../../errors.ts";
import type { SandboxHost, SandboxResult } from "../../platform/sandbox/child.ts";
import { Ledger } from "../../json/ledger.ts";
import { DOCUMENT_LEDGER, type DocumentLedgerKind, type DocumentPage, type PageUnit } from "../document.ts";
import {
  ExtractionFault,
  type ExtractionInput,
  type ExtractionOrder,
  type ExtractionResponse,
  type PageSink,
} from "./extraction.ts";

/** Maximum size of a batch of pages in UTF-16 units. */
const BATCH_CHARS = 64 * 1024;
/** Longer pages are sent in parts, so that Parlor never parses a large message at once. */
const PART_CHARS = 512 * 1024;

/** Sends pages in batches and waits until each is stored. */
class BatchSink implements PageSink {
  #batch: DocumentPage[] = [];
  #batchChars = 0;
  #chars = 0;
  #count = 0;
  #hasText = false;
  #unit: PageUnit = "section";
  readonly ledger = new Ledger<DocumentLedgerKind>(DOCUMENT_LEDGER);
  encoding: string | undefined;

  constructor(readonly limits: ExtractionInput["limits"], readonly host: SandboxHost) {}

  begin(about: Parameters<PageSink["begin"]>[0]): void {
    this.#unit = about.unit;
    this.host.send("begin", about);
  }

  async add(addition: string): Promise<void> {
    let text = addition.replaceAll("\0", "").toWellFormed();
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
    if (text.length > PART_CHARS) {
      await this.#flush();
      for (; text.length > PART_CHARS; text = text.slice(PART_CHARS)) {
        await this.host.call("part", text.slice(0, PART_CHARS));
      }
    }
    this.#batch.push({ n: this.#count, text });
    this.#batchChars += text.length;
    if (this.#batchChars >= BATCH_CHARS) await this.#flush();
  }

  note(kind: DocumentLedgerKind, found?: { count?: number; example?: string }): void {
    this.ledger.add(kind, found);
  }

  setEncoding(encoding: string): void {
    this.encoding = encoding;
  }

  /** @throws {ExtractionFault} `no_text` */
  async end(): Promise<void> {
    if (!this.#hasText) {
      const isPdf = this.#unit === "page";
      const advice = isPdf ? " It may be a scan: attach its pages as images instead" : "";
      throw new ExtractionFault("no_text", `The file has no text.${advice}`, isPdf ? this.#count : 0);
    }
    await this.#flush();
  }

  async #flush(): Promise<void> {
    if (this.#batch.length === 0) return;
    const batch = this.#batch;
    this.#batch = [];
    this.#batchChars = 0;
    await this.host.call("pages", batch);
  }
}

/** What a kind does with a file. */
export type Extractor = (input: ExtractionInput, sink: PageSink) => Promise<Uint8Array<ArrayBuffer> | void>;

/** Runs one job of `extractor.ts`. A fault of the file is its result. */
export async function runExtraction(
  order: ExtractionOrder,
  host: SandboxHost,
  extract: Extractor,
): Promise<SandboxResult> {
  const { sizeBytes, ...about } = order;
  const bytes = new Uint8Array(sizeBytes);
  for (let at = 0; at < sizeBytes;) {
    const [piece] = (await host.call("read")).bytes;
    bytes.set(piece!, at);
    at += piece!.length;
  }
  const sink = new BatchSink(about.limits, host);
  const createResponse = () => ({ ledger: sink.ledger.list(), encoding: sink.encoding }) satisfies ExtractionResponse;
  try {
    const jpeg = await extract({ bytes, ...about }, sink);
    if (jpeg !== undefined) return { bytes: [jpeg] };
    await sink.end();
    return { value: createResponse() };
  } catch (error) {
    return { value: { ...createResponse(), fault: toFault(error) } satisfies ExtractionResponse };
  }
}

function toFault(error: unknown): NonNullable<ExtractionResponse["fault"]> {
  if (error instanceof ExtractionFault) {
    const { code, message, pages } = error;
    return { code, message, pages };
  }
  // An error of a parser: the file is the likely cause.
  const isTooDeep = error instanceof RangeError;
  const found = isTooDeep ? "it's nested too deeply or too large" : getErrorMessage(error).slice(0, 200);
  return { code: "damaged", message: `Can't read the file: ${found}`, pages: 0 };
}
