/**
 * Creates a backup of a data directory while the server keeps writing.
 *
 * It has everything except what can be downloaded or rebuilt and what must stay on this machine. What it has is counted
 * by kind, for people who choose one.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { randomToken } from "../crypto/random.ts";
import { bytesOfFile } from "../crypto/sealed_pieces.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import { TEMPORARY_ENDING, toFileError, writeChunksAtomic } from "../storage/atomic_file.ts";
import { checkDatabase, snapshotDatabase } from "../storage/database/sqlite.ts";
import { salvageDatabase } from "../integrity/salvage.ts";
import { type ArchiveEntry, type BackupKeys, openBackup, streamBackup } from "./backup_file.ts";
import { DATABASE_NAME, isBackedUp, KEY_ENTRY } from "./backed_up_names.ts";
import { DatabaseSync } from "node:sqlite";
import { createSealer } from "../crypto/sealer.ts";
import { type Damage, mergeDamages } from "../integrity/damage.ts";
import { checkAll, type StoredData } from "../integrity/pass.ts";

/** What to back up, and how. */
export interface BackupRequest {
  dataDir: string;
  storageKey: Uint8Array;
  /** Target file; the caller has checked that it may be written. */
  path: string;
  /**
   * Seals the backup and includes the storage key. Without a passphrase, the backup is sealed with the storage key and
   * doesn't contain it.
   */
  passphrase?: string;
  /** Version of the program. */
  version: string;
  nowMs: number;
  /** UUID in the name of the unfinished file; random by default. */
  temporaryId?: string;
}

/** Progress and cancellation. */
export interface BackupWatch {
  /** Cancels the backup; nothing of it remains. */
  signal?: AbortSignal;
  /** Called often with the bytes written or verified so far, and the expected total of both. */
  progress?(doneBytes: number, totalBytes: number): void;
}

/** The result. */
export interface BackupReport {
  path: string;
  sizeBytes: number;
  files: number;
  contents: BackupContents;
  /** What it has but nobody can read, because it was damaged before. */
  unreadable: Damage[];
}

/** Database copies older than this are leftovers of killed backups. */
const LEFTOVER_AGE_MS = 24 * 60 * 60 * 1000;

/**
 * Creates a backup and verifies it.
 *
 * Contains everything acknowledged before the call. Files come first, then a snapshot of the database, then files that
 * changed in the meantime, so no row of the database refers to a missing file.
 *
 * @throws {AppError} `storage_full`; `internal` if a file can't be read, the verification fails, or the backup is
 *   canceled. No file remains then.
 */
export async function makeBackup(request: BackupRequest, watch: BackupWatch = {}): Promise<BackupReport> {
  const { dataDir, storageKey, path, passphrase, version, nowMs, temporaryId } = request;
  await removeLeftovers(dataDir);
  const { took, finish } = await createCounter(dataDir, watch);
  const digests = new Map<string, string>();
  const key = passphrase === undefined ? { storageKey } : { passphrase };
  let rows: RowCounts | undefined;
  let unreadable: Damage[] = [];
  const onDatabase: OnDatabase = async (copy, missing) => {
    rows = countRows(copy);
    const sealer = createSealer(storageKey);
    const found = await findUnreadable({ dataDir, sealer, databasePath: copy, arePagesChecked: true });
    unreadable = mergeDamages([...missing, ...found]);
  };
  const entries = streamWithDigest(packEntries(request, onDatabase), digests, took);
  await writeChunksAtomic(path, streamBackup({ version, nowMs }, key, entries), { temporaryId });
  try {
    await checkBackup(request, digests, took);
  } catch (error) {
    await Deno.remove(path).catch(() => {});
    throw error;
  }
  finish();
  const contents = { ...rows!, ...countFiles(digests.keys()) };
  // The key counts as little as it does in a restore.
  const files = [...digests.keys()].filter((name) => name !== KEY_ENTRY).length;
  return { path, sizeBytes: (await Deno.stat(path)).size, files, contents, unreadable };
}

/** Opens everything that a backup has, because a copy of something damaged is no backup of it. */
async function findUnreadable(data: StoredData): Promise<Damage[]> {
  const found: Damage[] = [];
  for await (const { damages } of checkAll(data)) found.push(...damages);
  return mergeDamages(found);
}

/** Called with the copy of the database, and what of the original it lacks. */
type OnDatabase = (copy: string, missing: readonly Damage[]) => Promise<void>;

/** A damaged page doesn't end a backup: whatever can be read is saved. */
function isIntact(path: string): boolean {
  try {
    checkDatabase(path);
    return true;
  } catch {
    return false;
  }
}

/** Counts the bytes of each chunk. @throws The signal's reason. */
type Took = (bytes: number) => void;

/** Everything is written and then verified, so it counts twice. */
async function createCounter(
  dataDir: string,
  { signal, progress }: BackupWatch,
): Promise<{ took: Took; finish(): void }> {
  let totalBytes = 0;
  if (progress !== undefined) {
    totalBytes = (await Deno.stat(join(dataDir, DATABASE_NAME)).catch(() => undefined))?.size ?? 0;
    for await (const { sizeBytes } of listDataFiles(dataDir)) totalBytes += sizeBytes;
    totalBytes *= 2;
  }
  let doneBytes = 0;
  return {
    took(bytes) {
      signal?.throwIfAborted();
      doneBytes += bytes;
      // Files can grow while the backup runs.
      progress?.(Math.min(doneBytes, totalBytes), totalBytes);
    },
    // The total is an estimate: files grow and shrink, and the copy of the database is smaller than the original.
    finish: () => progress?.(doneBytes, doneBytes),
  };
}

async function checkBackup(
  { path, passphrase, storageKey }: BackupRequest,
  digests: Map<string, string>,
  took: Took,
): Promise<void> {
  const keys = {
    getPassphrase: () => Promise.resolve(passphrase!),
    getStorageKey: () => Promise.resolve(storageKey),
  } satisfies BackupKeys;
  using backup = await openBackup(path, keys);
  const found = new Map<string, string>();
  for await (const entry of streamWithDigest(backup.entries, found, took)) for await (const _ of entry.content);
  const isSame = found.size === digests.size && [...digests].every(([name, digest]) => found.get(name) === digest);
  if (!isSame) throw new AppError("internal", `The backup "${path}" doesn't match what was written to it`);
}

async function* packEntries(
  { dataDir, storageKey, passphrase }: BackupRequest,
  onDatabase: OnDatabase,
): AsyncGenerator<ArchiveEntry> {
  if (passphrase !== undefined) {
    yield { path: KEY_ENTRY, sizeBytes: storageKey.byteLength, content: only(storageKey) };
  }
  const seen = new Map<string, string>();
  yield* packFiles(dataDir, seen);
  yield* packDatabase(dataDir, onDatabase);
  yield* packFiles(dataDir, seen);
}

/** The database occurs once in the archive. A file can occur again; the last occurrence counts. */
async function* packDatabase(
  dataDir: string,
  onDatabase: OnDatabase,
): AsyncGenerator<ArchiveEntry> {
  const [copy, salvaged] = [1, 2].map(() => join(dataDir, `.backup-${randomToken(9)}${TEMPORARY_ENDING}`)) as [
    string,
    string,
  ];
  try {
    await snapshotDatabase(join(dataDir, DATABASE_NAME), copy);
    const isWhole = isIntact(copy);
    const missing = isWhole ? [] : salvageDatabase(copy, salvaged);
    const path = isWhole ? copy : salvaged;
    if (!isWhole) checkDatabase(path);
    await onDatabase(path, missing);
    yield* packFile(path, DATABASE_NAME);
  } finally {
    for (const ending of ["", "-wal", "-shm", "-journal"]) {
      for (const path of [copy, salvaged]) await Deno.remove(path + ending).catch(() => {});
    }
  }
}

async function* packFiles(dataDir: string, seen: Map<string, string>): AsyncGenerator<ArchiveEntry> {
  for await (const { path, state } of listDataFiles(dataDir)) {
    if (seen.get(path) === state) continue;
    seen.set(path, state);
    yield* packFile(join(dataDir, path), path);
  }
}

/** Files are replaced, never modified, except journals, which only grow: the size at opening is consistent. */
async function* packFile(from: string, path: string): AsyncGenerator<ArchiveEntry> {
  let file: Deno.FsFile;
  try {
    file = await Deno.open(from);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return; // removed since it was listed
    throw toFileError(`Can't back up "${from}"`, cause);
  }
  try {
    const { size, mtime } = await file.stat();
    yield { path, sizeBytes: size, mtimeMs: mtime?.getTime(), content: bytesOfFile(file, size, from) };
  } finally {
    file.close();
  }
}

async function* streamWithDigest(
  entries: AsyncIterable<ArchiveEntry>,
  digests: Map<string, string>,
  took: Took,
): AsyncGenerator<ArchiveEntry> {
  for await (const entry of entries) {
    yield { ...entry, content: withDigest(entry.content, took, (digest) => digests.set(entry.path, digest)) };
  }
}

async function* withDigest(
  content: AsyncIterable<Uint8Array>,
  took: Took,
  take: (digest: string) => void,
): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  for await (const chunk of content) {
    took(chunk.byteLength);
    hash.update(chunk);
    yield chunk;
  }
  take(hash.digest("hex"));
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function removeLeftovers(dataDir: string): Promise<void> {
  for await (const { name } of Deno.readDir(dataDir)) {
    if (!/^\.backup-.*\.tmp$/.test(name)) continue;
    const { mtime } = await Deno.lstat(join(dataDir, name));
    if ((mtime?.getTime() ?? 0) < Date.now() - LEFTOVER_AGE_MS) {
      await Deno.remove(join(dataDir, name), { recursive: true }); // Healing leaves folders.
    }
  }
}

/** A file of the data directory. */
interface DataFile {
  /** Relative, with slashes. */
  path: string;
  sizeBytes: number;
  /** Identifies the state of the file, to detect changes. */
  state: string;
}

/** Lists the files except the database, without following links. */
export async function* listDataFiles(dataDir: string): AsyncGenerator<DataFile> {
  for await (const { name } of Deno.readDir(dataDir)) {
    // The database with its log and copies from before upgrades.
    if (!isBackedUp(name) || name.startsWith(DATABASE_NAME)) continue;
    yield* walkFiles(dataDir, name);
  }
}

async function* walkFiles(dataDir: string, path: string): AsyncGenerator<DataFile> {
  if (path.endsWith(TEMPORARY_ENDING)) return;
  const info = await Deno.lstat(join(dataDir, path)).catch(ignoreMissing);
  if (info?.isFile) {
    yield { path, sizeBytes: info.size, state: `${info.size} ${info.mtime?.getTime()} ${info.ino}` };
  }
  if (!info?.isDirectory) return;
  const names = await Array.fromAsync(Deno.readDir(join(dataDir, path)), ({ name }) => name).catch(ignoreMissing) ?? [];
  for (const name of names) yield* walkFiles(dataDir, `${path}/${name}`);
}

function ignoreMissing(error: unknown): undefined {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}

/** Numbers of items in the database. */
interface RowCounts {
  chats: number;
  lorebooks: number;
  images: number;
  recordings: number;
}

/** Numbers of items that are files. */
interface FileCounts {
  characters: number;
  personas: number;
  voices: number;
}

/** Numbers of items. */
export interface BackupContents extends RowCounts, FileCounts {}

/** Counts what is in a database file, without changing it. @throws {AppError} `internal` if it can't be read. */
export function countRows(path: string): RowCounts {
  try {
    using database = new DatabaseSync(path, { readOnly: true });
    const count = (rows: string) => Number(database.prepare(`SELECT count(*) AS n FROM ${rows}`).get()?.n);
    return {
      chats: count("conversation WHERE deleted_at IS NULL"),
      lorebooks: count("document WHERE kind = 'lorebook'"),
      images: count("attachment WHERE type LIKE 'image/%'"),
      recordings: count("attachment WHERE type LIKE 'audio/%'"),
    };
  } catch (cause) {
    throw new AppError("internal", `Can't count what is in "${path}": ${getErrorMessage(cause)}`, { cause });
  }
}

/** Counts items by their files. @param paths Relative to the data folder. */
export function countFiles(paths: Iterable<string>): FileCounts {
  const cards = { characters: new Set<string>(), personas: new Set<string>() };
  let voices = 0;
  for (const path of paths) {
    const [, folder, id] = /^(characters|personas)\/([^/]+)\.(?:png|json|charx)$/.exec(path) ?? [];
    if (folder !== undefined) cards[folder as keyof typeof cards].add(id!);
    else if (/^voices\/[^/]+$/.test(path)) voices++;
  }
  return { characters: cards.characters.size, personas: cards.personas.size, voices };
}

/** Writes the numbers as text: `"12 chats, 3 characters, 1 persona"`. */
export function formatContents(contents: BackupContents): string {
  const { chats, characters, personas, lorebooks, images, recordings, voices } = contents;
  const counts = { chats, characters, personas, lorebooks, images, recordings, voices };
  const parts = Object.entries(counts).filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count} ${count === 1 ? kind.slice(0, -1) : kind}`);
  return parts.length === 0 ? "no chats" : parts.join(", ");
}
