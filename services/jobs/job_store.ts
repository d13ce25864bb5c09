/** Jobs in table `job`: their states, the allowed transitions, and their rows. job_runner.ts decides what happens next. */
import { AppError, type ErrorCode } from "../errors.ts";

/** State of a job at one point in time. */
export interface JobSnapshot {
  id: string;
  kind: string;
  /** The key passed to `start`. */
  key?: string;
  title: string;
  state: JobState;
  progress: JobProgress | null;
  /** Details of this kind of job, such as the files of a download or the report of an import. */
  detail?: unknown;
  /** Set when the job failed. */
  error?: JobError;
  createdAtMs: number;
  updatedAtMs: number;
}

/** Context of a running job. */
export interface JobContext {
  readonly id: string;
  /** The parameters passed to `start`, as JSON. After an update, they may be from an older version of the program. */
  readonly params: unknown;
  /** Fires on cancel and on shutdown. */
  readonly signal: AbortSignal;
  /** True if an earlier process started this job. */
  readonly isResumed: boolean;
  /** Reports progress. Saved with the next change of state. */
  progress(progress: JobProgress | null): void;
  /** Sets the details of this kind (JSON). Saved with the next change of state. */
  detail(detail: unknown): void;
  /**
   * Starts the final phase of the job, in which it can't be cancelled. Call it before the first lasting effect, such as
   * renaming a download. If `run` returns without calling it, the job still passes through this state.
   *
   * @throws The signal's reason if the job was already cancelled.
   */
  startVerifying(): Promise<void>;
}

/** One kind of job. */
export interface JobKind {
  /** Maximum number of jobs of this kind at the same time. */
  parallel: number;
  /** True if `run` can start again with the same parameters. Otherwise, an interrupted job fails at the next start. */
  resumable: boolean;
  /** Does the work. Ends soon after the signal fires and cleans up, unless `discard` does that. */
  run(context: JobContext): Promise<void>;
  /**
   * Deletes the leftovers of a canceled job, even if it was canceled before it ran again. For kinds that preserve
   * unfinished results after a failure or restart, so that the next run can continue with them.
   */
  discard?(params: unknown): Promise<void>;
}

/** A new job to start. */
export interface JobRequest {
  title: string;
  /** Parameters of the job; JSON. */
  params: unknown;
  /** Identifies the job within its kind: while a job with this key is unfinished, `start` returns that job. */
  key?: string;
  /** Initial progress, shown before the job runs. */
  progress?: JobProgress;
  detail?: unknown;
}

/** Starts, cancels and lists background jobs. */
export interface JobRunner {
  /**
   * Registers a kind, and continues the jobs of an earlier process: queued ones start, running ones start again if the
   * kind is resumable, and others fail. They start after the caller's current synchronous code.
   */
  register(kind: string, definition: JobKind): void;
  /**
   * Stores a job and queues it.
   *
   * @throws {AppError} `not_available` while closing; errors of the database
   */
  start(kind: string, request: JobRequest): Promise<JobSnapshot>;
  /**
   * Cancels a job and waits until it has cleaned up.
   *
   * @throws {AppError} `not_found`; `conflict` if it has ended or is being verified
   */
  cancel(id: string): Promise<JobSnapshot>;
  /**
   * Removes an ended job from the list. The caller deletes its leftovers.
   *
   * @throws {AppError} `not_found`; `conflict` if it hasn't ended; errors of the database.
   */
  forget(id: string): Promise<void>;
  /** Waits for the end of a job. @throws {AppError} `not_found` */
  ended(id: string): Promise<JobSnapshot>;
  /** Lists all jobs, newest first. */
  list(): JobSnapshot[];
  /** @throws {AppError} `not_found` */
  get(id: string): JobSnapshot;
  /** Aborts running jobs and waits for them. Resumable jobs continue at the next start. */
  close(): Promise<void>;
}

/** State of a job. */
export type JobState = "queued" | "running" | "verifying" | "done" | "failed" | "cancelled";

/** Allowed transitions. States without an entry are final. */
const LEGAL_STEPS: Partial<Record<JobState, readonly JobState[]>> = {
  queued: ["running", "cancelled"],
  running: ["verifying", "failed", "cancelled"],
  verifying: ["done", "failed"],
};

/** All states, in the order a job goes through them. */
export const JOB_STATES: readonly JobState[] = ["queued", "running", "verifying", "done", "failed", "cancelled"];

/** Returns whether a stored text is a state. */
export function isJobState(text: string): text is JobState {
  return JOB_STATES.some((state) => state === text);
}

/** Returns whether a state is final. */
export function isEnd(state: JobState): boolean {
  return LEGAL_STEPS[state] === undefined;
}

/** Returns whether a transition is allowed. */
export function isLegalStep(from: JobState, to: JobState): boolean {
  return LEGAL_STEPS[from]?.includes(to) ?? false;
}

/**
 * Checks that a step is legal.
 *
 * @throws {AppError} `conflict`, with both states in the message.
 */
export function assertLegalStep(id: string, from: JobState, to: JobState): void {
  if (!isLegalStep(from, to)) {
    throw new AppError("conflict", `Job "${id}" can't change from ${from} to ${to}`);
  }
}

/** Progress of a job. */
interface JobProgress {
  done: number;
  /** `null` if unknown. */
  total: number | null;
  /** What is counted, such as `"bytes"`, `"steps"`. */
  unit: string;
}

/** Why a job failed. The message can be shown. */
export interface JobError {
  code: ErrorCode;
  message: string;
}

/** Content of a job besides its state; encrypted as one JSON text. */
export interface JobContent {
  title: string;
  /** Passed to the kind's `run`, even after a restart. */
  params: unknown;
  /** Unique among unfinished jobs of the kind. */
  key?: string;
  progress: JobProgress | null;
  /** Details of this kind of job; JSON. */
  detail?: unknown;
  error?: JobError;
}

/** One job. */
export interface JobRecord {
  id: string;
  kind: string;
  state: JobState;
  createdAtMs: number;
  /** Increases with every save, because it's the version in the AAD of the content. */
  updatedAtMs: number;
  /** `undefined` if it couldn't be decrypted. */
  content: JobContent | undefined;
}

/** The part of the database that jobs need. */
export interface JobDatabase {
  all<T>(sql: string, ...params: string[]): T[];
  write(statements: { sql: string; params: (string | number | Uint8Array)[] }[]): Promise<unknown>;
}

/** The part of a sealer that jobs need. */
export interface JobSealer {
  sealNow(aad: { table: string; id: string; field: string; version: number }, plain: string): Uint8Array;
  openNow(aad: { table: string; id: string; field: string; version: number }, sealed: Uint8Array): Uint8Array;
}

/** Reads and writes jobs. */
export interface JobStore {
  /** Lists all stored jobs, oldest first. Unreadable ones have no content. */
  loadAll(): JobRecord[];
  /** Saves the current state of a job. Saves of the same job are written in order. */
  save(record: JobRecord): Promise<void>;
  remove(ids: string[]): Promise<void>;
}

interface JobRow {
  id: string;
  kind: string;
  state: string;
  created_at: number;
  updated_at: number;
  sealed: Uint8Array;
}

/** Creates a store for an open database. */
export function createJobStore(database: JobDatabase, sealer: JobSealer, now: () => number): JobStore {
  function openContent(row: JobRow): JobContent | undefined {
    try {
      const text = new TextDecoder().decode(sealer.openNow(createAad(row.id, row.updated_at), row.sealed));
      return JSON.parse(text) as JobContent;
    } catch {
      return undefined; // Only this job is lost. The list shows it as unreadable.
    }
  }

  return {
    loadAll() {
      return database.all<JobRow>("SELECT * FROM job ORDER BY created_at, id").map((row) => ({
        id: row.id,
        kind: row.kind,
        state: isJobState(row.state) ? row.state : "failed",
        createdAtMs: row.created_at,
        updatedAtMs: row.updated_at,
        content: isJobState(row.state) ? openContent(row) : undefined,
      }));
    },

    async save(record) {
      const { id, kind, state, createdAtMs, content } = record;
      if (content === undefined) {
        // The content can't be decrypted, so it's left unchanged.
        await database.write([{ sql: "UPDATE job SET state = ? WHERE id = ?", params: [state, id] }]);
        return;
      }
      const updatedAtMs = Math.max(now(), record.updatedAtMs + 1); // A clock that is set back must not repeat a version.
      record.updatedAtMs = updatedAtMs;
      const sealed = sealer.sealNow(createAad(id, updatedAtMs), JSON.stringify(content));
      await database.write([{
        sql: `INSERT INTO job(id, kind, state, created_at, updated_at, sealed) VALUES(?, ?, ?, ?, ?, ?)
          ON CONFLICT(id) DO UPDATE SET state = excluded.state, updated_at = excluded.updated_at, sealed = excluded.sealed`,
        params: [id, kind, state, createdAtMs, updatedAtMs, sealed],
      }]);
    },

    async remove(ids) {
      await database.write(ids.map((id) => ({ sql: "DELETE FROM job WHERE id = ?", params: [id] })));
    },
  };
}

function createAad(id: string, version: number) {
  return { table: "job", id, field: "sealed", version };
}
