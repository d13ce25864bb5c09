/** Backups in the owner's folder, created by the running server: one a day with rotation, and others on request. */
import { createHmac } from "node:crypto";
import { basename, join, resolve } from "node:path";
import { Mutex } from "../async/locks.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import type { JobContext, JobRunner, JobSnapshot } from "../jobs/job_store.ts";
import type { Log } from "../log.ts";
import { LEFTOVER_AGE_MS, pathExists, removeTemporaryFiles, toFileError } from "../storage/atomic_file.ts";
import {
  AFTER_BACKUP_TIMEOUT_MS,
  assertMounted,
  BACKUP_NAME,
  type BackupSettings,
  DAILY_NAME,
  getBackupName,
  parseBackupTime,
  prepareBackupFolder,
  runAfterBackup,
} from "./backup_settings.ts";
import { type BackupReport, type BackupRequest, type BackupWatch, formatContents } from "./backup.ts";
import { formatPaths } from "../integrity/damage.ts";
import type { BackupOrder, BackupResponse } from "./backup_worker.ts";
import { openWorker } from "../process/worker.ts";

/** Dependencies and settings. */
export interface BackupOptions {
  jobs: JobRunner;
  log: Log;
  now(): number;
  dataDir: string;
  storageKey: Uint8Array;
  /** Encrypts the backups; without it, they're encrypted with the storage key and don't contain it. */
  passphrase: string | undefined;
  /** Version of the program. */
  version: string;
  /** Folder, schedule and number at the start. */
  settings: BackupSettings;
  /** Settings that can't be changed while the server runs. */
  fixed: readonly (keyof BackupSettings)[];
  /** Saves changed settings for the next start. */
  save(before: BackupSettings, after: BackupSettings): Promise<void>;
  /** Program and arguments to run after a backup; empty for none. */
  after: readonly string[];
  /** Rejects a folder that isn't on a mounted disk. */
  mustBeMount: boolean;
  /** When the database was created, if known. */
  storeCreatedAtMs?: number;
  /** Remembers what backups have no good copy of, because it was damaged when they were made. */
  integrity(): Promise<BackupMemory>;
}

/** Remembers what backups have no good copy of. */
interface BackupMemory {
  getState(): { lacking: Readonly<Record<string, readonly string[]>> };
  noteBackup(name: string, lacking: readonly string[], kept: readonly string[]): Promise<void>;
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
  /**
   * True for backups created on request. They stay until the owner deletes them and don't count toward the daily ones.
   */
  isAsked?: boolean;
}

const KIND = "backup";
const DAY_MS = 24 * 60 * 60 * 1000;
/** How much older than the last scheduled backup the next one is. */
const INTERVALS_MS = { daily: DAY_MS, weekly: 7 * DAY_MS, off: Infinity };
/** How often to check whether a backup is due, so that a machine that was asleep catches up. */
const CHECK_INTERVAL_MS = 60 * 60 * 1000;
/** If a backup is this many times larger than the latest, it contains data that is missing now. */
const MAX_SHRINK_RATIO = 2;
/** File names that count as backups. None can leave the folder. */
const NAME = /^[^./\\\0][^/\\\0]*\.backup$/;

/** The backups of an open server. */
export class Backups {
  readonly #options: BackupOptions;
  #timer: ReturnType<typeof setInterval> | undefined;
  #looking: Promise<void> = Promise.resolve();
  #settings: BackupSettings;
  readonly #changes = new Mutex();
  /** In the names of this server's unfinished backups, so that the next start knows them among those of others. */
  readonly #temporaryId: string;

  private constructor(options: BackupOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#temporaryId = deriveTemporaryId(options.storageKey);
  }

  /** Opens the service. @throws {AppError} `invalid_request` if the folder is inside the data directory. */
  static open(options: BackupOptions): Backups {
    const { jobs, dataDir, settings: { folder } } = options;
    if (folder !== null && `${resolve(folder)}/`.startsWith(`${resolve(dataDir)}/`)) {
      throw new AppError(
        "invalid_request",
        "Invalid backup_dir: it is inside the data folder, so both would be lost together",
      );
    }
    const backups = new Backups(options);
    jobs.register(KIND, { parallel: 1, resumable: false, run: (context) => backups.#run(context) });
    backups.#looking = backups.#removeUnfinished();
    backups.look();
    backups.#timer = setInterval(() => backups.look(), CHECK_INTERVAL_MS);
    return backups;
  }

  /** Returns the settings, and which of them can't be changed. */
  getSettings(): BackupSettings & { fixed: readonly (keyof BackupSettings)[] } {
    return { ...this.#settings, fixed: this.#options.fixed };
  }

  /**
   * Changes folder, schedule or number, from now on and after a restart. A new folder is checked and created. Backups in
   * the old folder stay there.
   *
   * @throws {AppError} `conflict` if a flag or the environment sets one of them; `invalid_request` and errors of the
   *   disk if the folder can't be used.
   */
  change(changes: Partial<BackupSettings>): Promise<BackupSettings> {
    return this.#changes.run(async () => {
      const before = this.#settings;
      const after = { ...before, ...changes };
      const { dataDir, save, log } = this.#options;
      const names = (Object.keys(after) as (keyof BackupSettings)[]).filter((name) => after[name] !== before[name]);
      const fixed = names.find((name) => this.#options.fixed.includes(name));
      if (fixed !== undefined) {
        throw new AppError("conflict", `Can't change the ${fixed} of backups: a flag or the environment sets it`);
      }
      if (after.folder !== null && after.folder !== before.folder) {
        after.folder = await prepareBackupFolder(after.folder, dataDir);
      }
      await save(before, after);
      this.#settings = after;
      log("info", "Changed the backup settings", { ...after });
      this.look();
      return after;
    });
  }

  /** Starts a backup if one is due. */
  look(): void {
    this.#looking = this.#looking.then(() => this.#startWhenDue()).catch((error) =>
      this.#options.log("error", "Can't start the daily backup", { error: String(error) })
    );
  }

  /** Starts a backup now, or returns the one in progress. @throws {AppError} `not_available` without a folder. */
  async start(): Promise<JobSnapshot> {
    return await this.#start({ isAsked: true });
  }

  /** Lists all backups, newest first. @throws {AppError} if the folder can't be read. */
  async list(): Promise<BackupFile[]> {
    const { folder } = this.#settings;
    if (folder === null) return [];
    const files = (await this.#listNames(NAME)).map(async (name): Promise<BackupFile[]> => {
      const info = await Deno.stat(join(folder, name)).catch(() => undefined); // Removed in the meantime.
      if (!info?.isFile) return [];
      return [{ name, sizeBytes: info.size, madeAt: (info.mtime ?? new Date(0)).toISOString() }];
    });
    return (await Promise.all(files)).flat().sort((a, b) => b.madeAt.localeCompare(a.madeAt));
  }

  /** Lists the paths of all backups, newest first. @throws {AppError} if the folder can't be read. */
  async listPaths(): Promise<string[]> {
    const { folder } = this.#settings;
    return folder === null ? [] : (await this.list()).map(({ name }) => join(folder, name));
  }

  /** Opens a backup for download; the caller closes it. @throws {AppError} `not_found` */
  async openFile(name: string): Promise<{ file: Deno.FsFile; sizeBytes: number; version: string }> {
    const { folder } = this.#settings;
    if (folder === null || !NAME.test(name)) throw noBackup(name);
    let file: Deno.FsFile;
    try {
      file = await Deno.open(join(folder, name));
    } catch (cause) {
      if (cause instanceof Deno.errors.NotFound) throw noBackup(name);
      throw toFileError(`Can't read the backup "${name}"`, cause);
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
    const { log } = this.#options;
    const { folder } = this.#settings;
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
      throw toFileError(`Can't remove the backup "${name}"`, cause);
    }
    log("info", "Deleted a backup", { name });
  }

  /** Waits for the current check. The job ends with the other jobs. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  /** Removes the unfinished backups of a killed server, and those of other programs after an hour. */
  async #removeUnfinished(): Promise<void> {
    const { folder } = this.#settings;
    const { log } = this.#options;
    if (folder === null) return;
    try {
      const names = await removeTemporaryFiles(
        folder,
        ({ finalName, id, ageMs }) =>
          BACKUP_NAME.test(finalName) && (id === this.#temporaryId || ageMs > LEFTOVER_AGE_MS),
      );
      if (names.length > 0) log("info", "Removed unfinished backups", { names: names.join(", ") });
    } catch (error) {
      log("warn", `Can't remove unfinished backups in "${folder}"`, { error: getErrorMessage(error) });
    }
  }

  async #startWhenDue(): Promise<void> {
    const { folder, schedule } = this.#settings;
    if (folder === null || schedule === "off") return;
    // The job reports a folder that can't be read, where the owner sees it.
    const last = (await this.#listNames(DAILY_NAME).catch(() => [])).at(-1);
    if (last !== undefined && this.#options.now() - parseBackupTime(last) < INTERVALS_MS[schedule]) return;
    await this.#start({});
  }

  async #start(params: BackupParams): Promise<JobSnapshot> {
    const { jobs } = this.#options;
    const { folder, schedule } = this.#settings;
    if (folder === null) throw noFolder();
    const title = params.isAsked ? "Backup" : schedule === "weekly" ? "Weekly backup" : "Daily backup";
    return await jobs.start(KIND, { title, params, key: folder });
  }

  async #run({ params, signal, progress, detail, startVerifying: verifying }: JobContext): Promise<void> {
    const { isAsked: isManual = false } = params as BackupParams;
    const { log, now, dataDir, storageKey, passphrase, version, after, mustBeMount } = this.#options;
    const { folder, keep } = this.#settings;
    if (folder === null) throw noFolder();
    if (mustBeMount) await assertMounted(folder);
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 }).catch((cause) => {
      throw toFileError(`Can't create the folder "${folder}"`, cause);
    });
    const nowMs = now();
    const path = await findFreePath(folder, nowMs, isManual);
    const temporaryId = this.#temporaryId;
    const report = await runBackupWorker({ dataDir, storageKey, path, passphrase, version, nowMs, temporaryId }, {
      signal,
      progress: (done, total) => progress({ done, total, unit: "bytes" }),
    });
    try {
      // If a command follows, the job can still be cancelled: the command is stopped, and the backup stays.
      if (after.length === 0) await verifying();
      signal.throwIfAborted();
    } catch (cancelled) {
      await Deno.remove(path);
      throw cancelled;
    }
    const { files, sizeBytes: bytes, contents, unreadable } = report;
    const lacking = unreadable.map(({ path }) => path);
    const memory = await this.#options.integrity();
    await memory.noteBackup(basename(path), lacking, await this.#listNames(NAME, folder));
    await this.#rotate(
      folder,
      keep,
      report.sizeBytes,
      this.#listLastGood(await this.#listNames(NAME, folder), memory, lacking),
    );
    const summary = formatContents(contents);
    log("info", "Created a backup", { daily: !isManual, files, bytes, contents: summary });
    // Flat, because lists of jobs leave out lists and objects.
    const about = {
      contents: summary,
      ...contents,
      ...(unreadable.length > 0 && { unreadable: unreadable.length, unreadable_paths: formatPaths(unreadable) }),
    };
    if (unreadable.length > 0) {
      const paths = formatPaths(unreadable);
      log("error", "The backup has no good copy of what can't be read", { count: unreadable.length, paths });
    }
    detail(about);
    if (after.length === 0) return;
    const startedAtMs = performance.now();
    const fields = () => ({ program: after[0], seconds: Math.round((performance.now() - startedAtMs) / 1000) });
    try {
      await runAfterBackup({ command: after, file: path, signal, timeoutMs: AFTER_BACKUP_TIMEOUT_MS });
    } catch (error) {
      // The line of the failed job leaves out what other programs print. This one is the owner's.
      if (!signal.aborted) log("error", "backup_after failed", { ...fields(), error: getErrorMessage(error) });
      throw error;
    }
    log("info", "Ran backup_after", fields());
    detail({ ...about, after: after[0] });
  }

  /**
   * Deletes the oldest daily backups, except those the latest may not replace: backups of an earlier database (the
   * current one is new, for example after the data folder was lost), backups more than twice as large, and the last one
   * with a good copy of something that can't be read now.
   */
  async #rotate(folder: string, keep: number, latestBytes: number, needed: ReadonlySet<string>): Promise<void> {
    const { log, storeCreatedAtMs = 0 } = this.#options;
    const daily = await this.#listNames(DAILY_NAME, folder);
    const held: string[] = [];
    if (needed.size > 0) {
      log("warn", "Kept the last backups with a good copy of what can't be read", { names: [...needed].join(", ") });
    }
    for (const name of daily.slice(0, Math.max(0, daily.length - keep))) {
      if (needed.has(name)) continue;
      const path = join(folder, name);
      const { size } = await Deno.stat(path);
      // File names only have seconds.
      const isOfThisStore = parseBackupTime(name) >= Math.floor(storeCreatedAtMs / 1000) * 1000;
      if (isOfThisStore && size <= latestBytes * MAX_SHRINK_RATIO) await Deno.remove(path);
      else held.push(name);
    }
    if (held.length > 0) {
      log(
        "warn",
        "Old backups weren't deleted: the data is new or less than half as large as before. Delete them by hand",
        {
          names: held.join(", "),
        },
      );
    }
  }

  /** Returns the newest backup with a good copy of each of these items. */
  #listLastGood(names: readonly string[], memory: BackupMemory, paths: readonly string[]): Set<string> {
    const { lacking } = memory.getState();
    const found = paths.map((path) => names.findLast((name) => !lacking[name]?.includes(path)));
    return new Set(found.filter((name) => name !== undefined));
  }

  /** Lists names in order, which for daily backups is by date. */
  async #listNames(pattern: RegExp, folder = this.#settings.folder!): Promise<string[]> {
    try {
      const entries = await Array.fromAsync(Deno.readDir(folder));
      return entries.map(({ name }) => name).filter((name) => pattern.test(name)).sort();
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return [];
      throw toFileError(`Can't list the backups in "${folder}"`, error);
    }
  }
}

/** Returns the path for a backup. If there is one with the current second, uses the next second. */
async function findFreePath(folder: string, nowMs: number, isManual: boolean): Promise<string> {
  for (let ms = nowMs;; ms += 1000) {
    const path = join(folder, getBackupName(ms, isManual));
    if (!await pathExists(path)) return path;
  }
}

function noFolder(): AppError {
  return new AppError(
    "not_available",
    "Backups are off. Choose a folder on another disk in Settings, Data, or set backup_dir",
  );
}

function noBackup(name: string): AppError {
  return new AppError("not_found", `Backup "${name}" not found`);
}

/** Derives the UUID from the storage key. */
function deriveTemporaryId(storageKey: Uint8Array): string {
  const hex = createHmac("sha256", storageKey).update("unfinished backups").digest("hex");
  return [[0, 8], [8, 12], [12, 16], [16, 20], [20, 32]].map(([from, to]) => hex.slice(from, to)).join("-");
}

/** How long a canceled Worker may take to remove its files, in milliseconds. */
const STOPPING_MS = 10_000;

/** Runs `makeBackup` in a Worker. @throws Its errors; the signal's reason once nothing remains. */
async function runBackupWorker(
  request: BackupRequest,
  { signal, progress }: Required<BackupWatch>,
): Promise<BackupReport> {
  signal.throwIfAborted();
  const worker = openWorker(new URL("./backup_worker.ts", import.meta.url));
  const { promise, resolve, reject } = Promise.withResolvers<Exclude<BackupResponse, { progress: unknown }>>();
  worker.onmessage = ({ data }: MessageEvent<BackupResponse>) => {
    if ("progress" in data) progress(data.progress.doneBytes, data.progress.totalBytes);
    else resolve(data);
  };
  worker.onerror = (event) => {
    event.preventDefault(); // An unhandled error event would end the process.
    reject(new AppError("internal", `Can't create the backup: ${event.message}`));
  };
  let stopping: ReturnType<typeof setTimeout> | undefined;
  const send = (order: BackupOrder) => worker.postMessage(order);
  const stop = () => {
    send("stop");
    // Copying a large database can't be interrupted. Later backups ignore its temporary file.
    stopping = setTimeout(() => reject(signal.reason), STOPPING_MS);
  };
  signal.addEventListener("abort", stop);
  try {
    send(request);
    const answer = await promise;
    if ("report" in answer) return answer.report;
    signal.throwIfAborted();
    throw new AppError(answer.failure.code, answer.failure.message);
  } finally {
    clearTimeout(stopping);
    signal.removeEventListener("abort", stop);
    worker.terminate();
  }
}
