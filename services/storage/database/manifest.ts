/**
 * The manifest: per item, the number of its rows and a keyed sum of their plain columns. The writing connection keeps it
 * with triggers of its own, so a row that is changed in any other way no longer matches. See
 * docs/decisions/0051-manifest.md.
 */
import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from "node:sqlite";
import { nodeCrypto } from "../../crypto/random.ts";
import { isDamaged } from "./sqlite.ts";

/** How the writer keeps the manifest. */
export interface ManifestPlan {
  /** Secret of the sums: 64 hexadecimal digits. */
  key: string;
  /** What the sums are of, as a sum. A manifest with another one is made again. */
  scheme: string;
  /** Queries of `path` and `entry` of all rows. */
  queries: string[];
  /** Statements that create temporary triggers. */
  triggers: string[];
}

/** Path of the row of the manifest that has the scheme, and the number of writes. */
export const SCHEME_PATH = "";

/** What the manifest has of an item. */
export interface ManifestRow {
  path: string;
  rowCount: number;
  /** Exclusive or of the sums of its rows: 24 hexadecimal digits; empty for none. */
  sum: string;
}

const SUM_DIGITS = 24;

/** Returns the keyed sum of a text. A shortened SHA-256 can't be continued without the key. */
export function sumText(key: string, text: string): string {
  return nodeCrypto().hash("sha256", key + text, "hex").slice(0, SUM_DIGITS);
}

/** Adds or removes a sum: doing it twice changes nothing. */
export function combineSums(a: string, b: string): string {
  if (a === "" || b === "") return a + b;
  if (a === b) return "";
  let combined = "";
  for (let i = 0; i < SUM_DIGITS; i += 8) {
    const part = parseInt(a.slice(i, i + 8), 16) ^ parseInt(b.slice(i, i + 8), 16);
    combined += (part >>> 0).toString(16).padStart(8, "0");
  }
  return combined;
}

/** Returns how many units of writes a database has had since it has a manifest. Restoring a backup restores that number. */
export function countWrites(database: { get<T>(sql: string, ...params: string[]): T | undefined }): number {
  const sql = "SELECT row_count AS writes FROM manifest WHERE path = ?";
  return database.get<{ writes: number }>(sql, SCHEME_PATH)?.writes ?? 0;
}

/** What a unit of writes changed of an item. */
interface PendingChange {
  /** True if what the manifest had of the item before doesn't count. */
  isReset: boolean;
  rowCount: number;
  sum: string;
}

/** A page of the manifest can't be read. The unit itself is fine. */
export class DamagedManifest extends Error {}

/** Keeps the manifest of a connection: collects what a unit of writes changes, and adds it before the commit. */
export class ManifestKeeper {
  readonly #connection: DatabaseSync;
  readonly #plan: ManifestPlan;
  readonly #onRemade: () => void;
  readonly #key: string;
  readonly #find: StatementSync;
  readonly #insert: StatementSync;
  readonly #update: StatementSync;
  readonly #remove: StatementSync;
  readonly #count: StatementSync;
  #pending = new Map<string, PendingChange>();
  /** True from when the manifest was made again until a unit was added to it. */
  #isFresh = false;
  #isKept = true;

  /**
   * Fills the manifest if there is none for this scheme, or if it's damaged.
   *
   * @param onRemade Called if it was damaged.
   * @throws SQLite's errors. The manifest isn't kept then.
   */
  constructor(connection: DatabaseSync, plan: ManifestPlan, onRemade: () => void = () => {}) {
    this.#connection = connection;
    this.#plan = plan;
    this.#onRemade = onRemade;
    this.#key = plan.key;
    if (readScheme(connection) !== plan.scheme && fill(connection, plan).wasDamaged) onRemade();
    this.#find = connection.prepare("SELECT row_count AS rowCount, sum FROM manifest WHERE path = ?");
    this.#insert = connection.prepare("INSERT INTO manifest (path, row_count, sum) VALUES (?, ?, ?)");
    this.#update = connection.prepare("UPDATE manifest SET row_count = ?, sum = ? WHERE path = ?");
    this.#remove = connection.prepare("DELETE FROM manifest WHERE path = ?");
    this.#count = connection.prepare("UPDATE manifest SET row_count = row_count + 1 WHERE path = ''");
    connection.function("manifest_change", (path, before, after) => {
      this.#change(String(path), before, after);
      return null;
    });
    connection.function("manifest_remove", (path) => {
      this.#pending.set(String(path), { isReset: true, rowCount: 0, sum: "" });
      return null;
    });
    // Entries are joined by NUL, which no stored text has.
    connection.function("manifest_accept", (path, entries) => {
      this.#pending.set(String(path), { isReset: true, rowCount: 0, sum: "" });
      if (entries !== null) {
        for (const entry of String(entries).split("\0")) this.#change(String(path), null, entry);
      }
      return null;
    });
    // A row that REPLACE removes fires no trigger otherwise.
    connection.exec("PRAGMA recursive_triggers = ON");
    for (const sql of plan.triggers) connection.exec(sql);
  }

  /** Forgets the changes of a unit that failed. */
  begin(): void {
    this.#pending.clear();
  }

  /** Adds the changes of a unit, inside its transaction. @throws {DamagedManifest} and SQLite's errors */
  save(): void {
    const pending = this.#pending;
    if (pending.size === 0) return;
    this.#pending = new Map();
    if (!this.#isKept) return;
    try {
      this.#add(pending);
      this.#isFresh = false;
    } catch (error) {
      throw isDamaged(error) ? new DamagedManifest("The manifest is damaged", { cause: error }) : error;
    }
  }

  /**
   * Makes a damaged manifest again, so that writing can continue. Call it outside a transaction. Never throws: if other
   * damage prevents it, the manifest is no longer kept.
   */
  remake(): void {
    this.begin();
    if (this.#isFresh) this.#isKept = false;
    if (!this.#isKept) return;
    try {
      fill(this.#connection, this.#plan);
      this.#isFresh = true;
    } catch {
      this.#isKept = false;
    }
    this.#onRemade();
  }

  #add(pending: Map<string, PendingChange>): void {
    this.#count.run();
    const folders = new Map<string, PendingChange>();
    for (const [path, change] of pending) {
      const difference = this.#saveItem(path, change);
      if (difference === 0) continue;
      const folder = getFolder(path);
      const { rowCount, sum } = folders.get(folder) ?? { rowCount: 0, sum: "" };
      const changed = combineSums(sum, sumText(this.#key, path));
      folders.set(folder, { isReset: false, rowCount: rowCount + difference, sum: changed });
    }
    for (const [folder, change] of folders) this.#saveItem(folder, change);
  }

  #change(path: string, before: SQLOutputValue, after: SQLOutputValue): void {
    let change = this.#pending.get(path);
    if (change === undefined) this.#pending.set(path, change = { isReset: false, rowCount: 0, sum: "" });
    for (const [entry, count] of [[before, -1], [after, 1]] as const) {
      if (entry === null) continue;
      change.rowCount += count;
      change.sum = combineSums(change.sum, sumText(this.#key, String(entry)));
    }
  }

  /** @returns 1 if it's new, -1 if it's gone, else 0 */
  #saveItem(path: string, { isReset, rowCount, sum }: PendingChange): number {
    const kept = this.#find.get(path) as { rowCount: number; sum: string } | undefined;
    const base = kept === undefined || isReset ? { rowCount: 0, sum: "" } : kept;
    const count = base.rowCount + rowCount;
    if (count <= 0) {
      if (kept !== undefined) this.#remove.run(path);
      return kept === undefined ? 0 : -1;
    }
    const changed = combineSums(base.sum, sum);
    if (kept === undefined) this.#insert.run(path, count, changed);
    else this.#update.run(count, changed, path);
    return kept === undefined ? 1 : 0;
  }
}

function getFolder(path: string): string {
  return path.slice(0, path.indexOf("/"));
}

/** @returns `undefined` if there is none, or none that can be read. @throws SQLite's errors */
function readScheme(connection: DatabaseSync): SQLOutputValue | undefined {
  try {
    return connection.prepare("SELECT sum FROM manifest WHERE path = ?").get(SCHEME_PATH)?.sum;
  } catch (error) {
    if (isDamaged(error)) return undefined;
    throw error;
  }
}

const INSERT_ROW = "INSERT INTO manifest (path, row_count, sum) VALUES (?, ?, ?)";

/** Makes the manifest from the rows. @throws SQLite's errors. The manifest is empty then, so that nothing is compared. */
function fill(connection: DatabaseSync, { key, scheme, queries }: ManifestPlan): { wasDamaged: boolean } {
  const wasDamaged = clear(connection);
  transact(connection, () => {
    const insert = connection.prepare(INSERT_ROW);
    const items = sumRows(key, connection, queries.map((sql) => ({ sql, params: [] })));
    for (const { path, rowCount, sum } of [...items.values(), ...sumFolders(key, items.keys()).values()]) {
      insert.run(path, rowCount, sum);
    }
    connection.prepare("UPDATE manifest SET sum = ? WHERE path = ?").run(scheme, SCHEME_PATH);
  });
  return { wasDamaged };
}

/** Start of the names of tables that can be neither read nor removed, because a page of them is damaged. */
export const DAMAGED_TABLE = "manifest_damaged_";

/** Removes everything but the number of writes. @returns True if a page was damaged, so that the table was put aside */
function clear(connection: DatabaseSync): boolean {
  const insert = (writes: SQLInputValue) => connection.prepare(INSERT_ROW).run(SCHEME_PATH, writes, "");
  try {
    transact(connection, () => {
      const sql = "SELECT row_count FROM manifest WHERE path = ?";
      const writes = connection.prepare(sql).get(SCHEME_PATH)?.row_count ?? 0;
      connection.exec("DELETE FROM manifest");
      insert(writes);
    });
    return false;
  } catch (error) {
    if (!isDamaged(error)) throw error;
  }
  transact(connection, () => {
    const { tables } = connection.prepare("SELECT count(*) AS tables FROM sqlite_schema").get()!;
    const { sql } = connection.prepare("SELECT sql FROM sqlite_schema WHERE name = 'manifest'").get()!;
    connection.exec(`ALTER TABLE manifest RENAME TO ${DAMAGED_TABLE}${tables}; ${sql}`);
    // More than it can have been, because a database with fewer writes than before counts as an older copy.
    insert(Date.now());
  });
  return true;
}

function transact(connection: DatabaseSync, work: () => void): void {
  connection.exec("BEGIN IMMEDIATE");
  try {
    work();
    connection.exec("COMMIT");
  } catch (error) {
    if (connection.isTransaction) connection.exec("ROLLBACK");
    throw error;
  }
}

/** Sums the rows of queries of `path` and `entry`, by path. @throws SQLite's errors */
export function sumRows(
  key: string,
  connection: Pick<DatabaseSync, "prepare">,
  queries: { sql: string; params: string[] }[],
): Map<string, ManifestRow> {
  const items = new Map<string, ManifestRow>();
  for (const { sql, params } of queries) {
    const rows = connection.prepare(sql).iterate(...params) as Iterable<{ path: string; entry: string }>;
    for (const { path, entry } of rows) addTo(items, path, sumText(key, entry));
  }
  return items;
}

/** Sums the paths of items by folder, so that an item that vanished with its manifest is noticed. */
export function sumFolders(key: string, paths: Iterable<string>): Map<string, ManifestRow> {
  const folders = new Map<string, ManifestRow>();
  for (const path of paths) addTo(folders, getFolder(path), sumText(key, path));
  return folders;
}

function addTo(items: Map<string, ManifestRow>, path: string, sum: string): void {
  const item = items.get(path);
  if (item === undefined) items.set(path, { path, rowCount: 1, sum });
  else {
    item.rowCount++;
    item.sum = combineSums(item.sum, sum);
  }
}
