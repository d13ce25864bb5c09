/** Jobs in table `job`: their states, the allowed transitions, and their rows. job_runner.ts decides what happens next. */
import { AppError, type ErrorCode } from "../errors.ts";

/** State of a job at one moment. */
export interface JobSnapshot {
  id: string;
  kind: string;
  /** As given to `start`. */
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
  /** As given to `start`, in JSON's terms; after an update of the program an older version may have written them. */
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
   * Begins the end of the job, after which it can't be cancelled: call it before the first lasting effect, such as
   * the rename of a download. A `run` that returns without it passes through on its own.
   *
   * @throws the signal's reason when the job was cancelled before.
   */
  verifying(): Promise<void>;
}

/** One kind of job. */
export interface JobKind {
  /** Maximum number of jobs of this kind at the same time. */
  parallel: number;
  /** True if `run` can start again with the same parameters. Otherwise an interrupted job fails at the next start. */
  resumable: boolean;
  /** Does the work. Ends soon after the signal fires and cleans up, unless `discard` does that. */
  run(context: JobContext): Promise<void>;
  /**
   * Removes what a cancelled job left, also where it was cancelled before it ran again. For kinds whose half-made things
   * outlive a failure or a restart on purpose, so that the next run can go on with them.
   */
  discard?(params: unknown): Promise<void>;
}

/** What a new job is to do. */
export interface JobRequest {
  title: string;
  /** JSON. */
  params: unknown;
  /** Two unfinished jobs of a kind with one key are the same job: `start` gives the one that exists. */
  key?: string;
  /** What shows of the job before it runs, in the form that the kind's `run` gives later. */
  progress?: JobProgress;
  detail?: unknown;
}

/** All background jobs. */
export interface JobRunner {
  /**
   * Makes a kind known, and takes up what an earlier process left of it: jobs still queued, and those left running
   * when the kind is resumable, begin again; the others fail. They begin after the caller's present step.
   */
  register(kind: string, definition: JobKind): void;
  /**
   * Stores a job and queues it.
   *
   * @throws {AppError} `not_available` while closing; what the database throws.
   */
  start(kind: string, request: JobRequest): Promise<JobSnapshot>;
  /**
   * Cancels a job and waits until it has cleaned up.
   *
   * @throws {AppError} `not_found`; `conflict` when it has ended or is being verified.
   */
  cancel(id: string): Promise<JobSnapshot>;
  /**
   * Takes a job that has ended out of the list; its leftovers are the caller's.
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
  /** Aborts what runs and waits for it. Resumable jobs go on at the next start. */
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
 * Refuses an illegal step.
 *
 * @throws {AppError} `conflict`, naming both states.
 */
export function assertLegalStep(id: string, from: JobState, to: JobState): void {
  if (!isLegalStep(from, to)) {
    throw new AppError("conflict", `Job "${id}" can't change from ${from} to ${to}`);
  }
}

/** How far a job has come. */
interface JobProgress {
  done: number;
  /** `null` while unknown. */
  total: number | null;
  /** What is counted, such as `"bytes"`, `"steps"`. */
  unit: string;
}

/** Why a job failed, in words that may be shown. */
export interface JobError {
  code: ErrorCode;
  message: string;
}

/** What a job holds beside its state; sealed as one JSON text. */
export interface JobContent {
  title: string;
  /** Given back to the kind's `run`, also after a restart. */
  params: unknown;
  /** Two unfinished jobs of one kind never share it. */
  key?: string;
  progress: JobProgress | null;
  /** What only this kind of job can say; JSON. */
  detail?: unknown;
  error?: JobError;
}

/** One job. */
export interface JobRecord {
  id: string;
  kind: string;
  state: JobState;
  createdAtMs: number;
  /** Moves with every save, since it is the version the sealed content is bound to. */
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
  sealNow(place: { table: string; id: string; field: string; version: number }, plain: string): Uint8Array;
  openNow(place: { table: string; id: string; field: string; version: number }, sealed: Uint8Array): Uint8Array;
}

/** Reads and writes jobs. */
export interface JobStore {
  /** Lists all stored jobs, oldest first. One that can't be decrypted has no content. */
  loadAll(): JobRecord[];
  /** Saves a job as it is now; saves of one job land in the order they were asked for. */
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

/** Makes the store over an open database. */
export function createJobStore(database: JobDatabase, sealer: JobSealer, now: () => number): JobStore {
  function openContent(row: JobRow): JobContent | undefined {
    try {
      const text = new TextDecoder().decode(sealer.openNow(placeOf(row.id, row.updated_at), row.sealed));
      return JSON.parse(text) as JobContent;
    } catch {
      return undefined; // this job alone is lost, and the list shows it so
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
        // The content can't be decrypted, so it stays as it is.
        await database.write([{ sql: "UPDATE job SET state = ? WHERE id = ?", params: [state, id] }]);
        return;
      }
      const updatedAtMs = Math.max(now(), record.updatedAtMs + 1); // a clock set back must not repeat a version
      record.updatedAtMs = updatedAtMs;
      const sealed = sealer.sealNow(placeOf(id, updatedAtMs), JSON.stringify(content));
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

function placeOf(id: string, version: number) {
  return { table: "job", id, field: "sealed", version };
}
