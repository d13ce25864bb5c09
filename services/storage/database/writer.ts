/**
 * Group commit: many units of writes in one transaction with one fsync. The serving thread collects writes into groups
 * and resolves each with its outcome; the writer Worker runs the statements of a group.
 */
import { AppError, getErrorMessage } from "../../errors.ts";
import { DamagedManifest, type ManifestKeeper, type ManifestPlan } from "./manifest.ts";
import { getResultCode, writeError, type WriteFailure } from "./sqlite.ts";
import type { WriterRequest, WriterResponse } from "./writer_worker.ts";
import type { DatabaseSync, StatementSync } from "node:sqlite";

/** Options of a write. */
export interface WriteOptions {
  /** Transfers the blobs instead of copying them; their arrays are empty afterwards. */
  isMoved?: boolean;
}

/** Accepts writes and resolves them once they are durable. */
export interface Writer {
  /** See `Database.write`. */
  write(statements: Statement[], options?: WriteOptions): Promise<StatementResult[]>;
  /** Starts the Worker, which the first write would do otherwise. */
  prepare(): void;
  /** Waits for pending writes, then ends the Worker. Later writes are rejected. */
  close(): Promise<void>;
}

/** How to open a writer. */
export interface WriterOptions {
  path: string;
  /** How to keep the manifest; without it none is kept. */
  manifest?: ManifestPlan;
  /** Called when the manifest was damaged and made again. */
  onManifestRemade?(): void;
  /** Starts the Worker: for the first write, and again if the Worker has died. */
  startWorker: () => Worker;
}

interface PendingUnit {
  statements: Statement[];
  isMoved: boolean;
  resolve(results: StatementResult[]): void;
  reject(error: AppError): void;
}

/**
 * Opens the writer. Its Worker starts with the first write, because an idle server doesn't need another heap.
 *
 * One group is in progress at a time; later writes wait for the next group. A slow disk makes groups larger, not the
 * queue longer. A single write is sent at the end of the current microtask.
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
    started.onmessage = ({ data }: MessageEvent<WriterResponse>) => {
      if (data.kind === "closed") onClosed?.();
      else if (data.kind === "remade") options.onManifestRemade?.();
      else settleGroup(data);
    };
    started.onerror = (event) => {
      event.preventDefault(); // An unhandled error event would end the process.
      failGroup(started, event.message);
    };
    started.onmessageerror = () => failGroup(started, "the database writer sent an unreadable result");
    post(started, { kind: "open", path: options.path, manifest: options.manifest });
    return started;
  }

  function settleGroup({ outcomes }: WriterResponse & { kind: "group" }): void {
    const settled = underWay;
    underWay = [];
    sendGroup(); // Send the next group while the responses of this one are handled.
    settled.forEach((unit, index) => {
      const outcome = outcomes[index];
      if (outcome === undefined) {
        unit.reject(new AppError("internal", "Can't write to the database: no response from the writer"));
      } else if ("failure" in outcome) unit.reject(writeError(outcome.failure));
      else unit.resolve(outcome.results);
    });
  }

  /** Fails a group because the Worker has ended. It's unknown whether the group was committed. */
  function failGroup(failed: Worker, reason: string): void {
    if (failed !== worker) return;
    failed.terminate();
    worker = undefined;
    const lost = underWay;
    underWay = [];
    onClosed?.();
    for (const unit of lost) {
      unit.reject(new AppError("internal", `Can't write to the database: the writer has ended (${reason})`));
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
    const moved = underWay.filter(({ isMoved }) => isMoved).flatMap(({ statements }) => listBuffers(statements));
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
        return Promise.reject(new AppError("internal", "Can't write to the database: it's closed"));
      }
      return new Promise((resolve, reject) => {
        const own = statements.map(copyStatement); // Errors reject the promise.
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

function listBuffers(statements: Statement[]): ArrayBuffer[] {
  return statements.flatMap(({ params = [] }) =>
    params.flatMap((value) => value instanceof Uint8Array && value.buffer instanceof ArrayBuffer ? [value.buffer] : [])
  );
}

/** Copies values that the caller could still change, and rejects values that SQLite would alter. */
function copyStatement({ sql, params, expectChanges }: Statement): Statement {
  return { sql, params: params?.map((value, index) => copyValue(value, index, sql)), expectChanges };
}

function copyValue(value: SqlValue, index: number, sql: string): SqlValue {
  if (value instanceof Uint8Array) {
    // postMessage sends the whole buffer of a view, so copy a part of a larger buffer first.
    return value.byteLength === value.buffer.byteLength ? value : new Uint8Array(value);
  }
  if (typeof value === "string") {
    // node:sqlite truncates texts at the first NUL and replaces unpaired surrogates.
    if (!value.includes("\0") && value.isWellFormed()) return value;
    throw createRefusal(index, sql, "a text with NUL or an unpaired surrogate");
  }
  if (value === null || typeof value === "bigint" || Number.isFinite(value)) return value;
  throw createRefusal(index, sql, typeof value === "number" ? String(value) : typeof value);
}

function createRefusal(index: number, sql: string, found: string): AppError {
  return new AppError("internal", `Can't write to the database: value ${index + 1} of "${sql}" is ${found}`);
}

/** A column value. */
export type SqlValue = string | number | bigint | null | Uint8Array;

/** One statement of a unit. */
export interface Statement {
  sql: string;
  /** Values for each `?`, in order. */
  params?: SqlValue[];
  /** Number of rows it must change; any other number rolls back the unit. */
  expectChanges?: number;
}

/** Result of a statement. */
export interface StatementResult {
  changes: number;
  lastInsertRowid: number;
}

/** Outcome of a unit: durable with a result per statement, or rolled back. */
export type UnitOutcome = { results: StatementResult[] } | { failure: WriteFailure };

/**
 * Commits units together. Each is atomic; a failed one doesn't affect the others.
 *
 * If the transaction can't be committed as a whole, each unit is retried in its own transaction, so that a unit too
 * large for the disk doesn't take small ones with it.
 *
 * @returns One outcome per unit, in order. A unit with `results` is on disk.
 */
export function commitGroup(
  connection: DatabaseSync,
  cache: StatementCache,
  units: Statement[][],
  manifest?: ManifestKeeper,
): UnitOutcome[] {
  try {
    cache.prepare("BEGIN IMMEDIATE").run();
  } catch (error) {
    return units.map(() => ({ failure: toFailure(error) }));
  }
  try {
    const alone = units.length === 1;
    const outcomes = units.map((unit) =>
      alone ? { results: runUnit(cache, unit, manifest) } : runNested(connection, cache, unit, manifest)
    );
    cache.prepare("COMMIT").run();
    return outcomes;
  } catch (error) {
    if (connection.isTransaction) connection.exec("ROLLBACK");
    if (manifest !== undefined && error instanceof DamagedManifest) {
      manifest.remake();
      return commitGroup(connection, cache, units, manifest);
    }
    if (units.length === 1) return [{ failure: toFailure(error) }];
    return units.flatMap((unit) => commitGroup(connection, cache, [unit], manifest));
  }
}

/** Runs a unit in a savepoint of the group's transaction. */
function runNested(
  connection: DatabaseSync,
  cache: StatementCache,
  unit: Statement[],
  manifest: ManifestKeeper | undefined,
): UnitOutcome {
  cache.prepare("SAVEPOINT unit").run();
  try {
    const results = runUnit(cache, unit, manifest);
    cache.prepare("RELEASE unit").run();
    return { results };
  } catch (error) {
    // A full disk or failed read rolls back the whole transaction. See https://www.sqlite.org/lang_transaction.html,
    // "Response To Errors Within A Transaction".
    if (!connection.isTransaction || error instanceof DamagedManifest) throw error;
    connection.exec("ROLLBACK TO unit; RELEASE unit");
    return { failure: toFailure(error) };
  }
}

function runUnit(cache: StatementCache, unit: Statement[], manifest: ManifestKeeper | undefined): StatementResult[] {
  manifest?.begin();
  const results = unit.map(({ sql, params = [], expectChanges }) => {
    const { changes, lastInsertRowid } = cache.prepare(sql).run(...params);
    const result = { changes: Number(changes), lastInsertRowid: Number(lastInsertRowid) };
    if (expectChanges !== undefined && result.changes !== expectChanges) {
      throw new UnmetExpectation(expectChanges, result.changes);
    }
    return result;
  });
  manifest?.save();
  return results;
}

class UnmetExpectation extends Error {
  constructor(readonly expected: number, readonly changed: number) {
    super(`${changed} rows changed instead of ${expected}`);
  }
}

function toFailure(error: unknown): WriteFailure {
  if (error instanceof UnmetExpectation) {
    return { message: error.message, expectation: { expected: error.expected, changed: error.changed } };
  }
  return { message: getErrorMessage(error), resultCode: getResultCode(error) };
}

/**
 * Maximum number of statements per connection. The program has fewer; the limit is for SQL text that is built at run
 * time.
 */
const MAX_STATEMENTS = 200;

/** Returns the prepared statement for an SQL text. */
export interface StatementCache {
  prepare(sql: string): StatementSync;
}

/** Creates the cache of a connection. Keeps the most recently used statements. */
export function createStatementCache(connection: DatabaseSync): StatementCache {
  // Not a package: it takes 16 ms to load, in each Worker.
  const statements = new Map<string, StatementSync>();
  return {
    prepare(sql) {
      const statement = statements.get(sql) ?? connection.prepare(sql);
      statements.delete(sql);
      statements.set(sql, statement);
      if (statements.size > MAX_STATEMENTS) statements.delete(statements.keys().next().value!);
      return statement;
    },
  };
}
