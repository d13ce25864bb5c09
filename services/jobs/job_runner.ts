/** Runs long jobs: one queue per kind, cancellation, and resuming or failing jobs after a restart. */

import { AppError, getErrorMessage } from "../errors.ts";
import { getErrorFields } from "../http/upstream_error.ts";
import type { Log } from "../log.ts";
import type { IsExpired } from "../storage/retention_clock.ts";
import {
  assertLegalStep,
  createJobStore,
  isEnd,
  type JobContext,
  type JobDatabase,
  type JobError,
  type JobKind,
  type JobRecord,
  type JobRunner,
  type JobSealer,
  type JobSnapshot,
  type JobState,
} from "./job_store.ts";

export type * from "./job_store.ts";

/** Minimum time between two announcements of a job's progress. */
const PROGRESS_INTERVAL_MS = 250;

/** Maximum number of ended jobs in the list, and how long they stay. */
const MAX_ENDED_JOBS = 200;
const ENDED_JOB_AGE_MS = 7 * 24 * 60 * 60 * 1000;

/** Dependencies of the runner. */
export interface JobRunnerOptions {
  db: JobDatabase;
  /** For its own purpose, such as `"jobs"`. */
  sealer: JobSealer;
  events: { publish(event: { kind: string; id: string }): void };
  /** Returns the time in milliseconds since 1970. */
  now?: () => number;
  isExpired: IsExpired;
  /** Creates the ID of a new job. */
  newId?: () => string;
  log: Log;
}

/** A job in memory. */
interface LiveJob {
  record: JobRecord;
  abort: AbortController;
  isCancelled: boolean;
  isResumed: boolean;
  announcedAtMs: number;
  /** Announces progress that came too soon after the previous announcement. */
  announceTimer?: ReturnType<typeof setTimeout>;
  /** Resolves when the first save is done. */
  stored: Promise<void>;
  /** Resolves when a final state is stored. */
  over: PromiseWithResolvers<void>;
  /** Resolves when `run` has ended and its state is stored. Only set while it runs. */
  settled?: Promise<void>;
}

interface Lane {
  definition: JobKind;
  queue: LiveJob[];
  runningCount: number;
}

/** Creates the runner and loads the stored jobs. A job doesn't run before its kind is registered. */
export function createJobRunner(options: JobRunnerOptions): JobRunner {
  const { db, sealer, events, now = Date.now, isExpired, log } = options;
  const { newId = () => crypto.randomUUID() } = options;
  const store = createJobStore(db, sealer, now);
  const jobs = new Map<string, LiveJob>(store.loadAll().map((record) => [record.id, toLiveJob(record)]));
  const lanes = new Map<string, Lane>();
  /** Saves that only `close` waits for. */
  const background = new Set<Promise<void>>();
  let isClosing = false;

  function inBackground(work: Promise<void>, what: string): void {
    const guarded = work.catch((error) => log("error", what, { error: getErrorMessage(error) }))
      .finally(() => background.delete(guarded));
    background.add(guarded);
  }

  function announce(job: LiveJob): void {
    clearTimeout(job.announceTimer);
    job.announceTimer = undefined;
    job.announcedAtMs = now();
    events.publish({ kind: "job", id: job.record.id });
  }

  /** Changes the state of a job, first in memory and then in the database. Only allows legal steps. */
  async function changeState(job: LiveJob, to: JobState): Promise<void> {
    const { record } = job;
    assertLegalStep(record.id, record.state, to);
    record.state = to;
    const saved = store.save(record);
    announce(job);
    if (isEnd(to)) prune();
    await saved;
    if (isEnd(to)) job.over.resolve();
  }

  function pump(lane: Lane): void {
    while (!isClosing && lane.runningCount < lane.definition.parallel) {
      const job = lane.queue.shift();
      if (job === undefined) return;
      lane.runningCount++;
      job.settled = runJob(job, lane.definition).finally(() => {
        lane.runningCount--;
        pump(lane);
      });
    }
  }

  async function runJob(job: LiveJob, definition: JobKind): Promise<void> {
    const { record, abort: { signal } } = job;
    const fields = { kind: record.kind, id: record.id };
    const startedAtMs = now();
    log("debug", "A job started", fields);
    try {
      await changeState(job, "running");
      signal.throwIfAborted();
      await definition.run(createContext(job));
      if (record.state === "running") {
        signal.throwIfAborted(); // It ended because of the signal, not because it was done.
        await changeState(job, "verifying");
      }
      await changeState(job, "done");
      log("debug", "A job is done", { ...fields, ms: now() - startedAtMs });
    } catch (error) {
      await settleFailure(job, definition, error).catch((failure) =>
        log("error", "Can't save the end of a job", {
          kind: record.kind,
          id: record.id,
          error: getErrorMessage(failure),
        })
      );
    }
  }

  async function settleFailure(job: LiveJob, definition: JobKind, error: unknown): Promise<void> {
    const { record } = job;
    if (isEnd(record.state)) throw error; // It has ended, but that couldn't be stored.
    if (job.isCancelled && record.state === "running") {
      await discard(job, definition);
      log("debug", "A job was canceled", { kind: record.kind, id: record.id });
      return await changeState(job, "cancelled");
    }
    if (isClosing && definition.resumable) return; // The next start finds it in this state.
    if (isClosing) return await fail(job, interrupted("Parlor was stopped while the job was running"));
    log(isDefect(error) ? "error" : "warn", "A job failed", {
      kind: record.kind,
      id: record.id,
      ...getErrorFields(error),
    });
    await fail(job, toJobError(error));
  }

  /** Cleans up after a cancelled job. A failure is logged and doesn't prevent the job from ending. */
  async function discard({ record }: LiveJob, definition: JobKind | undefined): Promise<void> {
    try {
      await definition?.discard?.(record.content?.params);
    } catch (error) {
      log("warn", "Can't clean up after a job", { kind: record.kind, id: record.id, error: getErrorMessage(error) });
    }
  }

  async function fail(job: LiveJob, error: JobError): Promise<void> {
    if (job.record.content !== undefined) job.record.content.error = error;
    await changeState(job, "failed");
  }

  function createContext(job: LiveJob): JobContext {
    const { record, abort: { signal } } = job;
    return {
      id: record.id,
      params: record.content?.params,
      signal,
      isResumed: job.isResumed,
      progress(progress) {
        if (record.content === undefined || isEnd(record.state)) return;
        record.content.progress = progress && { ...progress };
        const waitMs = job.announcedAtMs + PROGRESS_INTERVAL_MS - now();
        if (waitMs <= 0) announce(job);
        else job.announceTimer ??= setTimeout(() => announce(job), waitMs);
      },
      detail(detail) {
        if (record.content !== undefined && !isEnd(record.state)) record.content.detail = detail;
      },
      async startVerifying() {
        signal.throwIfAborted();
        await changeState(job, "verifying");
      },
    };
  }

  /** Continues a job of an earlier process: queues it again or ends it. The table of legal steps doesn't apply. */
  function resume(lane: Lane, job: LiveJob): void {
    const { record } = job;
    if (record.content !== undefined && (record.state === "queued" || lane.definition.resumable)) {
      job.isResumed = record.state !== "queued";
      record.state = "queued";
      lane.queue.push(job);
      return;
    }
    if (record.state === "queued") record.state = "running"; // Unreadable: the only legal way to its end is through `running`.
    const reason = "Parlor was stopped while the job was running, and jobs of this kind can't be resumed";
    log("warn", "A job was interrupted because the server stopped", { kind: record.kind, id: record.id });
    inBackground(fail(job, interrupted(reason)), "Can't save the end of a job");
  }

  /** Deletes ended jobs that are too old or too many. */
  function prune(): void {
    const ended = [...jobs.values()].filter(({ record }) => isEnd(record.state))
      .sort((a, b) => b.record.updatedAtMs - a.record.updatedAtMs);
    const ids = ended.filter(({ record }, index) =>
      index >= MAX_ENDED_JOBS || isExpired(record.updatedAtMs, ENDED_JOB_AGE_MS)
    )
      .map(({ record }) => record.id);
    if (ids.length === 0) return;
    for (const id of ids) jobs.delete(id);
    inBackground(store.remove(ids), "Can't remove old jobs");
  }

  function getJob(id: string): LiveJob {
    const job = jobs.get(id);
    if (job === undefined) throw new AppError("not_found", `Job "${id}" not found`);
    return job;
  }

  function findUnfinished(kind: string, key: string): LiveJob | undefined {
    return [...jobs.values()].find(({ record }) =>
      record.kind === kind && record.content?.key === key && !isEnd(record.state)
    );
  }

  prune();
  return {
    register(kind, definition) {
      if (lanes.has(kind)) {
        throw new AppError("internal", `Can't register the job kind "${kind}": it's already registered`);
      }
      const lane: Lane = { definition, queue: [], runningCount: 0 };
      lanes.set(kind, lane);
      for (const job of [...jobs.values()]) {
        if (job.record.kind === kind && !isEnd(job.record.state)) resume(lane, job);
      }
      queueMicrotask(() => pump(lane));
    },

    async start(kind, request) {
      const lane = lanes.get(kind);
      if (lane === undefined) throw new AppError("internal", `Can't start a job: its kind "${kind}" is unknown`);
      const { title, params, key, progress = null, detail } = request;
      while (key !== undefined) {
        const same = findUnfinished(kind, key);
        if (same === undefined) break;
        await same.stored;
        if (!same.isCancelled) return createSnapshot(same);
        await same.settled; // It's being cancelled. Its leftovers must be gone before a new one starts.
      }
      if (isClosing) throw new AppError("not_available", `Can't start "${title}": Parlor is shutting down`);
      const nowMs = now();
      const job = toLiveJob({
        id: newId(),
        kind,
        state: "queued",
        createdAtMs: nowMs,
        updatedAtMs: nowMs,
        content: { title, params, key, progress, detail },
      });
      jobs.set(job.record.id, job);
      job.stored = store.save(job.record);
      try {
        await job.stored;
      } catch (error) {
        jobs.delete(job.record.id);
        throw error;
      }
      announce(job);
      const snapshot = createSnapshot(job);
      if (job.record.state === "queued") lane.queue.push(job); // Unless it was canceled in the meantime
      pump(lane);
      return snapshot;
    },

    async cancel(id) {
      const job = getJob(id);
      assertLegalStep(id, job.record.state, "cancelled");
      const lane = lanes.get(job.record.kind);
      if (job.settled === undefined || job.record.state === "queued") {
        lane?.queue.splice(0, lane.queue.length, ...lane.queue.filter((queued) => queued !== job));
        await changeState(job, "cancelled");
        await discard(job, lane?.definition);
      } else {
        job.isCancelled = true;
        job.abort.abort(new DOMException("The job was canceled", "AbortError"));
        await job.settled;
      }
      return createSnapshot(job);
    },

    async forget(id) {
      const job = getJob(id);
      if (!isEnd(job.record.state)) throw new AppError("conflict", `Can't delete job "${id}": it hasn't ended`);
      await store.remove([id]);
      jobs.delete(id);
      events.publish({ kind: "job", id });
    },

    async ended(id) {
      const job = getJob(id);
      if (!isEnd(job.record.state)) await job.over.promise;
      return createSnapshot(job);
    },

    list: () =>
      [...jobs.values()].sort((a, b) =>
        b.record.createdAtMs - a.record.createdAtMs || (a.record.id < b.record.id ? 1 : -1)
      ).map(createSnapshot),

    get: (id) => createSnapshot(getJob(id)),

    async close() {
      isClosing = true;
      const running = [...jobs.values()].filter(({ settled }) => settled !== undefined);
      for (const job of running) job.abort.abort(new DOMException("Parlor is shutting down", "AbortError"));
      await Promise.all(running.map(({ settled }) => settled));
      for (const job of running) clearTimeout(job.announceTimer);
      await Promise.all(background);
    },
  };
}

function toLiveJob(record: JobRecord): LiveJob {
  return {
    record,
    abort: new AbortController(),
    isCancelled: false,
    isResumed: false,
    announcedAtMs: 0,
    stored: Promise.resolve(),
    over: Promise.withResolvers(),
  };
}

function createSnapshot({ record }: LiveJob): JobSnapshot {
  const { id, kind, state, createdAtMs, updatedAtMs, content } = record;
  const base = { id, kind, state, createdAtMs, updatedAtMs };
  if (content === undefined) {
    const error: JobError = { code: "internal", message: `Can't decrypt job "${id}"` };
    return { ...base, title: "", progress: null, error };
  }
  const { key, title, progress, detail, error } = content;
  return { ...base, key, title, progress, detail, error };
}

/** Reports whether a failure is a bug or a problem of Parlor's disk, and not of a request or another server. */
function isDefect(error: unknown): boolean {
  return !(error instanceof AppError) || error.code === "internal" || error.code === "storage_full";
}

/** Returns the error of a job. The message of an AppError can be shown; that of a bug can't. */
function toJobError(error: unknown): JobError {
  if (error instanceof AppError) return { code: error.code, message: error.message };
  return { code: "internal", message: "Internal error. See the server's log for details" };
}

function interrupted(message: string): JobError {
  return { code: "interrupted", message };
}
