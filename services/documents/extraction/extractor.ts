/** Extracts the text of a document in a Worker of its own. document_worker.ts is the code of the Worker. */
import { Worker } from "node:worker_threads";
import { AppError, getErrorMessage } from "../../errors.ts";
import type { DocumentPage, PageUnit } from "../document.ts";
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
  signal: AbortSignal;
}

/** A document to read. */
export interface ExtractionRequest extends ExtractionSource {
  /** Called once it's known what the text is divided into. */
  begin(about: { unit: PageUnit; total: number; title?: string }): void;
  /** Stores pages. The Worker continues afterwards. */
  store(pages: DocumentPage[]): Promise<void>;
}

/** Limits of the Worker. */
export interface WorkerLimits extends ExtractionLimits {
  timeMs: number;
  /** Maximum memory of the Worker. */
  memoryBytes: number;
}

const MIB = 1024 * 1024;

/** The limits of every document. */
export const WORKER_LIMITS: WorkerLimits = { ...EXTRACTION_LIMITS, timeMs: 120_000, memoryBytes: 512 * MIB };

/** How often memory is checked. A parser out of control allocates about 1 GB per second. */
const WATCH_MS = 100;
/** How long the Worker's report of its memory, sent with every batch, is valid. */
const REPORT_TTL_MS = 1_000;

/** Limits of the images of one page. */
const IMAGE_TIME_MS = 60_000;

/**
 * Extracts a document.
 *
 * @throws {ExtractionFault} if the document can't be read; {AppError} errors of `content` and `store`; the signal's
 *   reason.
 */
export async function extractDocument(request: ExtractionRequest, limits = WORKER_LIMITS): Promise<void> {
  await runWorker(request, limits, undefined, (answer, more) => {
    if (answer.kind === "begin") request.begin(answer);
    else if (answer.kind === "pages") return request.store(answer.pages).then(more);
  });
}

/**
 * Returns the images of a page of a PDF as one JPEG, in their positions.
 *
 * @param page From 1.
 * @throws {ExtractionFault} Like `drawPageImages`, and `too_large`, `timeout`. {AppError} errors of `content`. The
 *   signal's reason.
 */
export async function extractPageImage(
  source: ExtractionSource,
  page: number,
  limits = WORKER_LIMITS,
): Promise<Uint8Array<ArrayBuffer>> {
  let jpeg: Uint8Array<ArrayBuffer> | undefined;
  await runWorker(source, { ...limits, timeMs: Math.min(IMAGE_TIME_MS, limits.timeMs) }, page, (answer) => {
    if (answer.kind === "image") jpeg = answer.jpeg;
  });
  return jpeg!;
}

/**
 * Runs a Worker for one document.
 *
 * The Worker is terminated at its limits. Its JavaScript heap is limited by the runtime (since Deno 2.9). Buffers
 * outside the heap, and the heap in older runtimes, are limited by watching how much the process has grown.
 *
 * @param imagePage The page whose images are extracted instead of the text.
 * @param take Called with the Worker's results; call `resume` to continue after pages.
 */
async function runWorker(
  { content, sizeBytes, name, contentType, url, signal }: ExtractionSource,
  limits: WorkerLimits,
  imagePage: number | undefined,
  take: (answer: ExtractionResponse, more: () => void) => Promise<void> | void,
): Promise<void> {
  signal.throwIfAborted();
  const done = Promise.withResolvers<void>();
  done.promise.catch(() => {}); // Awaited below, once the content is sent.
  const worker = new Worker(new URL("./document_worker.ts", import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: Math.ceil(limits.memoryBytes / MIB) },
  });
  const post = (order: ExtractionOrder) => worker.postMessage(order);
  const createTooLargeError = () => {
    const limit = Math.round(limits.memoryBytes / MIB);
    done.reject(new ExtractionFault("too_large", `Can't read the file: it needs more than ${limit} MiB of memory`));
  };
  worker.on("message", (answer: ExtractionResponse) => {
    switch (answer.kind) {
      case "memory":
        return watch.report(answer.bytes);
      case "end":
        return done.resolve();
      case "fault":
        return done.reject(new ExtractionFault(answer.code, answer.message, answer.pages));
      default:
        take(answer, () => post({ kind: "more" }))?.catch(done.reject);
        if (answer.kind === "image") done.resolve();
    }
  });
  worker.on("error", (error: Error & { code?: string }) => {
    if (error.code === "ERR_WORKER_OUT_OF_MEMORY") return createTooLargeError();
    done.reject(new ExtractionFault("damaged", `Can't read the file: ${getErrorMessage(error)}`));
  });
  worker.on("exit", () => done.reject(new ExtractionFault("damaged", "Can't read the file: the Worker ended")));
  const timer = setTimeout(() => {
    const limit = Math.round(limits.timeMs / 1000);
    done.reject(new ExtractionFault("timeout", `Can't read the file: it took longer than ${limit} s`));
  }, limits.timeMs);
  const watch = watchMemory(limits.memoryBytes, createTooLargeError);
  const stop = () => done.reject(signal.reason);
  signal.addEventListener("abort", stop);
  try {
    post({ kind: "begin", name, contentType, sizeBytes, limits: toExtractionLimits(limits), url, imagePage });
    await Promise.race([sendContent(content, sizeBytes, post), done.promise]);
    await done.promise;
  } finally {
    clearTimeout(timer);
    watch.end();
    signal.removeEventListener("abort", stop);
    await worker.terminate();
  }
}

async function sendContent(
  content: AsyncIterable<Uint8Array<ArrayBuffer>>,
  sizeBytes: number,
  post: (order: ExtractionOrder) => void,
): Promise<void> {
  let sentBytes = 0;
  for await (const bytes of content) {
    sentBytes += bytes.length;
    if (sentBytes > sizeBytes) break;
    post({ kind: "bytes", bytes });
  }
  if (sentBytes !== sizeBytes) throw new AppError("internal", "The stored file of a document has the wrong size");
  post({ kind: "end" });
}

function toExtractionLimits({ inflatedBytes, pages, chars }: WorkerLimits): ExtractionLimits {
  return { inflatedBytes, pages, chars };
}

/**
 * Calls `onExceeded` when the process has grown by more than the limit, unless the Worker has just reported that it
 * isn't the cause.
 */
function watchMemory(limitBytes: number, onExceeded: () => void) {
  const startBytes = Deno.memoryUsage().rss;
  let last = { bytes: 0, atMs: -Infinity };
  const timer = setInterval(() => {
    if (Deno.memoryUsage().rss - startBytes <= limitBytes) return;
    const isInnocent = last.bytes < limitBytes && performance.now() - last.atMs < REPORT_TTL_MS;
    if (!isInnocent) onExceeded();
  }, WATCH_MS);
  return {
    report: (bytes: number) => void (last = { bytes, atMs: performance.now() }),
    end: () => clearInterval(timer),
  };
}
