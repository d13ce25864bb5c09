/** The data directory: its modes and folders, the lock for one process, and detection of a lost key or database. */
import { dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { AppError, getErrorMessage } from "../errors.ts";
import { isLocked } from "./database/sqlite.ts";
import { pathExists, removeTemporaryFiles, toFileError, writeFileAtomic } from "./atomic_file.ts";

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

/** Name of the lock file. */
export const LOCK_FILE_NAME = "lock";

/** File names that only Parlor uses. A folder with one of them belongs to Parlor, so its mode can be changed. */
const OWN_FILE_NAMES = ["app.db", "storage-key", "session-key", "credentials.json", "tokens.json", "config.toml"];

/** Owner and mode of a data directory that belongs to another user. */
interface SharedFolder {
  owner: number;
  /** `"0770"` */
  mode: string;
}

/** An open data directory, locked by this process. */
export interface DataDir {
  /** Absolute path without symbolic links. */
  readonly path: string;
  /** Set if other users can enter the folder and this one can't change that. They can't read the files. */
  readonly sharedFolder: SharedFolder | undefined;
  /** Returns a path inside: `file("voices", "a.wav")`. */
  file(...names: string[]): string;
  /**
   * Creates a folder with mode 0700, or corrects the mode of an existing one.
   *
   * @param name One path segment.
   * @returns Its path.
   * @throws {AppError} `internal` if something else has the name, such as a symbolic link, or the folder can't be
   *   created; `forbidden` if this user may not create or change it.
   */
  ensureFolder(name: string): Promise<string>;
  /** Releases the lock. */
  close(): void;
}

/**
 * Opens a data directory and takes its lock. Creates the directory with mode 0700 if it's missing.
 *
 * If other users can enter the directory, its mode is corrected only if it's empty or already Parlor's. A directory
 * with other files is rejected, so that a mistyped path doesn't change the mode of a home directory or /tmp.
 *
 * A folder of another user is accepted as it is if this one can write to it, as in a container with any uid, and if
 * files in it can be kept private.
 *
 * @throws {AppError} `conflict` if another process holds it; `forbidden` if this user may not create, enter or write
 *   it; `internal` if it can't be used for another reason.
 */
export async function openDataDir(path: string): Promise<DataDir> {
  let root: string;
  try {
    await Deno.mkdir(path, { recursive: true, mode: FOLDER_MODE });
    root = await Deno.realPath(path);
  } catch (cause) {
    throw createFailure(path, cause);
  }
  const sharedFolder = await settleRootMode(root);
  const lock = await lockFolder(root);
  return {
    path: root,
    sharedFolder,
    file: (...names) => join(root, ...names),
    async ensureFolder(name) {
      if (name === "" || name === "." || name === ".." || /[/\\\0]/.test(name)) {
        throw new AppError("internal", `Can't create the folder "${name}" in "${root}": not a single name`);
      }
      const folder = join(root, name);
      await makeFolder(folder);
      return folder;
    },
    close: () => lock.release(),
  };
}

async function lockFolder(root: string): Promise<ProcessLock> {
  const lockPath = join(root, LOCK_FILE_NAME);
  try {
    const file = await Deno.open(lockPath, { write: true, createNew: true, mode: FILE_MODE });
    file.close();
  } catch (cause) {
    if (!(cause instanceof Deno.errors.AlreadyExists)) throw createWriteFailure(root, cause);
    // Otherwise, a read-only mount would only be detected at the first write, long after the start.
    const now = new Date();
    await Deno.utime(lockPath, now, now).catch((reason) => {
      throw createWriteFailure(root, reason, lockPath);
    });
  }
  await refuseOpenFiles(root, lockPath);
  return takeProcessLock(lockPath);
}

/** Refuses a file system that gives all files one mode, such as exFAT: there, other users could read the storage key. */
async function refuseOpenFiles(root: string, path: string): Promise<void> {
  if (Deno.build.os === "windows") return;
  const isOpen = async () => ((await Deno.stat(path)).mode! & 0o077) !== 0;
  if (!await isOpen()) return;
  await Deno.chmod(path, FILE_MODE).catch(() => {});
  if (!await isOpen()) return;
  throw createOpenError(
    root,
    `other users can read every file in it (mode ${formatMode((await Deno.stat(path)).mode!)}), and that can't be ` +
      "changed. Use a file system with Unix permissions, or mount it so that only this user can read it",
  );
}

/** @returns What others can do, if that can't be changed. */
async function settleRootMode(root: string): Promise<SharedFolder | undefined> {
  if (Deno.build.os === "windows") return; // Windows uses access control lists of the user profile instead of modes.
  try {
    const { mode, uid } = await Deno.stat(root);
    if (mode === null || (mode & 0o7077) === 0) return;
    const entries = (await Array.fromAsync(Deno.readDir(root))).map((entry) => entry.name);
    // The file system itself creates lost+found. A start that failed early may have left its lock.
    const isFresh = entries.every((name) => name === "lost+found" || name === LOCK_FILE_NAME);
    const isOurs = entries.some((name) => OWN_FILE_NAMES.includes(name));
    const isShared = (mode & 0o1000) !== 0; // The sticky bit marks a shared folder such as /tmp.
    if (isShared || !(isFresh || isOurs)) {
      throw createOpenError(
        root,
        `other users can access it (mode ${formatMode(mode)}) and it contains files that aren't Parlor's. ` +
          "Choose an empty folder, or set its mode to 0700",
      );
    }
    const isChanged = await Deno.chmod(root, FOLDER_MODE).then(() => true, (cause) => {
      // A folder of another user. Whether it can be written shows at the lock.
      if (cause instanceof Deno.errors.PermissionDenied && uid !== null && uid !== Deno.uid()) return false;
      throw cause;
    });
    return isChanged ? undefined : { owner: uid!, mode: formatMode(mode) };
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw createFailure(root, cause);
  }
}

function formatMode(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, "0");
}

async function makeFolder(folder: string): Promise<void> {
  try {
    try {
      await Deno.mkdir(folder, { mode: FOLDER_MODE });
    } catch (cause) {
      if (!(cause instanceof Deno.errors.AlreadyExists)) throw cause;
    }
    const info = await Deno.lstat(folder);
    if (!info.isDirectory) throw new Error("something that isn't a folder has this name");
    if (Deno.build.os !== "windows" && info.mode !== null && (info.mode & 0o777) !== FOLDER_MODE) {
      await Deno.chmod(folder, FOLDER_MODE);
    }
  } catch (cause) {
    if (cause instanceof Deno.errors.PermissionDenied) {
      throw createFailure(dirname(folder), cause, { at: folder });
    }
    throw new AppError("internal", `Can't create the folder "${folder}": ${getErrorMessage(cause)}`, { cause });
  }
}

/** @param at The file in it that can't be written, if it's one. */
function createWriteFailure(root: string, cause: unknown, at = root): AppError {
  return createFailure(root, cause, { at, found: `it isn't writable (${getErrorMessage(cause)})` });
}

/** @param options.found What to say unless this user lacks a permission. */
function createFailure(
  root: string,
  cause: unknown,
  { at = root, found = getErrorMessage(cause) } = {},
): AppError {
  const denial = explainDenial(at, cause, root);
  if (denial === undefined) return createOpenError(root, found, cause);
  return new AppError("forbidden", `Can't write to the data directory "${root}" ${denial}`, { cause });
}

/**
 * Explains why this user can't use a folder or file: names the user, owner and mode of what refused it, and a remedy.
 *
 * @param root The data directory.
 * @returns `as uid 1000, because "/data" belongs to uid 10001 and has mode 0700. …`; `undefined` if the cause isn't a lack
 *   of permission.
 */
export function explainDenial(at: string, cause: unknown, root: string): string | undefined {
  const uid = Deno.build.os === "windows" ? null : Deno.uid();
  if (!(cause instanceof Deno.errors.PermissionDenied) || uid === null) return undefined;
  const directory = resolve(root);
  const { path, info } = findExisting(resolve(at));
  const isOwn = info.uid === uid;
  const mode = info.mode ?? 0;
  const needed = isOwn ? 0o700 : 0o007;
  // Then it's something else, such as SELinux.
  if (info.isDirectory && (mode & needed) === needed) return `as uid ${uid}: ${getErrorMessage(cause)}`;
  const owner = isOwn ? "" : `belongs to uid ${info.uid} and `;
  const reason = `as uid ${uid}, because "${path}" ${owner}has mode ${formatMode(mode)}`;
  if (path.length < directory.length) {
    return `${reason}. Create "${directory}" for uid ${uid}, or choose another with --data-dir`;
  }
  if (isOwn) return `${reason}. Set its mode to ${info.isDirectory ? "0700" : "0600"}`;
  const other = info.uid === 0 ? "" : `, or run Parlor as uid ${info.uid}`;
  return `${reason}. Give "${directory}" and its files to uid ${uid} (chown -R ${uid})${other}`;
}

/** Returns the path, or the nearest folder above that exists and can be looked at. */
function findExisting(path: string): { path: string; info: Deno.FileInfo } {
  try {
    return { path, info: Deno.statSync(path) };
  } catch (error) {
    if (path === dirname(path)) throw error;
    return findExisting(dirname(path));
  }
}

function createOpenError(path: string, found: string, cause?: unknown): AppError {
  return new AppError("internal", `Can't open the data directory "${path}": ${found}`, { cause });
}

/** Returns whether a process uses a data directory. @throws {AppError} `internal` if its lock can't be opened. */
export async function isDataDirInUse(root: string): Promise<boolean> {
  const path = join(root, LOCK_FILE_NAME);
  if (!await pathExists(path)) return false;
  try {
    takeProcessLock(path).release();
    return false;
  } catch (error) {
    if (error instanceof AppError && error.code === "conflict") return true;
    throw error;
  }
}

/** A held lock. */
interface ProcessLock {
  release(): void;
}

/**
 * Takes a lock file for this process.
 *
 * The operating system releases the lock if the process is killed. It uses SQLite, whose exclusive lock works the same
 * on every platform and never waits. (Deno 2.6.10 has no `FsFile.tryLock`, and `lock` waits forever and can't be
 * canceled.)
 *
 * The file stays empty; an in-memory journal avoids a second file. Nothing else in this process may open and close the
 * file: POSIX drops all locks of a process on the first close. The lock lasts as long as the returned object.
 *
 * @param path Lock file, created if missing; its folder must exist.
 * @throws {AppError} `conflict` if this or another process holds it; `internal` if the file can't be opened.
 */
function takeProcessLock(path: string): ProcessLock {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path);
    database.exec("PRAGMA busy_timeout = 0; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    const held = database;
    return { release: () => held.close() };
  } catch (cause) {
    database?.close();
    if (isLocked(cause)) {
      throw new AppError(
        "conflict",
        `Can't lock "${path}": another Parlor process is using this data directory. Stop it first, or choose another directory with --data-dir`,
        { cause },
      );
    }
    throw new AppError("internal", `Can't lock "${path}": ${describeLockFailure(cause)}`, { cause });
  }
}

function describeLockFailure(cause: unknown): string {
  const text = cause instanceof Error ? cause.message : String(cause);
  return /readonly|unable to open/.test(text) ? `the folder isn't writable (${text})` : text;
}

/** Commands such as `parlor token create` write to the data folder itself while a server starts. */
const COMMAND_MS = 60_000;

/**
 * Removes the temporary files that a killed server left in the data folder and some of its folders. Call it with the
 * lock held, before anything is written.
 *
 * @param folders Paths of folders that only the server writes to.
 * @returns The names of the removed files.
 * @throws {AppError} `internal`
 */
export async function removeUnfinishedWrites(dataDir: DataDir, folders: readonly string[]): Promise<string[]> {
  try {
    const names = await removeTemporaryFiles(dataDir.path, ({ ageMs }) => ageMs > COMMAND_MS);
    for (const folder of folders) names.push(...await removeTemporaryFiles(folder, () => true));
    return names;
  } catch (cause) {
    throw toFileError(`Can't remove temporary files in "${dataDir.path}"`, cause);
  }
}

/** Files and folders with sealed values, which only exist once there is a key. */
const SEALED_NAMES = ["app.db", "app.db-wal", "credentials.json", "tokens.json", "attachments", "replies"];

/**
 * Reports whether the data directory may have sealed data. Call it before the database is opened, which creates it.
 *
 * @throws {AppError} `internal` if that can't be determined: an unreadable folder isn't an empty one.
 */
export async function hasSealedData(dataDir: DataDir): Promise<boolean> {
  for (const name of SEALED_NAMES) {
    const path = dataDir.file(name);
    try {
      if (!(await Deno.stat(path)).isDirectory) return true;
      for await (const _ of Deno.readDir(path)) return true;
    } catch (cause) {
      if (cause instanceof Deno.errors.NotFound) continue;
      throw toFileError(`Can't look for encrypted data in "${path}"`, cause);
    }
  }
  return false;
}

/** Files and folders that are only filled once there is a database. */
const NAMES_WITH_DATABASE = ["credentials.json", "tokens.json", "attachments", "documents", "replies", "trash"];

/**
 * Name of the file with the ID of the folder's database. A database that is lost later can't be mistaken for a new
 * installation, whatever else the folder contains.
 */
export const DATABASE_ID_FILE_NAME = "database-id";

/** Folder of the stored files of imports. */
export const IMPORT_SOURCES_FOLDER = "import-sources";

/** Folder with what the next Parlor must know of the model server. */
export const MODEL_SERVER_FOLDER = "model-server";
export const MODEL_SERVER_FILE = "server.json";

/** What to do about a lost or foreign database, for error messages. */
const DATABASE_CURE = 'Restore app.db, or restore a backup with "parlor restore FILE --replace". ' +
  "To start over, move the data folder away";

/** Reads the ID of the folder's database; `undefined` before the first start. */
export async function readDatabaseId(dataDir: DataDir): Promise<string | undefined> {
  const path = dataDir.file(DATABASE_ID_FILE_NAME);
  try {
    return (await Deno.readTextFile(path)).trim() || undefined;
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return undefined;
    throw toFileError(`Can't read the database's ID from "${path}"`, cause);
  }
}

/** Writes the ID of the folder's database. Call it after the database has it. */
export function writeDatabaseId(dataDir: DataDir, id: string): Promise<void> {
  return writeFileAtomic(dataDir.file(DATABASE_ID_FILE_NAME), `${id}\n`);
}

/**
 * Creates the error for a database that isn't the folder's.
 *
 * @param found As it completes "The database … ": `"is empty"`.
 */
export function createDatabaseError(dataDir: DataDir, found: string): AppError {
  return new AppError(
    "internal",
    `The database "${dataDir.file("app.db")}" ${found}, so Parlor won't start with it. ${DATABASE_CURE}`,
  );
}

/**
 * Offset of `user_version` in the header of a database file. @see
 * https://www.sqlite.org/fileformat.html#the_database_header
 */
const USER_VERSION_OFFSET = 60;

/**
 * Throws if data shows that there was a database, but it's missing or empty. Call it before the database is opened,
 * which creates it.
 *
 * @throws {AppError} `internal`, with the data found and how to fix it.
 */
export async function refuseLostDatabase(dataDir: DataDir): Promise<void> {
  const path = dataDir.file("app.db");
  const found = await getDatabaseState(path);
  if (found === "used") return;
  const others: string[] = [];
  for (const name of NAMES_WITH_DATABASE) {
    if (await isFilled(dataDir.file(name))) others.push(name);
  }
  // Copies from before upgrades show that the database was in use.
  for await (const { name } of Deno.readDir(dataDir.path)) if (name.startsWith("app.db.schema-")) others.push(name);
  if (await readDatabaseId(dataDir) !== undefined) others.push(DATABASE_ID_FILE_NAME);
  if (others.length === 0) return;
  throw new AppError(
    "internal",
    `The database "${path}" is ${found}, but the data folder contains other data (${
      others.join(", ")
    }), so Parlor won't ` +
      `start with an empty one. ${DATABASE_CURE}`,
  );
}

async function getDatabaseState(path: string): Promise<"missing" | "empty" | "used"> {
  try {
    // The latest writes may be only in the log.
    if (await isFilled(`${path}-wal`)) return "used";
    using file = await Deno.open(path);
    const header = new Uint8Array(USER_VERSION_OFFSET + 4);
    const count = await file.read(header) ?? 0;
    if (count === 0) return "empty";
    const isVersioned = count < header.length || new DataView(header.buffer).getUint32(USER_VERSION_OFFSET) > 0;
    return isVersioned ? "used" : "empty";
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return "missing";
    throw toFileError(`Can't open the database "${path}"`, cause);
  }
}

/** Reports whether a file has content, or a folder has entries. */
async function isFilled(path: string): Promise<boolean> {
  try {
    const { isDirectory, size } = await Deno.stat(path);
    if (!isDirectory) return size > 0;
    for await (const { name } of Deno.readDir(path)) if (!name.startsWith(".")) return true;
    return false;
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return false;
    throw toFileError(`Can't look for data in "${path}"`, cause);
  }
}
