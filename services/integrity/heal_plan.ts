/** Finds good copies of what can't be read in backups. Runs in a Worker or a command. */
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { dirname } from "node:path";
import { DATABASE_NAME, KEY_ENTRY } from "../backup/backed_up_names.ts";
import { type BackupKeys, openBackup } from "../backup/backup_file.ts";
import { resealFiles } from "../backup/reseal_files.ts";
import { reseal, resealRows, type Row, RowOpener } from "../backup/reseal_rows.ts";
import { listSealedFiles } from "../backup/sealed_file_check.ts";
import { randomToken } from "../crypto/random.ts";
import { createSealer, type Sealer } from "../crypto/sealer.ts";
import { getErrorMessage } from "../errors.ts";
import { pathExists, streamFilePieces, TEMPORARY_ENDING, writeChunksAtomic } from "../storage/atomic_file.ts";
import { combineSums } from "../storage/database/manifest.ts";
import { MIGRATIONS } from "../storage/database/migrations.ts";
import { upgradeSchema } from "../storage/database/schema.ts";
import type { SqlValue, Statement } from "../storage/database/writer.ts";
import { checkFiles } from "./file_check.ts";
import { findFlippedBit } from "./flipped_bit.ts";
import { acceptRows, ManifestCheck, type SummedRow } from "./manifest.ts";
import { type LostRow, RowCheck } from "./row_check.ts";
import { getPathSql, TABLES } from "./tables.ts";

/** What to restore, and from where. */
export interface HealRequest {
  dataDir: string;
  sealer: Sealer;
  storageKey: Uint8Array;
  /** Paths of the items. */
  paths: readonly string[];
  /** Paths of the backups, the newest first. */
  backups: readonly string[];
  /** Opens backups that were made with it. */
  passphrase?: string;
  /** True if a chat may lose what changed since the backup. */
  acceptsOlder: boolean;
}

/** What is known of an item as it was. */
export interface HealPlan {
  /** Path of the item. */
  path: string;
  /** `manifest`: one bit of a plain column differs from what was written, so no backup is needed. */
  from: "backup" | "manifest";
  /** When the backup was made, or the bit was found; ISO 8601. */
  madeAt: string;
  /**
   * `done`: restored as soon as `statements` are written. `older`: the backup has an earlier state, and using it would
   * lose messages.
   */
  state: "done" | "older";
  /** Changes of the database. */
  statements: Statement[];
}

/** Looks for good copies, and writes back the files among them. @returns A plan per item that can be restored. */
export async function planHealing(request: HealRequest): Promise<HealPlan[]> {
  const { paths, backups } = request;
  const plans = new Map<string, HealPlan>();
  for (const path of paths) {
    const plan = planFromManifest(request, path);
    if (plan !== undefined) plans.set(path, plan);
  }
  for (const backup of backups) {
    const left = paths.filter((path) => plans.get(path)?.state !== "done");
    if (left.length === 0) break;
    try {
      for (const plan of await planFromBackup(request, backup, left)) {
        // An older state of the newest backup is better than that of an earlier one.
        if (plan.state === "done" || !plans.has(plan.path)) plans.set(plan.path, plan);
      }
    } catch (error) {
      // This one is damaged, or its key isn't known. An earlier one may be good.
      console.warn(JSON.stringify({ level: "warn", msg: "Can't use a backup", error: getErrorMessage(error) }));
    }
  }
  return [...plans.values()];
}

/** @returns `undefined` if more than one bit of plain columns differs */
function planFromManifest({ dataDir, sealer }: HealRequest, path: string): HealPlan | undefined {
  using present = new DatabaseSync(`${dataDir}/${DATABASE_NAME}`, { readOnly: true });
  try {
    const manifest = new ManifestCheck(present, sealer);
    if (manifest.checkItems([path]).length === 0) return undefined;
    const repair = findFlippedBit(present, manifest, path);
    if (repair === undefined) return undefined;
    const { row, statements } = repair;
    // A sealed value is bound to plain columns of its row.
    const isAll = new RowCheck(present, sealer).checkItem(path)
      .every(({ table, key }) => table === row?.table && JSON.stringify(key) === JSON.stringify(row.key));
    if (!isAll) return undefined;
    const madeAt = new Date().toISOString();
    return { path, from: "manifest", madeAt, state: "done", statements: [...statements, acceptRows(present, path)] };
  } catch {
    return undefined; // A page is damaged.
  }
}

async function planFromBackup(
  { dataDir, sealer, storageKey, passphrase, acceptsOlder }: HealRequest,
  backupPath: string,
  paths: readonly string[],
): Promise<HealPlan[]> {
  using present = new DatabaseSync(`${dataDir}/${DATABASE_NAME}`, { readOnly: true });
  const place = { dataDir, sealer, database: { all: <T>(sql: string) => present.prepare(sql).all() as T[] } };
  const files = await listLostFiles(place, paths);
  const keys = {
    getStorageKey: () => Promise.resolve(storageKey),
    ...(passphrase !== undefined && { getPassphrase: () => Promise.resolve(passphrase) }),
  } satisfies BackupKeys;
  const copyPath = `${dataDir}/.backup-${randomToken(9)}${TEMPORARY_ENDING}`;
  const plans: HealPlan[] = [];
  let earlier: EarlierCopies | undefined;
  try {
    using backup = await openBackup(backupPath, keys);
    const madeAt = backup.head.created_at;
    const takeFile = async (file: string, path: string, content: AsyncIterable<Uint8Array>) => {
      if (await replaceFile(place, `${dataDir}/${file}`, content, path)) {
        plans.push({ path, from: "backup", madeAt, state: "done", statements: [] });
      }
    };
    let hasDatabase = false;
    for await (const entry of backup.entries) {
      if (entry.path === KEY_ENTRY) {
        const key = await readAll(entry.content);
        if (key.some((byte, i) => byte !== storageKey[i])) earlier = await EarlierCopies.open(dataDir, key, sealer);
      }
      if (entry.path === DATABASE_NAME) {
        await writeChunksAtomic(earlier?.databasePath ?? copyPath, entry.content);
        hasDatabase = true;
      }
      const path = files.get(entry.path) ?? findPlainItem(entry.path, paths);
      if (path === undefined) continue;
      if (files.has(entry.path) && earlier !== undefined) await earlier.add(entry.path, entry.content);
      else await takeFile(entry.path, path, entry.content);
    }
    if (!hasDatabase) return plans;
    if (earlier !== undefined) {
      await earlier.reseal(copyPath);
      for (const [file, path] of files) {
        const content = await earlier.find(file);
        if (content !== undefined) await takeFile(file, path, content);
      }
    }
    using copy = new DatabaseSync(copyPath);
    upgrade(copy);
    const check = new RowCheck(present, sealer);
    const manifest = new ManifestCheck(present, sealer);
    for (const path of paths) {
      const lost = check.checkItem(path);
      const isChanged = manifest.checkItems([path]).length > 0;
      if (lost.length === 0 && !isChanged) continue;
      const plan = planRows({ path, lost, isChanged, check, manifest, copy, present, sealer, acceptsOlder });
      if (plan !== undefined) plans.push({ path, from: "backup", madeAt, ...plan });
    }
    return plans;
  } finally {
    for (const ending of ["", "-journal", "-wal", "-shm"]) await Deno.remove(copyPath + ending).catch(() => {});
    await earlier?.[Symbol.asyncDispose]();
  }
}

/** Brings the copy of an earlier version to the present schema. */
function upgrade(copy: DatabaseSync): void {
  const version = Number(copy.prepare("PRAGMA user_version").get()?.user_version);
  for (const migration of MIGRATIONS) if (migration.version > version) copy.exec(migration.sql);
}

async function readAll(content: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  return new Uint8Array(await new Blob(await Array.fromAsync(content) as BlobPart[]).arrayBuffer());
}

/** What a backup from before a rotation of the storage key has: sealed again with the present key. */
class EarlierCopies implements AsyncDisposable {
  /** Where to write the backup's database. */
  readonly databasePath: string;
  readonly #folder: string;
  readonly #from: Sealer;
  readonly #to: Sealer;

  private constructor(folder: string, from: Sealer, to: Sealer) {
    this.#folder = folder;
    this.#from = from;
    this.#to = to;
    this.databasePath = `${folder}/old/${DATABASE_NAME}`;
  }

  /** @param key The storage key of the backup. */
  static async open(dataDir: string, key: Uint8Array, to: Sealer): Promise<EarlierCopies> {
    const folder = `${dataDir}/.backup-${randomToken(9)}${TEMPORARY_ENDING}`;
    for (const name of ["old", "new"]) await Deno.mkdir(`${folder}/${name}`, { recursive: true, mode: 0o700 });
    return new EarlierCopies(folder, createSealer(key), to);
  }

  /** Adds a sealed file. @param path Relative to the data folder */
  async add(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    const target = `${this.#folder}/old/${path}`;
    await Deno.mkdir(dirname(target), { recursive: true, mode: 0o700 });
    await writeChunksAtomic(target, content);
  }

  /** Seals everything again. @param path Where the database is written. */
  async reseal(path: string): Promise<void> {
    const [dataDir, folder] = [`${this.#folder}/old`, `${this.#folder}/new`];
    await upgradeSchema(path, MIGRATIONS);
    using source = new DatabaseSync(this.databasePath);
    using target = new DatabaseSync(path);
    upgrade(source);
    target.exec("PRAGMA journal_mode = DELETE");
    resealRows(source, target, this.#from, this.#to);
    await resealFiles({ dataDir, folder, from: this.#from, to: this.#to }, target);
  }

  /** Opens a file that was sealed again; `undefined` if the backup doesn't have it. */
  async find(path: string): Promise<AsyncIterable<Uint8Array> | undefined> {
    const file = `${this.#folder}/new/${path}`;
    return await pathExists(file) ? streamFilePieces(file) : undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.#folder, { recursive: true });
  }
}

type Place = Parameters<typeof checkFiles>[0];

/** Maps sealed files that can't be opened to their items. */
async function listLostFiles(place: Place, paths: readonly string[]): Promise<Map<string, string>> {
  const lost = new Map<string, string>();
  for await (const { path: file, item = file, open } of listSealedFiles(place)) {
    // An old file would bring back passkeys and tokens that were removed since.
    if (!paths.includes(item) || !file.includes("/")) continue;
    if (!await open().then(() => true, () => false)) lost.set(file, item);
  }
  return lost;
}

/** Finds the item of a card, persona or workflow. */
function findPlainItem(file: string, paths: readonly string[]): string | undefined {
  const path = /^((?:characters|personas|workflows)\/[^/]+)\.(?:png|json)$/.exec(file)?.[1];
  return path !== undefined && paths.includes(path) ? path : undefined;
}

/** Replaces a damaged file. @returns False, with the damaged file in its place, if the copy isn't readable either. */
async function replaceFile(
  place: Place,
  target: string,
  content: AsyncIterable<Uint8Array>,
  path: string,
): Promise<boolean> {
  const aside = `${dirname(target)}/.${randomToken(9)}${TEMPORARY_ENDING}`;
  const isThere = await Deno.rename(target, aside).then(() => true, () => false);
  await writeChunksAtomic(target, content);
  let isReadable = true;
  for await (const checked of checkFiles(place, path)) isReadable &&= checked.isReadable;
  if (isReadable) {
    await Deno.remove(aside).catch(() => {});
  } else {
    await Deno.remove(target);
    if (isThere) await Deno.rename(aside, target);
  }
  return isReadable;
}

interface RowsRequest {
  path: string;
  lost: readonly LostRow[];
  /** True if its rows differ from the manifest. */
  isChanged: boolean;
  check: RowCheck;
  manifest: ManifestCheck;
  copy: DatabaseSync;
  present: DatabaseSync;
  sealer: Sealer;
  acceptsOlder: boolean;
}

/** Plans the rows of an item. @returns `undefined` if the backup has no good copy */
function planRows(request: RowsRequest): Pick<HealPlan, "state" | "statements"> | undefined {
  const { path, present, acceptsOlder } = request;
  const statements = planSingleRows(request);
  if (statements !== undefined) return { state: "done", statements: [...statements, acceptRows(present, path)] };
  const whole = planWhole(request);
  if (whole === undefined) return undefined;
  // Whatever can't be read alone can be replaced as a whole; a chat has other messages that would be lost.
  const isDone = acceptsOlder || !path.startsWith("conversations/");
  return isDone
    ? { state: "done", statements: [...whole, acceptRows(present, path)] }
    : { state: "older", statements: [] };
}

/** @returns `undefined` if only the whole item can be replaced */
function planSingleRows(request: RowsRequest): Statement[] | undefined {
  const repaired = request.isChanged ? planRepair(request) : [];
  if (repaired === undefined) return undefined;
  const isRepaired = (row: LostRow) =>
    repaired.some(({ table, key }) => table === row.table && JSON.stringify(key) === JSON.stringify(row.key));
  const rest = request.lost.filter((row) => !isRepaired(row)).map((row) => planRow(request, row));
  if (rest.includes(undefined)) return undefined;
  return [...repaired.map(({ statement }) => statement), ...rest as Statement[]];
}

/** A row that has to be as it was in the backup. */
interface Repair {
  table: string;
  key: SQLInputValue[];
  statement: Statement;
}

/**
 * Finds the rows that have to be as in the backup so that the item matches the manifest again: all that differ, one, or
 * two (a row whose key was damaged is there twice). What was changed since the backup stays.
 */
function planRepair({ path, check, manifest, copy, present, sealer }: RowsRequest): Repair[] | undefined {
  const target = manifest.getDifference(path)?.sum;
  if (target === undefined) return undefined;
  const toName = ({ table, key }: SummedRow) => JSON.stringify([table, ...key]);
  let rows: Map<string, SummedRow>[];
  try {
    rows = [present, copy].map((database) =>
      new Map(manifest.listRows(database, path).map((row) => [toName(row), row]))
    );
  } catch {
    return undefined; // A page is damaged.
  }
  const [now, then] = rows as [Map<string, SummedRow>, Map<string, SummedRow>];
  const differing = [...new Set([...now.keys(), ...then.keys()])].flatMap((name) => {
    const sum = combineSums(now.get(name)?.sum ?? "", then.get(name)?.sum ?? "");
    return sum === "" ? [] : [{ name, sum }];
  });
  const chosen = chooseSums(differing, target);
  const opener = new RowOpener(sealer);
  const isGood = chosen?.every(({ name }) => {
    const row = then.get(name);
    return row === undefined || opener.listUnreadable(row.table, row.row).length === 0;
  });
  if (isGood !== true) return undefined;
  return chosen!.map(({ name }) => {
    const { table, key, row } = (then.get(name) ?? now.get(name))!;
    const where = check.getColumns(table).key.map((column) => `${column} = ?`).join(" AND ");
    const statement: Statement = then.has(name)
      ? insert(table, row)
      : { sql: `DELETE FROM ${table} WHERE ${where}`, params: key as SqlValue[] };
    return { table, key, statement };
  });
}

/** Chooses all, one or two of the sums so that together they are the target. */
function chooseSums<T extends { sum: string }>(all: readonly T[], target: string): T[] | undefined {
  if (all.reduce((sum, each) => combineSums(sum, each.sum), "") === target) return [...all];
  const bySum = new Map(all.map((each) => [each.sum, each]));
  const single = bySum.get(target);
  if (single !== undefined) return [single];
  for (const each of all) {
    const other = bySum.get(combineSums(target, each.sum));
    if (other !== undefined && other !== each) return [each, other];
  }
}

/** Rows that stand for themselves: an older one is better than none. */
const ALONE = [
  "draft",
  "message_queue",
  "variant",
  "tool_permission",
  "document",
  "document_file",
  "setting",
  "job",
  "trash",
];

/** Plans one row. @returns `undefined` if it can't be replaced alone */
function planRow({ check, copy, present, sealer }: RowsRequest, row: LostRow): Statement | undefined {
  const { table, key } = row;
  if (key.length === 0) return undefined;
  const columns = check.getColumns(table);
  const where = columns.key.map((name) => `${name} = ?`).join(" AND ");
  const good = findRow(copy, `SELECT * FROM ${table} WHERE ${where}`, key);
  if (good === undefined) return undefined;
  const now = findRow(present, `SELECT ${columns.plain} FROM ${table} WHERE ${where}`, key);
  const isSameVersion = now !== undefined && columns.plain.every((name) => now[name] === good[name]);
  const opener = new RowOpener(sealer);
  if (opener.listUnreadable(table, good).length > 0) return undefined;
  if (isSameVersion || ALONE.includes(table)) return insert(table, good);
  if (table !== "conversation" || now === undefined) return undefined;
  // Title and settings are bound to the number of the last change.
  const head = moveSealed(sealer, good, now, "head");
  const summary = moveSealed(sealer, good, now, "summary");
  if (head === undefined || summary === undefined) return undefined;
  return { sql: "UPDATE conversation SET head = ?, summary = ? WHERE id = ?", params: [head, summary, String(now.id)] };
}

function moveSealed(sealer: Sealer, from: Row, to: Row, field: "head" | "summary"): Uint8Array | undefined {
  const toAad = ({ id, revision }: Row) => ({
    table: "conversation",
    id: String(id),
    field,
    version: Number(revision),
  });
  const moving: Sealer = {
    forPurpose: (purpose) => ({
      ...sealer.forPurpose(purpose),
      sealNow: (_, plain) => sealer.forPurpose(purpose).sealNow(toAad(to), plain),
    }),
  };
  return reseal(from[field] as Uint8Array, [{ purpose: "conversations", aad: toAad(from) }], sealer, moving);
}

/** Plans all rows of an item as the backup has them. */
function planWhole({ path, check, copy, sealer }: RowsRequest): Statement[] | undefined {
  const opener = new RowOpener(sealer);
  const statements: Statement[] = [];
  let count = 0;
  for (const table of Object.keys(TABLES)) {
    if (TABLES[table]!.id === undefined || check.getColumns(table).all.length === 0) continue;
    let rows: Row[];
    try {
      rows = copy.prepare(`SELECT * FROM ${table} WHERE ${getPathSql(table)} = ?`).all(path) as Row[];
    } catch {
      return undefined;
    }
    if (rows.some((row) => opener.listUnreadable(table, row).length > 0)) return undefined;
    statements.push({ sql: `DELETE FROM ${table} WHERE ${getPathSql(table)} = ?`, params: [path] });
    for (const row of rows) statements.push(insert(table, row));
    count += rows.length;
  }
  return count === 0 ? undefined : statements;
}

function insert(table: string, row: Row): Statement {
  const names = Object.keys(row);
  return {
    sql: `INSERT OR REPLACE INTO ${table} (${names}) VALUES (${names.map(() => "?")})`,
    params: Object.values(row) as SqlValue[],
  };
}

function findRow(database: DatabaseSync, sql: string, params: SQLInputValue[]): Row | undefined {
  try {
    return database.prepare(sql).get(...params) as Row | undefined;
  } catch {
    return undefined;
  }
}
