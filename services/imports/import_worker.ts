/** The Worker that opens and reads imports. import_reading.ts is its other end; it takes the next thing when it is ready for it. */
import { AppError, type ErrorCode } from "../errors.ts";
import type { ImportKind, ImportStep } from "./import_item.ts";
import { openSource } from "./import_source.ts";
import { READERS } from "./readers.ts";
import { Scratch } from "./scratch.ts";

/** What the serving thread sends: first what to read, then each time that it wants more. */
export type ReadingOrder = { kind: ImportKind; path: string; name?: string; scratch: string } | "more";

/** What it gets back. */
export interface ReadingAnswer {
  /** How many files there are, with the first answer. */
  files?: number;
  steps?: ImportStep[];
  isEnd?: boolean;
  failure?: { code: ErrorCode; message: string };
}

/** Small things travel together. */
const BATCH = 16;
const BATCH_BYTES = 2 * 1024 * 1024;

async function* answers({ kind, path, name, scratch }: Exclude<ReadingOrder, "more">): AsyncGenerator<ReadingAnswer> {
  const source = await openSource(path, name);
  try {
    yield { files: source.files.length };
    const notes: ImportStep[] = source.passedOver.slice(0, 1_000).map((path) => ({
      what: "note",
      level: "refused",
      source: path,
      reason: "it is no plain file inside of the import",
    }));
    let batch = notes;
    let bytes = 0;
    for await (const step of READERS[kind](source, new Scratch(scratch))) {
      batch.push(step);
      bytes += sizeOf(step);
      if (batch.length < BATCH && bytes < BATCH_BYTES) continue;
      yield { steps: batch };
      batch = [];
      bytes = 0;
    }
    yield { steps: batch, isEnd: true };
  } finally {
    source.close();
  }
}

/** Near enough: what counts is that pictures travel alone. */
function sizeOf(step: ImportStep): number {
  if (step.what === "attachment") return step.bytes.length;
  if (step.what === "voice") return step.audio.length;
  if (step.what === "character") return step.file.length + (step.avatar?.length ?? 0); // a path has no weight
  if (step.what === "persona") return step.avatar?.length ?? 0;
  return step.what === "conversation" ? step.messages.length * 1024 : 1024;
}

/** A defect of a reader is told as one that the file brought about: nothing else is at hand here. */
function failureOf(error: unknown): ReadingAnswer {
  if (error instanceof AppError) return { failure: { code: error.code, message: error.message } };
  const found = error instanceof Error ? error.message : String(error);
  return { failure: { code: "unprocessable", message: `Cannot read the import: ${found}` } };
}

// A page has a window and a Worker has not: importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  let running: AsyncGenerator<ReadingAnswer> | undefined;
  self.onmessage = async ({ data }: MessageEvent<ReadingOrder>) => {
    try {
      if (data !== "more") running = answers(data);
      const next = await running!.next();
      self.postMessage(next.done ? { isEnd: true } : next.value);
    } catch (error) {
      self.postMessage(failureOf(error));
    }
  };
}
