/** Types of background jobs, for the services that define kinds of jobs and the routes that show them. */

import type { JobError, JobProgress, JobState } from "./job_store.ts";

export type { JobState } from "./job_store.ts";
export type { JobError, JobProgress } from "./job_store.ts";

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
