/** A job runner with a real database, and jobs that tests control. */

import { randomBytes } from "../../../services/crypto/random.ts";
import { createSealer } from "../../../services/crypto/sealer.ts";
import { createEventHub, type EventHub } from "../../../services/events/event_hub.ts";
import type { JobContext, JobKind, JobState } from "../../../services/jobs/job_store.ts";
import { createJobRunner, type JobRunner } from "../../../services/jobs/job_runner.ts";
import type { Database } from "../../../services/storage/database/database.ts";
import { tempFolder, testDatabase } from "../files/storage_folder.ts";
import { expireByClock } from "../app/pass_time.ts";

/** A data folder that job runners can be opened over, one after another as over restarts. */
export interface JobBench extends AsyncDisposable {
  readonly folder: string;
  readonly db: Database;
  readonly events: EventHub;
  /** Log lines above level debug: message and fields as JSON. */
  readonly reports: string[];
  /** Opens a runner and registers kinds. Close it before opening the next. */
  open(kinds: Record<string, JobKind>, now?: () => number): JobRunner;
  /** Resolves when an event reports that a job has reached a state. */
  until(runner: JobRunner, id: string, state: JobState): Promise<void>;
}

/** Opens a bench in a folder of its own. */
export async function jobBench(): Promise<JobBench> {
  const folder = await tempFolder();
  const db = await testDatabase(folder.file("app.db"));
  const events = createEventHub(() => {});
  const sealer = createSealer(randomBytes(32)).forPurpose("jobs");
  const reports: string[] = [];
  return {
    folder: folder.path,
    db,
    events,
    reports,
    open(kinds, now) {
      const runner = createJobRunner({
        db,
        sealer,
        events,
        now,
        isExpired: expireByClock(now ?? Date.now),
        log: (level, ...line) => level === "debug" || reports.push(line.map((part) => JSON.stringify(part)).join(" ")),
      });
      for (const [kind, definition] of Object.entries(kinds)) runner.register(kind, definition);
      return runner;
    },
    until(runner, id, state) {
      return new Promise((resolve) => {
        const look = () => {
          if (runner.get(id).state !== state) return;
          end();
          resolve();
        };
        const end = events.subscribe(look);
        look();
      });
    },
    async [Symbol.asyncDispose]() {
      await db.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** A kind whose jobs wait for the test. */
export interface HeldKind extends JobKind {
  /** Contexts of the started jobs, in order. */
  readonly begun: JobContext[];
  /** Resolves when that many jobs have started. */
  untilBegun(count: number): Promise<void>;
  /** Completes a job, or fails it with an error. */
  release(id: string, error?: Error): void;
}

/** Creates a kind whose jobs end when released, or with the signal's reason when aborted. */
export function heldKind(options: { parallel?: number; resumable?: boolean } = {}): HeldKind {
  const begun: JobContext[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  const waiting: { count: number; resolve(): void }[] = [];
  return {
    parallel: options.parallel ?? 1,
    resumable: options.resumable ?? false,
    begun,
    run(context) {
      begun.push(context);
      for (const { count, resolve } of waiting) if (begun.length >= count) resolve();
      return new Promise((resolve, reject) => {
        ends.set(context.id, (error) => error === undefined ? resolve() : reject(error));
        context.signal.addEventListener("abort", () => reject(context.signal.reason));
      });
    },
    async untilBegun(count) {
      if (begun.length < count) await new Promise<void>((resolve) => waiting.push({ count, resolve }));
    },
    release(id, error) {
      ends.get(id)!(error);
    },
  };
}
