/** Compares the plain columns of all rows with the manifest, which the database's writer keeps. */
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { Buffer } from "node:buffer";
import type { Row } from "../backup/reseal_rows.ts";
import type { Sealer } from "../crypto/sealer.ts";
import {
  combineSums,
  type ManifestPlan,
  type ManifestRow,
  SCHEME_PATH,
  sumFolders,
  sumRows,
  sumText,
} from "../storage/database/manifest.ts";
import { isDamaged } from "../storage/database/sqlite.ts";
import { createStatementCache, type Statement, type StatementCache } from "../storage/database/writer.ts";
import type { Damage } from "./damage.ts";
import { DATABASE, getPathSql, readColumns, type TableColumns, TABLES } from "./tables.ts";

/** Path of damage that concerns the list of all items of a kind. */
const MANIFEST_PATH = `${DATABASE}/manifest`;

/** A part of `Damage`: plain columns were changed, or rows were added or removed. */
const MANIFEST_PART = "manifest";

const ITEMS_AT_ONCE = 32;
const MAX_UNLISTED = 20;

/** Derives the secret of the sums. */
function deriveKey(sealer: Sealer): string {
  return Buffer.from(sealer.forPurpose("manifest").copyKey()).toString("hex");
}

/** Returns the SQL of the text of a row's plain columns. */
function getEntrySql(table: string, columns: readonly string[], row = ""): string {
  return [`'${table}'`, ...columns.map((column) => `quote(${row}${column})`)].join(" || ',' || ");
}

/** The plan for a database with the program's schema. @throws SQLite's errors */
export function planManifest(database: DatabaseSync, sealer: Sealer): ManifestPlan {
  const key = deriveKey(sealer);
  const tables = Object.keys(TABLES).map((name) => ({ name, plain: readColumns(database, name).plain }));
  const queries = tables.map(({ name, plain }) =>
    `SELECT ${getPathSql(name)} AS path, ${getEntrySql(name, plain)} AS entry FROM ${name}`
  );
  const triggers = tables.flatMap(({ name, plain }) => listTriggers(name, plain));
  // Another version of SQLite may write numbers in another way.
  const version = String(database.prepare("SELECT sqlite_version() AS version").get()?.version);
  return { key, scheme: sumText(key, [version, ...queries].join("\n")), queries, triggers };
}

function listTriggers(table: string, plain: readonly string[]): string[] {
  const [path, oldPath] = [getPathSql(table, "NEW."), getPathSql(table, "OLD.")];
  const [entry, oldEntry] = [getEntrySql(table, plain, "NEW."), getEntrySql(table, plain, "OLD.")];
  const add = `SELECT manifest_change(${path}, NULL, ${entry});`;
  const remove = TABLES[table]!.isHead === true
    ? `SELECT manifest_remove(${oldPath});`
    : `SELECT manifest_change(${oldPath}, ${oldEntry}, NULL);`;
  const update = `SELECT manifest_change(${path}, ${oldEntry}, ${entry});`;
  const create = (name: string, event: string, body: string) =>
    `CREATE TEMP TRIGGER manifest_${name}_${table} AFTER ${event} BEGIN ${body} END`;
  const updateOf = `UPDATE OF ${plain} ON main.${table} WHEN ${oldPath}`;
  return [
    create("insert", `INSERT ON main.${table}`, add),
    create("delete", `DELETE ON main.${table}`, remove),
    create("update", `${updateOf} = ${path}`, update),
    create("move", `${updateOf} <> ${path}`, remove + add),
  ];
}

/** Returns the statement that makes the manifest of an item match its rows. It's the last of a unit of the writer. */
export function acceptRows(database: DatabaseSync, path: string): Statement {
  const entries = listTables(path).map((table) => {
    const { where } = getItemSql(table, path, "(SELECT id FROM item)", "(SELECT path FROM item)");
    return `SELECT ${getEntrySql(table, readColumns(database, table).plain)} AS entry FROM ${table} WHERE ${where}`;
  });
  const sql = `WITH item(path, id) AS (VALUES (?, ?)), entries AS (${entries.join(" UNION ALL ")})
    SELECT manifest_accept((SELECT path FROM item), (SELECT group_concat(entry, char(0)) FROM entries))`;
  return { sql, params: [path, path.slice(path.indexOf("/") + 1)] };
}

/** Lists the tables that can have rows of an item. */
function listTables(path: string): string[] {
  const [folder, name] = path.split("/", 2);
  return Object.keys(TABLES).filter((table) => {
    const owner = TABLES[table]!;
    return owner.id === undefined
      ? folder === DATABASE && table === name
      : owner.folder === folder || owner.folder === "";
  });
}

/** Returns the condition for the rows of an item: by its ID, which has an index, if the ID alone says it. */
function getItemSql(table: string, path: string, id = "?", wholePath = "?"): { where: string; params: string[] } {
  const owner = TABLES[table]!;
  if (owner.id === undefined) return { where: "1", params: [] };
  if (owner.folder === "") return { where: `${getPathSql(table)} = ${wholePath}`, params: [path] };
  return { where: `${owner.id} = ${id}`, params: [path.slice(path.indexOf("/") + 1)] };
}

/** A row with the sum of its plain columns. */
export interface SummedRow {
  table: string;
  /** Values of the primary key. */
  key: SQLInputValue[];
  sum: string;
  row: Row;
}

/** How the rows of an item differ from the manifest. */
export interface ManifestDifference {
  /** How many rows are missing; negative if there are too many. */
  rowCount: number;
  /** What has to be added to the sum of the rows. */
  sum: string;
  /** True if the manifest itself has one wrong bit: a sum of other rows would differ in half of its bits. */
  isOneBit: boolean;
}

/** Result of a step. */
export interface ManifestStep {
  damages: Damage[];
  /** Where to continue; `undefined` at the end. */
  after: string | undefined;
}

/** Compares rows with the manifest. */
export class ManifestCheck {
  readonly #database: DatabaseSync;
  /** Prepares each statement once: a pass has thousands of steps. */
  readonly #statements: StatementCache;
  readonly #columns = new Map<string, TableColumns>();
  readonly #key: string;
  readonly #isKept: boolean;
  /** Damage of the manifest itself. */
  readonly #own: Damage[] = [];

  /** @throws SQLite's errors */
  constructor(database: DatabaseSync, sealer: Sealer) {
    this.#database = database;
    this.#statements = createStatementCache(database);
    this.#key = deriveKey(sealer);
    try {
      this.#isKept = this.#hasManifest(sealer);
    } catch (error) {
      if (!isDamaged(error)) throw error;
      this.#isKept = false;
      this.#own = [{ path: MANIFEST_PATH, parts: [MANIFEST_PART] }];
    }
  }

  /** True for a database that has been written with this schema and key. */
  #hasManifest(sealer: Sealer): boolean {
    const hasTables = Object.keys(TABLES).every((table) => readColumns(this.#database, table).all.length > 0);
    if (!hasTables || readColumns(this.#database, "manifest").all.length === 0) return false;
    const kept = this.#database.prepare("SELECT sum FROM manifest WHERE path = ?").get(SCHEME_PATH)?.sum;
    return kept === planManifest(this.#database, sealer).scheme;
  }

  /** Checks the next items. */
  checkNext(after = ""): ManifestStep {
    if (!this.#isKept) return { damages: this.#own, after: undefined };
    try {
      const paths = this.#statements.prepare(
        `SELECT path FROM manifest WHERE path > ? AND instr(path, '/') > 0 ORDER BY path LIMIT ${ITEMS_AT_ONCE}`,
      ).all(after).map(({ path }) => String(path));
      const isLast = paths.length < ITEMS_AT_ONCE;
      return { damages: this.checkItems(paths), after: isLast ? undefined : paths.at(-1) };
    } catch {
      return { damages: [{ path: MANIFEST_PATH, parts: [MANIFEST_PART] }], after: undefined };
    }
  }

  /** Checks single items. */
  checkItems(paths: readonly string[]): Damage[] {
    if (!this.#isKept) return this.#own.filter(({ path }) => paths.includes(path));
    const items = paths.filter((path) => path !== MANIFEST_PATH);
    const damages = this.#read(() => this.#compare(items), items);
    return paths.includes(MANIFEST_PATH) ? [...damages, ...this.checkFolders()] : damages;
  }

  /** Checks whether the manifest itself is whole: each item is in it, and nothing vanished from it. */
  checkFolders(): Damage[] {
    if (!this.#isKept) return this.#own;
    try {
      return this.#snapshot(() => {
        const all = this.#database.prepare("SELECT path, row_count AS rowCount, sum FROM manifest WHERE path <> ?")
          .all(SCHEME_PATH) as unknown as ManifestRow[];
        const items = all.filter(({ path }) => path.includes("/")).map(({ path }) => path);
        const folders = all.filter(({ path }) => !path.includes("/"));
        const found = sumFolders(this.#key, items);
        const isWhole = folders.length === found.size && folders.every((row) => isSame(row, found.get(row.path)));
        const unlisted = Object.keys(TABLES).filter((table) => TABLES[table]!.isHead).flatMap((table) =>
          this.#database.prepare(
            `SELECT item FROM (SELECT ${getPathSql(table)} AS item FROM ${table})
             WHERE NOT EXISTS (SELECT 1 FROM manifest WHERE path = item) LIMIT ${MAX_UNLISTED}`,
          ).all().map(({ item }) => String(item))
        );
        const damaged = isWhole ? unlisted : [MANIFEST_PATH, ...unlisted];
        return damaged.map((path) => ({ path, parts: [MANIFEST_PART] }));
      });
    } catch {
      return [{ path: MANIFEST_PATH, parts: [MANIFEST_PART] }];
    }
  }

  /** Returns how an item's rows differ from the manifest; `undefined` if it can't tell. */
  getDifference(path: string): ManifestDifference | undefined {
    if (!this.#isKept) return undefined;
    return this.#snapshot(() => {
      const listed = this.#listItems([path]).get(path) ?? { path, rowCount: 0, sum: "" };
      const found = this.#sumItems([path]).get(path) ?? { path, rowCount: 0, sum: "" };
      return {
        rowCount: listed.rowCount - found.rowCount,
        sum: combineSums(listed.sum, found.sum),
        isOneBit: isOneBit(listed, found),
      };
    });
  }

  /**
   * Reports whether a row would make its item match the manifest.
   *
   * @param entry Its table, then its plain columns as `quote` of SQLite writes them. @param sum That of the row as it is
   * @param difference That of its item
   */
  isSumOf(entry: readonly string[], sum: string, difference: string): boolean {
    return sumText(this.#key, entry.join(",")) === combineSums(sum, difference);
  }

  /** Lists the rows of an item with their sums. @param database This one, or a copy of an earlier state */
  listRows(database: DatabaseSync, path: string): SummedRow[] {
    return listTables(path).flatMap((table) => {
      const { plain, key } = readColumns(database, table);
      const { where, params } = getItemSql(table, path);
      const query = `SELECT *, ${getEntrySql(table, plain)} AS "manifest entry" FROM ${table} WHERE ${where}`;
      return database.prepare(query).all(...params).map(({ "manifest entry": entry, ...row }) => ({
        table,
        key: key.map((name) => row[name]!),
        sum: sumText(this.#key, String(entry)),
        row: row as Row,
      }));
    });
  }

  #compare(paths: readonly string[]): Damage[] {
    const listed = this.#listItems(paths);
    const found = this.#sumItems(paths);
    return paths.filter((path) => !isSame(listed.get(path), found.get(path)))
      .map((path) => ({ path, parts: [MANIFEST_PART] }));
  }

  #listItems(paths: readonly string[]): Map<string, ManifestRow> {
    const rows = this.#statements.prepare(
      "SELECT path, row_count AS rowCount, sum FROM manifest WHERE path IN (SELECT value FROM json_each(?))",
    ).all(JSON.stringify(paths)) as unknown as ManifestRow[];
    return new Map(rows.map((row) => [row.path, row]));
  }

  #sumItems(paths: readonly string[]): Map<string, ManifestRow> {
    const byFolder = Map.groupBy(paths, (path) => path.slice(0, path.indexOf("/")));
    const queries = [...byFolder].flatMap(([folder, items]) =>
      [...new Set(items.flatMap(listTables))].map((table) => {
        const { id, folder: own } = TABLES[table]!;
        const entry = getEntrySql(table, this.#getPlainColumns(table));
        const select = `SELECT ${getPathSql(table)} AS path, ${entry} AS entry FROM ${table}`;
        if (id === undefined) return { sql: select, params: [] };
        const [column, values] = own === ""
          ? [getPathSql(table), items]
          : [id, items.map((path) => path.slice(folder.length + 1))];
        return {
          sql: `${select} WHERE ${column} IN (SELECT value FROM json_each(?))`,
          params: [JSON.stringify(values)],
        };
      })
    );
    return sumRows(this.#key, this.#statements, queries);
  }

  #getPlainColumns(table: string): string[] {
    let columns = this.#columns.get(table);
    if (columns === undefined) this.#columns.set(table, columns = readColumns(this.#database, table));
    return columns.plain;
  }

  /** A row that can't be read differs. */
  #read(read: () => Damage[], paths: readonly string[]): Damage[] {
    try {
      return this.#snapshot(read);
    } catch {
      if (paths.length === 1) return [{ path: paths[0]!, parts: [MANIFEST_PART] }];
      return paths.flatMap((path) => this.checkItems([path]));
    }
  }

  /** All reads see the same state. */
  #snapshot<T>(read: () => T): T {
    this.#database.exec("BEGIN");
    try {
      return read();
    } finally {
      this.#database.exec("COMMIT");
    }
  }
}

function isOneBit(a: ManifestRow, b: ManifestRow): boolean {
  if (a.sum === b.sum) return countBits(a.rowCount ^ b.rowCount) === 1;
  if (a.rowCount !== b.rowCount || a.sum.length !== b.sum.length) return false;
  let bits = 0;
  for (let i = 0; i < a.sum.length; i++) bits += countBits(a.sum.charCodeAt(i) ^ b.sum.charCodeAt(i));
  return bits === 1;
}

function countBits(value: number): number {
  let bits = 0;
  for (let rest = value >>> 0; rest !== 0; rest &= rest - 1) bits++;
  return bits;
}

function isSame(a: ManifestRow | undefined, b: ManifestRow | undefined): boolean {
  return (a?.rowCount ?? 0) === (b?.rowCount ?? 0) && (a?.sum ?? "") === (b?.sum ?? "");
}
