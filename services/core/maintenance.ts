/** Runs cleanup tasks one after another: once soon after the start, then at intervals. */
import { Mutex } from "../async/locks.ts";
import type { Lazy } from "../async/lazy.ts";
import { findOverdueRevisions } from "../conversations/revisions/change_log.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Core } from "./open_core.ts";

/** A cleanup task. */
interface MaintenanceTask {
  /** What it does, for the log: `"remove expired trash"`. */
  name: string;
  /** How often it runs after the first time; only once if absent. */
  everyMs?: number;
  run(): Promise<void>;
}

/** Services with something to clean up. Those that have nothing to do aren't opened. */
export interface MaintainedServices {
  attachments: Lazy<{ sweep(): Promise<unknown> }>;
  documents: Lazy<{ documents: { sweep(): Promise<unknown> } }>;
  conversations: Lazy<{ revisions: { sweep(): Promise<unknown> }; references: { sweep(): Promise<unknown> } }>;
  imports: Lazy<unknown>;
  speech: Lazy<unknown>;
  memory: Lazy<{ proposals: { settleReading(isWanted: boolean): Promise<unknown> } }>;
  chat: Lazy<{ memoryReading: { check(): Promise<void> } }>;
}

const MINUTE_MS = 60 * 1000;
const HOUR_MS = 60 * MINUTE_MS;

/** Delay of the first run, so that cleanup doesn't slow down the first requests. */
const FIRST_RUN_MS = 1_000;

/** Runs cleanup tasks. A task that fails is logged and doesn't stop the others. */
class Maintenance {
  readonly #tasks: readonly MaintenanceTask[];
  readonly #log: Log;
  readonly #timers: ReturnType<typeof setTimeout>[] = [];
  readonly #mutex = new Mutex();

  constructor(tasks: readonly MaintenanceTask[], log: Log) {
    this.#tasks = tasks;
    this.#log = log;
  }

  /** Schedules all tasks. */
  start(): void {
    this.#timers.push(setTimeout(() => this.runAll(), FIRST_RUN_MS));
    for (const task of this.#tasks) {
      if (task.everyMs !== undefined) this.#timers.push(setInterval(() => this.#run(task), task.everyMs));
    }
  }

  /** Runs all tasks now and resolves when they have ended. */
  async runAll(): Promise<void> {
    await Promise.all(this.#tasks.map((task) => this.#run(task)));
  }

  /** Stops the schedule and waits for the running task. */
  async close(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#mutex.settled();
  }

  #run(task: MaintenanceTask): Promise<void> {
    return this.#mutex.run(() => task.run()).catch((error) =>
      this.#log("error", `Maintenance failed: ${task.name}`, { error: messageOf(error) })
    );
  }
}

/** Creates Parlor's cleanup tasks. */
export function createMaintenance(core: Core, services: MaintainedServices): Maintenance {
  const { db, folders, log, now, trash, versions } = core;
  return new Maintenance([
    {
      name: "remove expired trash, versions and revisions",
      everyMs: 24 * HOUR_MS,
      async run() {
        await trash.sweep();
        await versions.sweep();
        if (findOverdueRevisions(db, now()).length > 0) await (await services.conversations()).revisions.sweep();
      },
    },
    {
      name: "remove unused attachments",
      everyMs: HOUR_MS,
      async run() {
        const row = db.get("SELECT 1 FROM attachment UNION ALL SELECT 1 FROM attachment_ref LIMIT 1");
        if (row === undefined && await isEmptyFolder(folders.attachments)) return;
        await (await services.conversations()).references.sweep();
        await (await services.attachments()).sweep();
      },
    },
    {
      name: "remove files of documents that a crash left",
      everyMs: 24 * HOUR_MS,
      async run() {
        if (!await isEmptyFolder(folders.documents)) await (await services.documents()).documents.sweep();
      },
    },
    {
      name: "read chats that have ended for notes",
      everyMs: MINUTE_MS,
      async run() {
        if (core.settings.get().settings.memory_proposals) return await (await services.chat()).memoryReading.check();
        // Chats from the time when it was off aren't read later.
        const hasRead = db.get("SELECT 1 FROM setting WHERE key = 'memory_use'") !== undefined;
        if (hasRead) await (await services.memory()).proposals.settleReading(false);
      },
    },
    {
      // Each service removes its own leftovers when it opens.
      name: "remove temporary files of an earlier process",
      async run() {
        if (!await isEmptyFolder(folders.replies)) await services.conversations();
        if (!await isEmptyFolder(folders.imports)) await services.speech();
        if (!await isEmptyFolder(folders.uploads)) await services.imports();
      },
    },
  ], log);
}

async function isEmptyFolder(path: string): Promise<boolean> {
  for await (const _ of Deno.readDir(path)) return false;
  return true;
}
