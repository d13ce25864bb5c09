/** Backup settings: folder, file names and schedule, and the owner's command that runs after a backup. */
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { type Config, saveConfigKey } from "../config/config.ts";
import type { ConfigKeyName } from "../config/config_keys.ts";
import { randomToken } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import { parseTemporaryName, toFileError } from "../storage/atomic_file.ts";
import { startWatched } from "../process/supervised_process.ts";

/** How often backups are made automatically. */
type BackupSchedule = "daily" | "weekly" | "off";

/** Folder, schedule and number of backups. */
export interface BackupSettings {
  /** Absolute; `null` for no backups. */
  folder: string | null;
  schedule: BackupSchedule;
  /** Number of scheduled backups to keep; 1–1000. */
  keep: number;
}

/** Keys of config.toml. */
const KEYS = { folder: "backup_dir", schedule: "backup_schedule", keep: "backup_keep" } as const satisfies Record<
  keyof BackupSettings,
  ConfigKeyName
>;

/** Reads the backup settings from a configuration. */
export function readBackupSettings(config: Pick<Config, "backupDir" | "backupSchedule" | "backupKeep">) {
  const schedule = config.backupSchedule as BackupSchedule;
  return { folder: config.backupDir, schedule, keep: config.backupKeep } satisfies BackupSettings;
}

/** Lists the settings that a flag or the environment sets, so that they can't be changed here. */
export function listFixedSettings({ sources }: Pick<Config, "sources">): (keyof BackupSettings)[] {
  return (Object.keys(KEYS) as (keyof BackupSettings)[]).filter((name) => {
    const source = sources[KEYS[name]];
    return source === "flag" || source === "environment";
  });
}

/**
 * Saves changed settings to config.toml.
 *
 * @throws {AppError} `conflict` if a flag or the environment sets one of them.
 */
export async function saveBackupSettings(
  config: Config,
  before: BackupSettings,
  after: BackupSettings,
): Promise<void> {
  for (const name of Object.keys(KEYS) as (keyof BackupSettings)[]) {
    if (after[name] !== before[name]) await saveConfigKey(config, KEYS[name], after[name] ?? "");
  }
}

/** Files that may be in a backup folder: file managers and file systems create them. */
const HARMLESS_NAMES = new Set([".DS_Store", "desktop.ini", "Thumbs.db", "lost+found", ".stfolder", ".stignore"]);

/**
 * Checks a folder that a client asks for, and creates it if its parent exists.
 *
 * Parlor lists, serves and deletes the backups in this folder, so a folder with other files is refused: a client can't
 * choose the backups of another program. Links are resolved first.
 *
 * @returns The folder without links.
 * @throws {AppError} `invalid_request` if it isn't absolute, is in the data folder, has other files, or its parent is
 *   missing; `storage_full` and others if it can't be written.
 */
export async function prepareBackupFolder(path: string, dataDir: string): Promise<string> {
  if (path.includes("\0") || !isAbsolute(path)) {
    throw invalid(`"${path.replaceAll("\0", "")}" isn't an absolute path. Enter one such as "/mnt/backup/parlor"`);
  }
  const resolved = resolve(path);
  const parent = await Deno.realPath(dirname(resolved)).catch((cause) => {
    if (cause instanceof Deno.errors.NotFound) {
      throw invalid(`"${dirname(resolved)}" doesn't exist on the server. Is the disk mounted?`);
    }
    throw toFileError(`Can't open the folder "${dirname(resolved)}"`, cause);
  });
  const target = join(parent, basename(resolved));
  const folder = await Deno.realPath(target).catch((cause) => {
    if (cause instanceof Deno.errors.NotFound) return target;
    throw toFileError(`Can't open the folder "${resolved}"`, cause);
  });
  const data = await Deno.realPath(dataDir);
  if (`${folder}/`.startsWith(`${data}/`)) {
    throw invalid(`"${resolved}" is inside the data folder, so both would be lost together`);
  }
  await Deno.mkdir(folder, { mode: 0o700 }).catch((cause) => {
    if (!(cause instanceof Deno.errors.AlreadyExists)) {
      throw toFileError(`Can't create the folder "${resolved}"`, cause);
    }
  });
  const names = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name).catch((cause) => {
    throw toFileError(`Can't list the folder "${resolved}"`, cause);
  });
  const isOwn = (name: string) => BACKUP_NAME.test(parseTemporaryName(name)?.finalName ?? name);
  const other = names.find((name) => !isOwn(name) && !HARMLESS_NAMES.has(name));
  if (other !== undefined) {
    throw invalid(
      `"${resolved}" has other files, for example "${other}". Enter a new folder, such as "${
        join(resolved, "parlor")
      }"`,
    );
  }
  await assertWritable(folder, resolved);
  return folder;
}

async function assertWritable(folder: string, path: string): Promise<void> {
  const probe = join(folder, `.parlor-${randomToken(9)}.tmp`);
  try {
    await Deno.writeFile(probe, new Uint8Array(1), { createNew: true, mode: 0o600 });
  } catch (cause) {
    throw toFileError(`Can't write to the folder "${path}"`, cause);
  } finally {
    await Deno.remove(probe).catch(() => {});
  }
}

/** Reports whether two folders are on the same disk; `undefined` if one is missing or the system doesn't say. */
export async function isSameDisk(one: string, other: string): Promise<boolean | undefined> {
  const [a, b] = await Promise.all([one, other].map((path) => Deno.stat(path).catch(() => undefined)));
  return a === undefined || b === undefined || a.dev === null ? undefined : a.dev === b.dev;
}

function invalid(why: string): AppError {
  return new AppError("invalid_request", `Can't use this backup folder: ${why}`);
}

/** Names of the scheduled backups. */
export const DAILY_NAME = /^parlor-\d{4}-\d\d-\d\dT\d{6}Z\.backup$/;
/** Names of the backups that Parlor makes, scheduled ones and others. */
export const BACKUP_NAME = /^parlor-(\d{4}-\d\d-\d\d)T(\d\d)(\d\d)(\d\d)Z(?:-asked)?\.backup$/;

/** Builds the name of a backup. @param isManual True for a backup made on request: not deleted by the rotation. */
export function getBackupName(nowMs: number, isManual: boolean): string {
  const time = new Date(nowMs).toISOString().slice(0, 19).replaceAll(":", "");
  return `parlor-${time}Z${isManual ? "-asked" : ""}.backup`;
}

/** Returns when a backup was made, in milliseconds since 1970. @param name Matches `BACKUP_NAME`. */
export function parseBackupTime(name: string): number {
  const [, date, hour, minute, second] = BACKUP_NAME.exec(name)!;
  return Date.parse(`${date}T${hour}:${minute}:${second}Z`);
}

/**
 * Reports whether a folder, or the one above it, is a mount point. A folder that doesn't exist yet can be created on a
 * mounted disk. Bind mounts of the same disk don't count. On Windows, the root of a drive counts.
 */
export async function isMounted(folder: string): Promise<boolean> {
  const path = resolve(folder);
  return await isMountPoint(path) || await isMountPoint(dirname(path));
}

/** @throws {AppError} `not_available` if `backup_dir` isn't on a mounted disk. */
export async function assertMounted(folder: string): Promise<void> {
  if (await isMounted(folder)) return;
  throw new AppError(
    "not_available",
    `Can't back up to "${folder}": neither it nor the folder above it is a mount point. Is its disk mounted?`,
  );
}

async function isMountPoint(path: string): Promise<boolean> {
  const [own, above] = await Promise.all([path, dirname(path)].map((at) => Deno.stat(at).catch(() => undefined)));
  if (own === undefined || above === undefined) return false;
  return dirname(path) === path ? Deno.build.os === "windows" : own.dev !== above.dev;
}

/** What to run, and until when. */
interface AfterBackup {
  /** Program and arguments; never empty. */
  command: readonly string[];
  /** Path of the backup, passed in `PARLOR_BACKUP_FILE`. */
  file: string;
  signal: AbortSignal;
  timeoutMs: number;
}

/** Enough to upload a large backup over a slow connection. */
export const AFTER_BACKUP_TIMEOUT_MS = 60 * 60 * 1000;
/** Lines of output in the error message, and the length of each. */
const SHOWN_LINES = 3;
const SHOWN_CHARS = 200;

/**
 * Runs the owner's command after a backup, for example to copy it to another machine, and waits for its end. It
 * inherits the environment without Parlor's own variables.
 *
 * @throws {AppError} `not_available` if it can't be started; `upstream_error` if it fails, with the last lines of its
 *   output; `upstream_timeout` after a timeout; the signal's reason.
 */
export async function runAfterBackup({ command, file, signal, timeoutMs }: AfterBackup): Promise<void> {
  signal.throwIfAborted();
  const [program = "", ...args] = command;
  const running = startWatched(program, { args, env: { PARLOR_BACKUP_FILE: file } });
  let isLate = false;
  const stop = () => void running.stop();
  const timer = setTimeout(() => {
    isLate = true;
    stop();
  }, timeoutMs);
  signal.addEventListener("abort", stop);
  try {
    const { success, code, signal: endedBy } = await running.ended;
    signal.throwIfAborted();
    if (success && !isLate) return;
    const end = isLate
      ? `was stopped after ${Math.round(timeoutMs / 60_000)} minutes`
      : `ended with ${endedBy ?? `code ${code}`}`;
    const output = running.lines.slice(-SHOWN_LINES).map((line) => line.slice(0, SHOWN_CHARS)).join("; ");
    throw new AppError(
      isLate ? "upstream_timeout" : "upstream_error",
      `The backup "${file}" was created, but backup_after failed: "${program}" ${end}${output && `: ${output}`}`,
    );
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}
