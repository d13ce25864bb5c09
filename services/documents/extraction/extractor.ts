/** Extracts the text of documents in the sandbox. */
import { AppError } from "../../errors.ts";
import { type Sandbox, SandboxFault, type SandboxFunction, type SandboxKind } from "../../platform/sandbox/sandbox.ts";
import type { SandboxMessage } from "../../platform/sandbox/frames.ts";
import { type LedgerEntry, parseLedger } from "../../json/ledger.ts";
import {
  DOCUMENT_ERRORS,
  DOCUMENT_LEDGER,
  type DocumentLedgerKind,
  type DocumentPage,
  PAGE_UNITS,
  type PageUnit,
} from "../document.ts";
import { TEXT_ENCODINGS } from "./text_encodings.ts";
import {
  EXTRACTION_LIMITS,
  ExtractionFault,
  type ExtractionLimits,
  type ExtractionOrder,
  type ExtractionResponse,
} from "./extraction.ts";

/** The file of a document. */
export interface ExtractionSource {
  content: AsyncIterable<Uint8Array<ArrayBuffer>>;
  sizeBytes: number;
  name: string;
  contentType: string;
  /** Address of a link. */
  url?: string;
  /** Charset that the server of a link named. */
  charset?: string;
  /** Encoding that the user chose. */
  encoding?: string;
  /** Languages of the user, to guess an encoding. */
  languages?: readonly string[];
  signal: AbortSignal;
}

/** What was found besides the text. */
export interface ExtractionResult {
  ledger: LedgerEntry<DocumentLedgerKind>[];
  /** Encoding of a text file. */
  encoding?: string;
}

/** A document to read. */
export interface ExtractionRequest extends ExtractionSource {
  /** Called once it's known what the text is divided into. */
  begin(about: { unit: PageUnit; total: number; title?: string }): void;
  /** Stores pages. The reader continues afterwards. */
  store(pages: DocumentPage[]): Promise<void>;
}

/** Limits of the reader. */
export interface ReaderLimits extends ExtractionLimits {
  /** Processor time. */
  timeMs: number;
  /** Memory that the file takes. */
  memoryBytes: number;
}

const MIB = 1024 * 1024;

/** The limits of every document. */
export const READER_LIMITS: ReaderLimits = { ...EXTRACTION_LIMITS, timeMs: 120_000, memoryBytes: 512 * MIB };

/** Memory of a reader without a file. */
const READER_BYTES = 128 * MIB;

const DOCUMENTS: SandboxKind = {
  url: new URL("./document_child.ts", import.meta.url),
  maxChildren: 2,
  maxCpuMs: READER_LIMITS.timeMs,
  maxResidentBytes: READER_LIMITS.memoryBytes + READER_BYTES,
  maxMessageBytes: 32 * MIB,
};
const PDFS: SandboxKind = {
  ...DOCUMENTS,
  url: new URL("./pdf_child.ts", import.meta.url),
  readsPackages: true,
};

/** Limits of the images of one page. */
const IMAGE_TIME_MS = 60_000;

/**
 * Extracts a document.
 *
 * @throws {ExtractionFault} if the document can't be read; {AppError} errors of `content` and `store`; the signal's
 *   reason.
 */
export async function extractDocument(
  sandbox: Sandbox,
  request: ExtractionRequest,
  limits = READER_LIMITS,
): Promise<ExtractionResult> {
  const parts: string[] = [];
  const { value } = await runReader(sandbox, request, limits, undefined, {
    begin: (about) => request.begin(parseAbout(about)),
    part: (text) => void parts.push(String(text)),
    pages: async (value) => {
      const pages = parsePages(value);
      if (pages[0] !== undefined) pages[0].text = parts.splice(0).join("") + pages[0].text;
      await request.store(pages);
    },
  });
  return parseResult(value);
}

/**
 * Returns the images of a page of a PDF as one JPEG, in their positions.
 *
 * @param page From 1.
 * @throws {ExtractionFault} Like `drawPageImages`, and `too_large`, `timeout`. {AppError} errors of `content`. The
 *   signal's reason.
 */
export async function extractPageImage(
  sandbox: Sandbox,
  source: ExtractionSource,
  page: number,
  limits = READER_LIMITS,
): Promise<Uint8Array<ArrayBuffer>> {
  const timeMs = Math.min(IMAGE_TIME_MS, limits.timeMs);
  const { bytes } = await runReader(sandbox, source, { ...limits, timeMs }, page, {});
  if (bytes[0] === undefined) throw new ExtractionFault("damaged", "Can't read the file: there is no image");
  return bytes[0];
}

/** Runs a job of the sandbox. @param imagePage The page whose images are extracted instead of the text. */
async function runReader(
  sandbox: Sandbox,
  { content, signal, ...about }: ExtractionSource,
  limits: ReaderLimits,
  imagePage: number | undefined,
  functions: Record<string, SandboxFunction>,
): Promise<SandboxMessage> {
  const { inflatedBytes, pages, chars, timeMs, memoryBytes } = limits;
  const { sizeBytes, name, contentType, url, charset, encoding, languages } = about;
  const order: ExtractionOrder = {
    ...{ name, contentType, sizeBytes, limits: { inflatedBytes, pages, chars } },
    ...{ url, charset, encoding, languages, imagePage },
  };
  const read = createReader(content, sizeBytes);
  try {
    const result = await sandbox.run(contentType === "application/pdf" ? PDFS : DOCUMENTS, {
      value: order,
      functions: { ...functions, read },
      signal,
      maxCpuMs: timeMs,
      maxResidentBytes: memoryBytes + READER_BYTES,
    });
    throwFault(result.value);
    return result;
  } catch (error) {
    throw error instanceof SandboxFault ? toExtractionFault(error, limits) : error;
  }
}

/** Returns the function that hands out the file piece by piece. */
function createReader(content: AsyncIterable<Uint8Array<ArrayBuffer>>, sizeBytes: number): SandboxFunction {
  const pieces = content[Symbol.asyncIterator]();
  let sentBytes = 0;
  return async () => {
    const next = await pieces.next();
    sentBytes += next.done ? 0 : next.value.length;
    if (next.done || sentBytes > sizeBytes) {
      throw new AppError("internal", "The stored file of a document has the wrong size");
    }
    return { bytes: [next.value] };
  };
}

function toExtractionFault({ reason, message }: SandboxFault, { timeMs, memoryBytes }: ReaderLimits): ExtractionFault {
  switch (reason) {
    case "time":
      return new ExtractionFault("timeout", `Can't read the file: it took longer than ${Math.round(timeMs / 1000)} s`);
    case "memory": {
      const limit = Math.round(memoryBytes / MIB);
      return new ExtractionFault("too_large", `Can't read the file: it needs more than ${limit} MiB of memory`);
    }
    case "output":
      return new ExtractionFault("too_large", `Can't read the file: ${message}`);
    default:
      return new ExtractionFault("damaged", `Can't read the file: ${message}`);
  }
}

// What a reader sends may be anything: a file may have taken control of it.

function throwFault(value: unknown): void {
  const { fault } = (value ?? {}) as Partial<ExtractionResponse>;
  if (fault === undefined) return;
  const code = DOCUMENT_ERRORS.find((known) => known === fault.code) ?? "damaged";
  throw new ExtractionFault(code, String(fault.message).slice(0, 500), Number(fault.pages) || 0);
}

function parseResult(value: unknown): ExtractionResult {
  const { ledger, encoding } = (value ?? {}) as Partial<ExtractionResponse>;
  return {
    ledger: parseLedger(ledger, DOCUMENT_LEDGER),
    encoding: TEXT_ENCODINGS.find((known) => known === encoding),
  };
}

function parseAbout(value: unknown): { unit: PageUnit; total: number; title?: string } {
  const { unit, total, title } = (value ?? {}) as Record<string, unknown>;
  return {
    unit: PAGE_UNITS.find((known) => known === unit) ?? "section",
    total: Number(total) || 0,
    ...typeof title === "string" ? { title } : {},
  };
}

function parsePages(value: unknown): DocumentPage[] {
  if (!Array.isArray(value)) return [];
  return value.map((page) => ({ n: Number(page?.n) || 0, text: String(page?.text) }));
}
