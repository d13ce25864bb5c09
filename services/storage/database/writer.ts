/** The serving thread's end of the writer Worker: gathers writes into groups and hands each its outcome. */

import { AppError } from "../../errors.ts";
import { writeError } from "./sqlite_errors.ts";
import type { SqlValue, Statement, StatementResult } from "./write_group.ts";
import type { WriterAnswer, WriterRequest } from "./writer_worker.ts";

/** How a unit is handed over. */
export interface WriteOptions {
  /** Moves the blobs instead of copying them: their arrays are empty afterwards. */
  isMoved?: boolean;
}

/** Takes writes and answers them once they are durable. */
export interface Writer {
  /** See `Database.write`. */
  write(statements: Statement[], options?: WriteOptions): Promise<StatementResult[]>;
  /** Starts the Worker, which the first write does otherwise. */
  prepare(): void;
  /** Waits for the writes taken so far, then ends the Worker. Later writes are refused. */
  close(): Promise<void>;
}

/** How to open a writer. */
export interface WriterOptions {
  path: string;
  /** Makes the Worker: for the first write, and again for the first one after it has died. */
  startWorker: () => Worker;
}

interface PendingUnit {
  statements: Statement[];
  isMoved: boolean;
  resolve(results: StatementResult[]): void;
  reject(error: AppError): void;
}

/**
 * Opens the writer. Its Worker is a thread with a heap of its own, which a server that nobody asks anything can do without.
 *
 * One group is under way at a time, and what is written meanwhile gathers for the next: a slow disk makes the groups
 * larger rather than the queue longer. A lone write goes out at the end of the present microtask.
 */
export function openWriter(options: WriterOptions): Writer {
  let worker: Worker | undefined;
  let underWay: PendingUnit[] = [];
  let gathered: PendingUnit[] = [];
  let isScheduled = false;
  let closing: Promise<void> | undefined;
  let onIdle: (() => void) | undefined;
  let onClosed: (() => void) | undefined;

  function startWorker(): Worker {
    const started = options.startWorker();
    started.onmessage = ({ data }: MessageEvent<WriterAnswer>) => {
      if (data.kind === "closed") onClosed?.();
      else settleGroup(data);
    };
    started.onerror = (event) => {
      event.preventDefault(); // else it would end the process
      failGroup(started, event.message);
    };
    started.onmessageerror = () => failGroup(started, "its answer could not be read");
    post(started, { kind: "open", path: options.path });
    return started;
  }

  function settleGroup({ outcomes }: WriterAnswer & { kind: "group" }): void {
    const settled = underWay;
    underWay = [];
    sendGroup(); // the next one is written while the answers of this one are looked at
    settled.forEach((unit, index) => {
      const outcome = outcomes[index];
      if (outcome === undefined) unit.reject(new AppError("internal", "Cannot write to the database: no answer"));
      else if ("failure" in outcome) unit.reject(writeError(outcome.failure));
      else unit.resolve(outcome.results);
    });
  }

  /** The Worker is lost, and whether its group was committed is unknown. */
  function failGroup(failed: Worker, reason: string): void {
    if (failed !== worker) return;
    failed.terminate();
    worker = undefined;
    const lost = underWay;
    underWay = [];
    onClosed?.();
    for (const unit of lost) {
      unit.reject(new AppError("internal", `Cannot write to the database: the writer has ended (${reason})`));
    }
    sendGroup();
  }

  function sendGroup(): void {
    isScheduled = false;
    if (underWay.length > 0) return;
    if (gathered.length === 0) {
      onIdle?.();
      return;
    }
    underWay = gathered;
    gathered = [];
    worker ??= startWorker();
    const moved = underWay.filter(({ isMoved }) => isMoved).flatMap(({ statements }) => buffersOf(statements));
    const units = underWay.map((unit) => unit.statements);
    post(worker, { kind: "group", units, isLarge: moved.length > 0 }, [...new Set(moved)]);
  }

  async function finish(): Promise<void> {
    if (underWay.length > 0 || gathered.length > 0) await new Promise<void>((resolve) => onIdle = resolve);
    const last = worker;
    if (last === undefined) return;
    await new Promise<void>((resolve) => {
      onClosed = resolve;
      post(last, { kind: "close" });
    });
    worker = undefined;
    last.terminate();
  }

  return {
    prepare() {
      if (closing === undefined) worker ??= startWorker();
    },
    write(statements, { isMoved = false } = {}) {
      if (closing !== undefined) {
        return Promise.reject(new AppError("internal", "Cannot write to the database: it is closed"));
      }
      return new Promise((resolve, reject) => {
        const own = statements.map(ownStatement); // what it throws becomes the rejection
        gathered.push({ statements: own, isMoved, resolve, reject });
        if (isScheduled || underWay.length > 0) return;
        isScheduled = true;
        queueMicrotask(sendGroup);
      });
    },
    close() {
      closing ??= finish();
      return closing;
    },
  };
}

function post(worker: Worker, message: WriterRequest, moved: ArrayBuffer[] = []): void {
  worker.postMessage(message, moved);
}

function buffersOf(statements: Statement[]): ArrayBuffer[] {
  return statements.flatMap(({ params = [] }) =>
    params.flatMap((value) => value instanceof Uint8Array && value.buffer instanceof ArrayBuffer ? [value.buffer] : [])
  );
}

/** Copies what the caller could change before the group goes out, and refuses what SQLite would store otherwise. */
function ownStatement({ sql, params, expectChanges }: Statement): Statement {
  return { sql, params: params?.map((value, index) => ownValue(value, index, sql)), expectChanges };
}

function ownValue(value: SqlValue, index: number, sql: string): SqlValue {
  if (value instanceof Uint8Array) {
    // A view is sent with the whole buffer under it, so a part of a larger buffer is cut out first.
    return value.byteLength === value.buffer.byteLength ? value : new Uint8Array(value);
  }
  if (typeof value === "string") {
    // node:sqlite gives a text back cut at its first NUL, and half a surrogate pair as another character.
    if (!value.includes("\0") && value.isWellFormed()) return value;
    throw refused(index, sql, "a text with NUL or half a surrogate pair");
  }
  if (value === null || typeof value === "bigint" || Number.isFinite(value)) return value;
  throw refused(index, sql, typeof value === "number" ? String(value) : typeof value);
}

function refused(index: number, sql: string, found: string): AppError {
  return new AppError("internal", `Cannot write to the database: value ${index + 1} of "${sql}" is ${found}`);
}
