/** Reads documents in the sandbox as the service does, for tests. */
import { afterAll, expect } from "vitest";
import type { DocumentPage, PageUnit } from "../../../services/documents/document.ts";
import { ExtractionFault, sniffDocument } from "../../../services/documents/extraction/extraction.ts";
import {
  extractDocument,
  type ExtractionResult,
  type ExtractionSource,
  READER_LIMITS,
  type ReaderLimits,
} from "../../../services/documents/extraction/extractor.ts";
import { Sandbox } from "../../../services/platform/sandbox/sandbox.ts";
import { joinBytes } from "../../../services/storage/atomic_file.ts";
import { createEntry, type PackedEntry, writeZip } from "../../../services/storage/zip/zip_writer.ts";

const encoder = new TextEncoder();

/** What was read of a document. */
export interface Extracted extends ExtractionResult {
  unit?: PageUnit;
  title?: string;
  pages: string[];
}

type ExtractOptions =
  & Partial<ReaderLimits>
  & Partial<Pick<ExtractionSource, "url" | "charset" | "encoding" | "languages" | "signal">>;

/** Reads files in a sandbox of the test file. */
export type Extract = (
  name: string,
  content: string | Uint8Array<ArrayBuffer>,
  options?: ExtractOptions,
) => Promise<Extracted>;

/**
 * Returns the reader of a sandbox, which throws `ExtractionFault`. The sandbox is closed when the tests of the file have
 * ended.
 */
export function openExtraction(sandbox = new Sandbox()): Extract {
  afterAll(() => sandbox.close());
  return async (
    name,
    content,
    { url, charset, encoding, languages, signal = new AbortController().signal, ...limits } = {},
  ) => {
    const bytes = typeof content === "string" ? encoder.encode(content) : content;
    const found: Extracted = { pages: [], ledger: [] };
    const pages: DocumentPage[] = [];
    const result = await extractDocument(sandbox, {
      content: ReadableStream.from([bytes]),
      sizeBytes: bytes.length,
      name,
      contentType: sniffDocument(bytes.subarray(0, 4096), name)!,
      url,
      charset,
      encoding,
      languages,
      signal,
      begin: (about) => Object.assign(found, about),
      store: async (batch) => void await Promise.resolve(pages.push(...batch)),
    }, { ...READER_LIMITS, ...limits });
    expect(pages.map(({ n }) => n)).toEqual(pages.map((_, index) => index + 1));
    found.pages = pages.map(({ text }) => text);
    return { ...found, ...result };
  };
}

/** Returns the code of the failure; "read" if there is none. */
export async function codeOf(extracting: Promise<Extracted>): Promise<string> {
  try {
    await extracting;
    return "read";
  } catch (error) {
    if (error instanceof ExtractionFault) return error.code;
    throw error;
  }
}

/** Writes a ZIP file. */
export const zipOf = async (files: Iterable<PackedEntry>) =>
  joinBytes(await Array.fromAsync(writeZip(files, { isLarge: false })));

/** Packs a text. */
export const textEntry = (path: string, text: string) => createEntry(path, encoder.encode(text));
