/** Backups in a folder of the owner's, made by the running server: one a day, the oldest of those removed, and others when asked. */
import { join, resolve } from "node:path";
import { AppError } from "../errors.ts";
import type { JobContext, JobRunner, JobSnapshot } from "../jobs/job.ts";
import type { Log } from "../log.ts";
import { fileError } from "../storage/atomic_file.ts";
import { backupInWorker } from "./backup_worker_client.ts";

/** What backups work with. */
export interface BackupOptions {
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
  /** How many daily ones are kept. */
  keep: number;
  /** When the database was created, if known. */
  storeCreatedAtMs?: number;
}

/** A backup that lies in the folder. */
export interface BackupFile {
  name: string;
  sizeBytes: number;
  /** When it was made; ISO 8601, UTC. */
  madeAt: string;
}

/** What the job holds; JSON. */
interface BackupParams {
  /** Asked for; those stay until somebody removes them, so that none pushes out a daily one. */
  isAsked?: boolean;
}

const KIND = "backup";
const DAY_MS = 24 * 60 * 60 * 1000;
/** How often it is looked whether a day is over; a machine that slept through the hour makes it up. */
const LOOK_MS = 60 * 60 * 1000;
/** A backup this many times as large as the latest holds something that is missing now. */
const MOST_SHRUNK = 2;
const DAILY_NAME = /^parlor-(\d{4}-\d\d-\d\d)T(\d\d)(\d\d)(\d\d)Z\.backup$/;
/** Whatever is called so counts as a backup of the owner's; no way leads out of the folder. */
const NAME = /^[^./\\\0][^/\\\0]*\.backup$/;

/** The backups of an open server. */
export class Backups {
  readonly #options: BackupOptions;
  #timer: ReturnType<typeof setInterval> | undefined;
  #looking: Promise<void> = Promise.resolve();

  private constructor(options: BackupOptions) {
    this.#options = options;
  }

  /** @throws {AppError} `invalid_request` for a folder in the data directory itself. */
  static open(options: BackupOptions): Backups {
    const { jobs, folder, dataDir } = options;
    if (folder !== null && `${resolve(folder)}/`.startsWith(`${resolve(dataDir)}/`)) {
      throw new AppError(
        "invalid_request",
        "Bad value for backup_dir: it lies in the data folder, and whatever takes that takes the backups with it",
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

  /** Starts a backup when the last one is a day old. */
  look(): void {
    this.#looking = this.#startWhenDue().catch((error) =>
      this.#options.log("error", "Cannot start the daily backup", { error: String(error) })
    );
  }

  /** Starts a backup now; while one is made already, gives that. @throws {AppError} `not_available` without a folder */
  async start(): Promise<JobSnapshot> {
    return await this.#start({ isAsked: true });
  }

  /** Gives all there are, the newest first. @throws {AppError} when the folder cannot be read */
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

  /** Opens one to be carried elsewhere; whoever calls closes it. @throws {AppError} `not_found` */
  async openFile(name: string): Promise<{ file: Deno.FsFile; sizeBytes: number; version: string }> {
    const { folder } = this.#options;
    if (folder === null || !NAME.test(name)) throw noBackup(name);
    let file: Deno.FsFile;
    try {
      file = await Deno.open(join(folder, name));
    } catch (cause) {
      if (cause instanceof Deno.errors.NotFound) throw noBackup(name);
      throw fileError(`Cannot read the backup "${name}"`, cause);
    }
    const { isFile, size, mtime } = await file.stat();
    if (isFile) {
      return { file, sizeBytes: size, version: `${(mtime?.getTime() ?? 0).toString(36)}-${size.toString(36)}` };
    }
    file.close();
    throw noBackup(name);
  }

  /** Removes one for good. @throws {AppError} `not_found` for whatever is no backup in the folder */
  async remove(name: string): Promise<void> {
    const { folder, log } = this.#options;
    if (folder === null || !NAME.test(name)) throw noBackup(name);
    const path = join(folder, name);
    try {
      // A link goes alone; what it leads to may lie outside.
      const { isDirectory } = await Deno.lstat(path);
      if (isDirectory) throw noBackup(name);
      await Deno.remove(path);
    } catch (cause) {
      if (cause instanceof Deno.errors.NotFound) throw noBackup(name);
      if (cause instanceof AppError) throw cause;
      throw fileError(`Cannot remove the backup "${name}"`, cause);
    }
    log("info", "Removed a backup", { name });
  }

  /** Waits for the look under way; the job itself ends with the other jobs. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  async #startWhenDue(): Promise<void> {
    // A folder that cannot be read is told by the job that fails on it, where the owner sees it.
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
      throw fileError(`Cannot make the folder "${folder}"`, cause);
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
    log("info", "Made a backup", { daily: !isAsked, files: report.files, bytes: report.sizeBytes });
  }

  /**
   * Removes the oldest daily backups, but none that the latest may not be able to replace: one of an earlier database
   * (this one is fresh, as where the data folder was lost), or one more than twice as large.
   */
  async #rotate(folder: string, keep: number, latestBytes: number): Promise<void> {
    const { log, storeCreatedAtMs = 0 } = this.#options;
    const daily = await this.#names(DAILY_NAME);
    const held: string[] = [];
    for (const name of daily.slice(0, Math.max(0, daily.length - keep))) {
      const path = join(folder, name);
      const { size } = await Deno.stat(path);
      // Names tell seconds.
      const isOfThisStore = timeOf(name) >= Math.floor(storeCreatedAtMs / 1000) * 1000;
      if (isOfThisStore && size <= latestBytes * MOST_SHRUNK) await Deno.remove(path);
      else held.push(name);
    }
    if (held.length > 0) {
      log("warn", "Kept old backups: the data is new or has shrunk to less than half since. Delete them by hand", {
        names: held.join(", "),
      });
    }
  }

  /** Names in the folder, in their order, which for daily ones is that of their days. */
  async #names(pattern: RegExp): Promise<string[]> {
    const folder = this.#options.folder!;
    try {
      const entries = await Array.fromAsync(Deno.readDir(folder));
      return entries.map(({ name }) => name).filter((name) => pattern.test(name)).sort();
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return [];
      throw fileError(`Cannot list the backups in "${folder}"`, error);
    }
  }
}

function nameOf(nowMs: number, isAsked: boolean): string {
  const time = new Date(nowMs).toISOString().slice(0, 19).replaceAll(":", "");
  return `parlor-${time}Z${isAsked ? "-asked" : ""}.backup`;
}

function noFolder(): AppError {
  return new AppError("not_available", "Cannot back up: backup_dir is not set. Set it to a folder on another disk");
}

function noBackup(name: string): AppError {
  return new AppError("not_found", `Cannot find the backup "${name}"`);
}

function timeOf(name: string): number {
  const [, date, hour, minute, second] = DAILY_NAME.exec(name)!;
  return Date.parse(`${date}T${hour}:${minute}:${second}Z`);
}
