/** Restores a backup into a data directory: completely or not at all, and never over data unless requested. */
import { dirname, join } from "node:path";
import { findStorageKey, STORAGE_KEY_FILE_NAME, verifyStorageKey } from "../crypto/storage_key.ts";
import { createSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import { readFileIfExists, toFileError } from "../storage/atomic_file.ts";
import { openDataDir } from "../storage/data_dir.ts";
import { openIncoming } from "../storage/file_swap.ts";
import { MIGRATIONS } from "../storage/database/migrations.ts";
import { openReader } from "../storage/database/database.ts";
import { checkDatabase } from "../storage/database/sqlite.ts";
import { type ArchiveEntry, type BackupHead, type OpenBackup, openBackup } from "./backup_file.ts";
import { type BackupContents, countFiles, countRows } from "./backup.ts";
import { DATABASE_NAME, isBackedUp, KEY_ENTRY, REPLACED_PREFIX } from "./backed_up_names.ts";
import { createRestoredConfig, type RestoredSetting } from "./restored_config.ts";

const CONFIG_NAME = "config.toml";

/** What to restore, and where. */
export interface RestoreRequest {
  /** The backup file. */
  path: string;
  dataDir: string;
  /** Where the storage key is if it isn't in the data directory; read, never written. */
  storageKeyFile?: string;
  getPassphrase(): Promise<string>;
  /** Moves existing data aside; without it, a data directory with data is refused. */
  replace: boolean;
  now(): number;
  /** Decides about a key of the backup's config.toml that changes what runs or who may enter. */
  acceptSetting(setting: Pick<RestoredSetting, "key" | "line">): boolean | Promise<boolean>;
}

/** The result. */
export interface RestoreReport {
  head: BackupHead;
  files: number;
  contents: BackupContents;
  /** Folder with the previous files. */
  previousFilesFolder?: string;
  /** True if the storage key came from the backup and is now in the data directory. */
  isKeyRestored: boolean;
  /** Keys of the backup's config.toml that needed consent. */
  settings: RestoredSetting[];
}

/**
 * Restores a backup. Everything is read and verified before the first file of the data directory moves.
 *
 * @throws {AppError} `conflict` if the directory has data or a server is running, `unprocessable` and `internal` for an
 *   unusable backup, `invalid_request` if its key or passphrase is missing or wrong, `storage_full`.
 */
export async function restoreBackup(request: RestoreRequest): Promise<RestoreReport> {
  const { storageKeyFile, replace, now } = request;
  const dataDir = await openDataDir(request.dataDir);
  try {
    const present = await listDataNames(dataDir.path);
    const others = present.filter((name) => name !== STORAGE_KEY_FILE_NAME);
    if (others.length > 0 && !replace) {
      throw new AppError(
        "conflict",
        `Can't restore into "${dataDir.path}": it has data (${
          others.slice(0, 3).join(", ")
        }). Choose another folder with ` +
          "--data-dir, or use --replace to move the existing data aside",
      );
    }
    const presentKey = await findStorageKey({ dataDir: dataDir.path, storageKeyFile }).catch((error) => {
      if (storageKeyFile !== undefined || !replace) throw error;
      return undefined;
    });
    const getStorageKey = () => Promise.resolve(presentKey);
    using backup = await openBackup(request.path, { getPassphrase: request.getPassphrase, getStorageKey });
    const incoming = await openIncoming(dataDir.path);
    /** Unpacks and verifies the backup. */
    const prepare = async () => {
      const { paths, key = presentKey! } = await unpack(backup, incoming.folder);
      const isKeyNew = presentKey === undefined || presentKey.some((byte, index) => byte !== key[index]);
      if (isKeyNew) {
        if (presentKey !== undefined && (storageKeyFile !== undefined || !replace)) {
          throw createOtherKeyError(storageKeyFile);
        }
        await Deno.writeFile(join(incoming.folder, STORAGE_KEY_FILE_NAME), key, { mode: 0o600, createNew: true });
      }
      await checkUnpacked(incoming.folder, key);
      const settings = await settleConfig(incoming.folder, dataDir.path, request.acceptSetting);
      const contents = { ...countRows(join(incoming.folder, DATABASE_NAME)), ...countFiles(paths) };
      return { paths, contents, isKeyNew, settings };
    };
    const { paths, contents, isKeyNew, settings } = await prepare().catch(async (error) => {
      await incoming.discard().catch(() => {}); // The next start removes what is left.
      throw error;
    });

    const isSomethingReplaced = others.length > 0 || (isKeyNew && present.includes(STORAGE_KEY_FILE_NAME));
    const previousFolderName = isSomethingReplaced
      ? REPLACED_PREFIX + new Date(now()).toISOString().replace(/[:.]/g, "-")
      : undefined;
    await incoming.commit(others, previousFolderName);
    return {
      head: backup.head,
      files: paths.size,
      contents,
      isKeyRestored: isKeyNew,
      settings,
      previousFilesFolder: previousFolderName && dataDir.file(previousFolderName),
    };
  } finally {
    dataDir.close();
  }
}

/** Writes the config.toml of the restored data folder. @returns The keys of the backup's that needed consent */
async function settleConfig(
  folder: string,
  dataDir: string,
  accept: RestoreRequest["acceptSetting"],
): Promise<RestoredSetting[]> {
  const [backup, present] = await Promise.all(
    [folder, dataDir].map(async (at) => {
      const bytes = await readFileIfExists(join(at, CONFIG_NAME));
      return bytes && new TextDecoder().decode(bytes);
    }),
  );
  if (backup === undefined && present === undefined) return [];
  const { text, settings } = await createRestoredConfig({ backup: backup ?? "", present, accept });
  await Deno.writeTextFile(join(folder, CONFIG_NAME), text, { mode: 0o600 });
  return settings;
}

/** Lists what a restore would replace. The lock, models and caches don't count as data. */
async function listDataNames(dataDir: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(dataDir)) {
    if (!isBackedUp(name) && name !== STORAGE_KEY_FILE_NAME) continue;
    if (isDirectory && (await Array.fromAsync(Deno.readDir(join(dataDir, name)))).length === 0) continue;
    if (name !== "lost+found") names.push(name);
  }
  return names.sort();
}

async function unpack(
  backup: OpenBackup,
  folder: string,
): Promise<{ paths: ReadonlySet<string>; key: Uint8Array | undefined }> {
  const paths = new Set<string>();
  let key: Uint8Array | undefined;
  for await (const entry of backup.entries) {
    if (entry.path === KEY_ENTRY) {
      key = new Uint8Array((await Array.fromAsync(entry.content, (part) => [...part])).flat());
      continue;
    }
    await writeEntry(folder, entry);
    paths.add(entry.path);
  }
  if (!paths.has(DATABASE_NAME)) throw new AppError("unprocessable", "Can't read the backup: it has no database");
  return { paths, key };
}

async function writeEntry(folder: string, { path, mtimeMs, content }: ArchiveEntry): Promise<void> {
  const segments = path.split("/");
  const isInside = segments.every((segment) => !/^\.{0,2}$/.test(segment) && !/[\\\0]/.test(segment)) &&
    isBackedUp(segments[0]!);
  if (!isInside) throw new AppError("unprocessable", `Can't read the backup: it contains an unexpected file "${path}"`);
  const to = join(folder, ...segments);
  try {
    await Deno.mkdir(dirname(to), { recursive: true, mode: 0o700 });
    using file = await Deno.open(to, { write: true, create: true, truncate: true, mode: 0o600 });
    for await (const chunk of content) {
      for (let at = 0; at < chunk.byteLength;) at += await file.write(chunk.subarray(at));
    }
    // Cards and voice samples display their modification time.
    if (mtimeMs !== undefined) await file.utime(mtimeMs / 1000, mtimeMs / 1000);
  } catch (cause) {
    throw toFileError(`Can't write "${path}"`, cause);
  }
}

function createOtherKeyError(storageKeyFile: string | undefined): AppError {
  const remedy = storageKeyFile === undefined
    ? "move it away, or use --replace to move the existing data aside"
    : "restore without storage_key_file, then move the file storage-key from the data folder to its place";
  const where = storageKeyFile === undefined ? "in the data folder" : `"${storageKeyFile}"`;
  return new AppError(
    "conflict",
    `Can't restore with the storage key ${where}: the backup was made with another key; ${remedy}`,
  );
}

async function checkUnpacked(folder: string, key: Uint8Array): Promise<void> {
  const path = join(folder, DATABASE_NAME);
  const version = checkDatabase(path);
  const newest = MIGRATIONS.at(-1)!.version;
  if (version > newest) {
    throw new AppError(
      "unprocessable",
      `Can't restore the backup: its database has schema version ${version}, and this program supports versions up to ${newest}. ` +
        "Use the newer program",
    );
  }
  const reader = openReader(path);
  try {
    const write = () =>
      Promise.reject(
        new AppError("unprocessable", "Can't restore the backup: its database doesn't say which key encrypts it"),
      );
    await verifyStorageKey(createSealer(key), { get: reader.get, write });
  } finally {
    reader.close();
  }
}
