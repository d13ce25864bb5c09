/**
 * Workers whose uncaught errors are in the log. The runtime would print them as plain text, which no program that reads
 * the log understands.
 */
import { createProcessLog } from "../log.ts";
import { assertFilesForWorker } from "./open_files.ts";
import { containDefects } from "./process_events.ts";

/** Sent by a Worker with an uncaught error. */
interface WorkerDefect {
  uncaughtError: string;
}

/**
 * Opens a Worker whose file calls `reportDefects`. An uncaught error there is an `error` event here, as without it, but
 * doesn't end the Worker.
 *
 * @throws {AppError} `not_available` if the process can't open enough files for it
 */
export function openWorker(url: URL): Worker {
  assertFilesForWorker();
  const name = url.pathname.slice(url.pathname.lastIndexOf("/") + 1).replace(/\.\w+$/, "");
  const worker = new Worker(url, { type: "module", name });
  // The first listener, so that no other one takes the report for an answer.
  worker.addEventListener("message", (event) => {
    const { data } = event as MessageEvent<unknown>;
    if (!isDefect(data)) return;
    event.stopImmediatePropagation();
    worker.dispatchEvent(new ErrorEvent("error", { message: data.uncaughtError, cancelable: true }));
  });
  return worker;
}

function isDefect(data: unknown): data is WorkerDefect {
  return typeof data === "object" && data !== null && "uncaughtError" in data;
}

/** What a Worker that isn't started by `openWorker` says of itself. */
interface WorkerOptions {
  name?: string;
  /** Reports an uncaught error to the thread that started the Worker. */
  report?(message: string): void;
}

/** Called by a Worker's file: logs its uncaught errors, and reports them to the thread that started it. */
export function reportDefects({ name = self.name, report = postDefect }: WorkerOptions = {}): void {
  const log = createProcessLog("error");
  containDefects((level, _message, fields) => {
    log(level, "Uncaught error in a Worker", { worker: name, ...fields });
    report(String(fields?.error).split("\n", 1)[0]!);
  });
}

function postDefect(uncaughtError: string): void {
  self.postMessage({ uncaughtError } satisfies WorkerDefect);
}
