/** Reads an import in a Worker that ends with it. `import_worker.ts` is its other side. */
import { dirname } from "node:path";
import { AppError } from "../errors.ts";
import type { ImportedMessage, ImportKind, ImportStep } from "./import_item.ts";
import type { ReadingAnswer, ReadingOrder } from "./import_worker.ts";

/** What to read. */
export interface ReadingRequest {
  kind: ImportKind;
  path: string;
  /** Name of a single file. */
  name?: string;
  /** Folder for temporary files; created when needed and removed at the end. */
  scratch: string;
  signal: AbortSignal;
  /** Called with the number of files once it is known. */
  begin(files: number): void;
}

/** Yields all items of an import. @throws {AppError} The reader's errors; the signal's reason. */
export async function* readImport(
  { signal, begin, kind, path, name, scratch }: ReadingRequest,
): AsyncGenerator<ImportStep> {
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
    event.preventDefault(); // an unhandled error event would end the process
    refuse(new AppError("unprocessable", `Can't read the import: ${event.message}`));
  };
  signal.addEventListener("abort", stop);
  try {
    let next: Promise<ReadingAnswer> | undefined = ask({ kind, path, name, scratch });
    let messages: ImportedMessage[] = [];
    while (next !== undefined) {
      const answer: ReadingAnswer = await next;
      if (answer.failure !== undefined) throw new AppError(answer.failure.code, answer.failure.message);
      if (answer.messages !== undefined) {
        for (const message of answer.messages) messages.push(message);
        next = ask("more");
        continue;
      }
      const first = answer.steps?.[0];
      const isLarge = messages.length > 0;
      if (isLarge && first?.what === "conversation") [first.messages, messages] = [messages, []];
      const readOn = () => {
        const reading = answer.isEnd ? undefined : ask("more");
        reading?.catch(() => {}); // thrown when it is awaited
        return reading;
      };
      // The Worker reads the next batch while this one is written, so two are in memory. A large conversation is alone.
      if (!isLarge) next = readOn();
      if (answer.files !== undefined) begin(answer.files);
      for (const step of answer.steps ?? []) {
        yield step;
        // The consumer has written a character before it asks for the next item.
        const file = step.what === "character" ? step.file : undefined;
        if (typeof file === "string" && dirname(file) === scratch) await Deno.remove(file).catch(() => {});
      }
      if (isLarge) {
        answer.steps = [];
        next = readOn();
      }
    }
  } finally {
    signal.removeEventListener("abort", stop);
    worker.terminate();
    await Deno.remove(scratch, { recursive: true }).catch(() => {});
  }
}
