/** A backup a day into a folder of the owner's, made by the running server, and the oldest ones removed. */
import { join, resolve } from "node:path";
import { AppError } from "../errors.ts";
import type { JobRunner } from "../jobs/job.ts";
import type { Log } from "../log.ts";
import { fileError } from "../storage/atomic_file.ts";
import type { BackupReport, BackupRequest } from "./backup.ts";
import type { BackupAnswer } from "./backup_worker.ts";

/** What the daily backup works with. */
export interface DailyBackupOptions {
  jobs: JobRunner;
  log: Log;
  now(): number;
  dataDir: string;
  storageKey: Uint8Array;
  /** Seals them where it is set; else the storage key does, which is then not inside. */
  passphrase: string | undefined;
  /** Version of the program. */
  version: string;
  /** Where they go; `null` for none. */
  folder: string | null;
  /** How many are kept. */
  keep: number;
}

const KIND = "backup";
const DAY_MS = 24 * 60 * 60 * 1000;
/** How often it is looked whether a day is over; a machine that slept through the hour makes it up. */
const LOOK_MS = 60 * 60 * 1000;
const NAME = /^parlor-(\d{4}-\d\d-\d\d)T(\d\d)(\d\d)(\d\d)Z\.backup$/;

/** Makes the daily backups of an open server. */
export class DailyBackup {
  readonly #options: DailyBackupOptions;
  #timer: ReturnType<typeof setInterval> | undefined;
  #looking: Promise<void> = Promise.resolve();

  private constructor(options: DailyBackupOptions) {
    this.#options = options;
  }

  /** @throws {AppError} `invalid_request` for a folder in the data directory itself. */
  static open(options: DailyBackupOptions): DailyBackup {
    const { jobs, folder, dataDir } = options;
    if (folder !== null && `${resolve(folder)}/`.startsWith(`${resolve(dataDir)}/`)) {
      throw new AppError(
        "invalid_request",
        "Bad value for backup_dir: it lies in the data folder, and whatever takes that takes the backups with it",
      );
    }
    const daily = new DailyBackup(options);
    jobs.register(KIND, { parallel: 1, resumable: false, run: ({ signal }) => daily.#run(signal) });
    if (folder !== null) {
      daily.look();
      daily.#timer = setInterval(() => daily.look(), LOOK_MS);
    }
    return daily;
  }

  /** Starts a backup when the last one is a day old. */
  look(): void {
    this.#looking = this.#startWhenDue().catch((error) =>
      this.#options.log("error", "Cannot start the daily backup", { error: String(error) })
    );
  }

  /** Waits for the look under way; the job itself ends with the other jobs. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  async #startWhenDue(): Promise<void> {
    const { jobs, now, folder } = this.#options;
    // A folder that cannot be read is told by the job that fails on it, where the owner sees it.
    const last = (await this.#backups().catch(() => [])).at(-1);
    if (last !== undefined && now() - timeOf(last) < DAY_MS) return;
    await jobs.start(KIND, { title: "Daily backup", params: {}, key: `daily ${folder}` });
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { log, now, dataDir, storageKey, passphrase, version, folder, keep } = this.#options;
    if (folder === null) throw new AppError("not_available", "Cannot back up: backup_dir is not set any more");
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 }).catch((cause) => {
      throw fileError(`Cannot make the folder "${folder}"`, cause);
    });
    const nowMs = now();
    const path = join(folder, nameOf(nowMs));
    const report = await backupInWorker({ dataDir, storageKey, path, passphrase, version, nowMs }, signal);
    const all = await this.#backups();
    for (const name of all.slice(0, Math.max(0, all.length - keep))) await Deno.remove(join(folder, name));
    log("info", "Made the daily backup", { files: report.files, bytes: report.sizeBytes });
  }

  /** Names of the backups in the folder, oldest first; other files there are not ours. */
  async #backups(): Promise<string[]> {
    try {
      const entries = await Array.fromAsync(Deno.readDir(this.#options.folder!));
      return entries.map(({ name }) => name).filter((name) => NAME.test(name)).sort();
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return [];
      throw error;
    }
  }
}

function nameOf(nowMs: number): string {
  return `parlor-${new Date(nowMs).toISOString().slice(0, 19).replaceAll(":", "")}Z.backup`;
}

function timeOf(name: string): number {
  const [, date, hour, minute, second] = NAME.exec(name)!;
  return Date.parse(`${date}T${hour}:${minute}:${second}Z`);
}

/** A Worker that is ended leaves a temporary file, which no backup takes for one of its own. */
async function backupInWorker(request: BackupRequest, signal: AbortSignal): Promise<BackupReport> {
  const worker = new Worker(new URL("./backup_worker.ts", import.meta.url), { type: "module" });
  const { promise, resolve, reject } = Promise.withResolvers<BackupAnswer>();
  worker.onmessage = ({ data }: MessageEvent<BackupAnswer>) => resolve(data);
  worker.onerror = (event) => {
    event.preventDefault(); // else it would end the process
    reject(new AppError("internal", `Cannot make the backup: ${event.message}`));
  };
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort);
  try {
    signal.throwIfAborted();
    worker.postMessage(request);
    const answer = await promise;
    if ("report" in answer) return answer.report;
    throw new AppError(answer.failure.code, answer.failure.message);
  } finally {
    signal.removeEventListener("abort", abort);
    worker.terminate();
  }
}
