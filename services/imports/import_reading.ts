/** Reads an import in a Worker, which ends with it; import_worker.ts is its other end. */
import { AppError } from "../errors.ts";
import type { ImportKind, ImportStep } from "./import_item.ts";
import type { ReadingAnswer, ReadingOrder } from "./import_worker.ts";

/** What to read. */
export interface ReadingRequest {
  kind: ImportKind;
  path: string;
  /** What a single file is called. */
  name?: string;
  signal: AbortSignal;
  /** Told the number of files as soon as it is known. */
  begin(files: number): void;
}

/** Gives everything that an import holds. @throws {AppError} what its reader throws; the signal's reason */
export async function* readImport({ signal, begin, kind, path, name }: ReadingRequest): AsyncGenerator<ImportStep> {
  const worker = new Worker(new URL("./import_worker.ts", import.meta.url), { type: "module" });
  let take: (answer: ReadingAnswer) => void = () => {};
  let refuse: (error: unknown) => void = () => {};
  const stop = () => refuse(signal.reason);
  const ask = (sent: ReadingOrder) =>
    new Promise<ReadingAnswer>((resolve, reject) => {
      [take, refuse] = [resolve, reject];
      signal.throwIfAborted();
      worker.postMessage(sent);
    });
  worker.onmessage = ({ data }: MessageEvent<ReadingAnswer>) => take(data);
  worker.onerror = (event) => {
    event.preventDefault(); // else it would end the process
    refuse(new AppError("unprocessable", `Cannot read the import: ${event.message}`));
  };
  signal.addEventListener("abort", stop);
  try {
    let next: Promise<ReadingAnswer> | undefined = ask({ kind, path, name });
    while (next !== undefined) {
      const answer: ReadingAnswer = await next;
      if (answer.failure !== undefined) throw new AppError(answer.failure.code, answer.failure.message);
      // It reads on while what it has read is brought in: so two batches are held, and no more.
      next = answer.isEnd ? undefined : ask("more");
      next?.catch(() => {}); // told when it is waited for
      if (answer.files !== undefined) begin(answer.files);
      yield* answer.steps ?? [];
    }
  } finally {
    signal.removeEventListener("abort", stop);
    worker.terminate();
  }
}
