/** Backups in the owner's folder, created by the running server: one a day with rotation, and others on request. */
import { join, resolve } from "node:path";
import { AppError } from "../errors.ts";
import type { JobContext, JobRunner, JobSnapshot } from "../jobs/job.ts";
import type { Log } from "../log.ts";
import { fileError } from "../storage/atomic_file.ts";
import { backupInWorker } from "./backup_worker_client.ts";

/** Dependencies and settings. */
export interface BackupOptions {
  jobs: JobRunner;
  log: Log;
  now(): number;
  dataDir: string;
  storageKey: Uint8Array;
  /** Seals the backups if set; otherwise the storage key does, which they don't contain then. */
  passphrase: string | undefined;
  /** Version of the program. */
  version: string;
  /** Target folder; `null` for no backups. */
  folder: string | null;
  /** Number of daily backups to keep. */
  keep: number;
  /** When the database was created, if known. */
  storeCreatedAtMs?: number;
}

/** A backup in the folder. */
export interface BackupFile {
  name: string;
  sizeBytes: number;
  /** When it was created; ISO 8601, UTC. */
  madeAt: string;
}

/** Parameters of the job; JSON. */
interface BackupParams {
  /** Created on request. These stay until the owner deletes them and don't count toward the daily ones. */
  isAsked?: boolean;
}

const KIND = "backup";
const DAY_MS = 24 * 60 * 60 * 1000;
/** How often to check whether a day has passed; a machine that slept catches up. */
const LOOK_MS = 60 * 60 * 1000;
/** If a backup is this many times larger than the latest, it has data that is missing now. */
const MOST_SHRUNK = 2;
const DAILY_NAME = /^parlor-(\d{4}-\d\d-\d\d)T(\d\d)(\d\d)(\d\d)Z\.backup$/;
/** File names that count as backups. None can leave the folder. */
const NAME = /^[^./\\\0][^/\\\0]*\.backup$/;

/** The backups of an open server. */
export class Backups {
  readonly #options: BackupOptions;
  #timer: ReturnType<typeof setInterval> | undefined;
  #looking: Promise<void> = Promise.resolve();

  private constructor(options: BackupOptions) {
    this.#options = options;
  }

  /** Opens the service. @throws {AppError} `invalid_request` if the folder is inside the data directory. */
  static open(options: BackupOptions): Backups {
    const { jobs, folder, dataDir } = options;
    if (folder !== null && `${resolve(folder)}/`.startsWith(`${resolve(dataDir)}/`)) {
      throw new AppError(
        "invalid_request",
        "Invalid backup_dir: it is inside the data folder, so both would be lost together",
      );
    }
    const backups = new Backups(options);
    jobs.register(KIND, { parallel: 1, resumable: false, run: (context) => backups.#run(context) });
    if (folder !== null) {
      backups.look();
      backups.#timer = setInterval(() => backups.look(), LOOK_MS);
    }
    return backups;
  }

  /** Starts a backup if the last one is a day old. */
  look(): void {
    this.#looking = this.#startWhenDue().catch((error) =>
      this.#options.log("error", "Can't start the daily backup", { error: String(error) })
    );
  }

  /** Starts a backup now, or returns the one in progress. @throws {AppError} `not_available` without a folder. */
  async start(): Promise<JobSnapshot> {
    return await this.#start({ isAsked: true });
  }

  /** Lists all backups, newest first. @throws {AppError} if the folder can't be read. */
  async list(): Promise<BackupFile[]> {
    const { folder } = this.#options;
    if (folder === null) return [];
    const files = (await this.#names(NAME)).map(async (name): Promise<BackupFile[]> => {
      const info = await Deno.stat(join(folder, name)).catch(() => undefined); // removed a moment ago
      if (!info?.isFile) return [];
      return [{ name, sizeBytes: info.size, madeAt: (info.mtime ?? new Date(0)).toISOString() }];
    });
    return (await Promise.all(files)).flat().sort((a, b) => b.madeAt.localeCompare(a.madeAt));
  }

  /** Opens a backup for download; the caller closes it. @throws {AppError} `not_found` */
  async openFile(name: string): Promise<{ file: Deno.FsFile; sizeBytes: number; version: string }> {
    const { folder } = this.#options;
    if (folder === null || !NAME.test(name)) throw noBackup(name);
    let file: Deno.FsFile;
    try {
      file = await Deno.open(join(folder, name));
    } catch (cause) {
      if (cause instanceof Deno.errors.NotFound) throw noBackup(name);
      throw fileError(`Can't read the backup "${name}"`, cause);
    }
    const { isFile, size, mtime } = await file.stat();
    if (isFile) {
      return { file, sizeBytes: size, version: `${(mtime?.getTime() ?? 0).toString(36)}-${size.toString(36)}` };
    }
    file.close();
    throw noBackup(name);
  }

  /** Deletes a backup. @throws {AppError} `not_found` if the folder has no such backup. */
  async remove(name: string): Promise<void> {
    const { folder, log } = this.#options;
    if (folder === null || !NAME.test(name)) throw noBackup(name);
    const path = join(folder, name);
    try {
      // Removes a link itself, not its target, which may be outside.
      const { isDirectory } = await Deno.lstat(path);
      if (isDirectory) throw noBackup(name);
      await Deno.remove(path);
    } catch (cause) {
      if (cause instanceof Deno.errors.NotFound) throw noBackup(name);
      if (cause instanceof AppError) throw cause;
      throw fileError(`Can't remove the backup "${name}"`, cause);
    }
    log("info", "Deleted a backup", { name });
  }

  /** Waits for the current check. The job ends with the other jobs. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  async #startWhenDue(): Promise<void> {
    // The job reports a folder that can't be read, where the owner sees it.
    const last = (await this.#names(DAILY_NAME).catch(() => [])).at(-1);
    if (last !== undefined && this.#options.now() - timeOf(last) < DAY_MS) return;
    await this.#start({});
  }

  async #start(params: BackupParams): Promise<JobSnapshot> {
    const { jobs, folder } = this.#options;
    if (folder === null) throw noFolder();
    const title = params.isAsked ? "Backup" : "Daily backup";
    return await jobs.start(KIND, { title, params, key: folder });
  }

  async #run({ params, signal, progress, verifying }: JobContext): Promise<void> {
    const { isAsked = false } = params as BackupParams;
    const { log, now, dataDir, storageKey, passphrase, version, folder, keep } = this.#options;
    if (folder === null) throw noFolder();
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 }).catch((cause) => {
      throw fileError(`Can't make the folder "${folder}"`, cause);
    });
    const nowMs = now();
    const path = join(folder, nameOf(nowMs, isAsked));
    const report = await backupInWorker({ dataDir, storageKey, path, passphrase, version, nowMs }, {
      signal,
      progress: (done, total) => progress({ done, total, unit: "bytes" }),
    });
    try {
      await verifying();
    } catch (cancelled) {
      await Deno.remove(path);
      throw cancelled;
    }
    await this.#rotate(folder, keep, report.sizeBytes);
    log("info", "Created a backup", { daily: !isAsked, files: report.files, bytes: report.sizeBytes });
  }

  /**
   * Deletes the oldest daily backups, except those the latest may not replace: backups of an earlier database (the
   * current one is new, for example after the data folder was lost) and backups more than twice as large.
   */
  async #rotate(folder: string, keep: number, latestBytes: number): Promise<void> {
    const { log, storeCreatedAtMs = 0 } = this.#options;
    const daily = await this.#names(DAILY_NAME);
    const held: string[] = [];
    for (const name of daily.slice(0, Math.max(0, daily.length - keep))) {
      const path = join(folder, name);
      const { size } = await Deno.stat(path);
      // File names have seconds.
      const isOfThisStore = timeOf(name) >= Math.floor(storeCreatedAtMs / 1000) * 1000;
      if (isOfThisStore && size <= latestBytes * MOST_SHRUNK) await Deno.remove(path);
      else held.push(name);
    }
    if (held.length > 0) {
      log("warn", "Kept old backups: the data is new or has shrunk to less than half. Delete them by hand", {
        names: held.join(", "),
      });
    }
  }

  /** Lists names in order, which for daily backups is by date. */
  async #names(pattern: RegExp): Promise<string[]> {
    const folder = this.#options.folder!;
    try {
      const entries = await Array.fromAsync(Deno.readDir(folder));
      return entries.map(({ name }) => name).filter((name) => pattern.test(name)).sort();
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return [];
      throw fileError(`Can't list the backups in "${folder}"`, error);
    }
  }
}

function nameOf(nowMs: number, isAsked: boolean): string {
  const time = new Date(nowMs).toISOString().slice(0, 19).replaceAll(":", "");
  return `parlor-${time}Z${isAsked ? "-asked" : ""}.backup`;
}

function noFolder(): AppError {
  return new AppError("not_available", "Backups are off. Set backup_dir to a folder on another disk");
}

function noBackup(name: string): AppError {
  return new AppError("not_found", `Can't find the backup "${name}"`);
}

function timeOf(name: string): number {
  const [, date, hour, minute, second] = DAILY_NAME.exec(name)!;
  return Date.parse(`${date}T${hour}:${minute}:${second}Z`);
}
