/** Opens every sealed value of a database, row by row, and names what can't be read. */
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { type Row, RowOpener } from "../backup/reseal_rows.ts";
import type { Sealer } from "../crypto/sealer.ts";
import { DATABASE, getPathSql, readColumns, type TableColumns, TABLES } from "./tables.ts";

/** A row that can't be read, or only in part. */
export interface LostRow {
  /** Path of its item. */
  path: string;
  table: string;
  /** Values of the primary key; empty if the rows of the table can't even be listed. */
  key: SQLInputValue[];
  /** The columns that can't be opened; empty if the whole row can't be read. */
  columns: string[];
}

/** Result of a step of a check. */
export interface RowStep {
  /** Sealed bytes that were read. */
  bytes: number;
  lost: LostRow[];
  /** Where to continue; `undefined` at the end of the table. */
  after: SQLInputValue[] | undefined;
}

const ROWS_AT_ONCE = 64;

/** Checks the rows of a database. */
export class RowCheck {
  readonly #database: DatabaseSync;
  readonly #opener: RowOpener;
  readonly #columns = new Map<string, TableColumns>();

  constructor(database: DatabaseSync, sealer: Sealer) {
    this.#database = database;
    this.#opener = new RowOpener(sealer);
  }

  /** Checks the next rows of a table. @param after Key of the last row before them */
  checkNext(table: string, after: SQLInputValue[] | undefined): RowStep {
    const { key } = this.getColumns(table);
    const where = after === undefined ? "1" : `(${key}) > (${key.map(() => "?")})`;
    return this.#check(table, `${where} ORDER BY ${key} LIMIT ${ROWS_AT_ONCE}`, after ?? [], key);
  }

  /** Checks the rows of one item in all tables. */
  checkItem(path: string): LostRow[] {
    const folder = path.slice(0, path.indexOf("/"));
    return Object.keys(TABLES).filter((table) => TABLES[table]!.folder === folder || TABLES[table]!.folder === "")
      .flatMap((table) => {
        const id = TABLES[table]!.id;
        if (id === undefined) return path === `${DATABASE}/${table}` ? this.checkTable(table) : [];
        if (TABLES[table]!.folder === "") return this.#check(table, `${getPathSql(table)} = ?`, [path]).lost;
        return this.#check(table, `${id} = ?`, [path.slice(folder.length + 1)]).lost;
      });
  }

  /** Checks a whole table. */
  checkTable(table: string): LostRow[] {
    const lost: LostRow[] = [];
    let after: SQLInputValue[] | undefined;
    do {
      const step = this.checkNext(table, after);
      lost.push(...step.lost);
      after = step.after;
    } while (after !== undefined);
    return lost;
  }

  /** Returns the columns of a table. */
  getColumns(table: string): TableColumns {
    let columns = this.#columns.get(table);
    if (columns === undefined) this.#columns.set(table, columns = readColumns(this.#database, table));
    return columns;
  }

  /** @param rest What follows `WHERE`. @param key Columns to continue by. */
  #check(table: string, rest: string, params: SQLInputValue[], key: string[] = []): RowStep {
    const path = getPathSql(table);
    try {
      const rows = this.#database.prepare(`SELECT *, ${path} AS "item path" FROM ${table} WHERE ${rest}`)
        .all(...params) as Row[];
      return this.#open(table, rows, key);
    } catch {
      return this.#checkOneByOne(table, rest, params, key);
    }
  }

  #open(table: string, rows: Row[], key: string[]): RowStep {
    const { sealed, key: primary } = this.getColumns(table);
    const lost: LostRow[] = [];
    let bytes = 0;
    for (const row of rows) {
      for (const column of sealed) bytes += (row[column] as Uint8Array | null)?.length ?? 0;
      const columns = sealed.length === 0 ? [] : this.#opener.listUnreadable(table, row);
      if (columns.length === 0) continue;
      lost.push({ path: String(row["item path"]), table, key: primary.map((name) => row[name]!), columns });
    }
    const last = rows.at(-1);
    const after = rows.length < ROWS_AT_ONCE || last === undefined ? undefined : key.map((name) => last[name]!);
    return { bytes, lost, after };
  }

  /** A page is damaged. The primary key has its own pages, unless the table has no row IDs. */
  #checkOneByOne(table: string, rest: string, params: SQLInputValue[], key: string[]): RowStep {
    const columns = this.getColumns(table);
    const isTable = (): RowStep => ({
      bytes: 0,
      lost: [{ path: `${DATABASE}/${table}`, table, key: [], columns: [] }],
      after: undefined,
    });
    let keys: Row[];
    try {
      keys = this.#database.prepare(`SELECT ${columns.key} FROM ${table} WHERE ${rest}`).all(...params) as Row[];
    } catch {
      return isTable();
    }
    const step: RowStep = { bytes: 0, lost: [], after: undefined };
    for (const row of keys) {
      const values = columns.key.map((name) => row[name]!);
      const where = columns.key.map((name) => `${name} = ?`).join(" AND ");
      const path = getPathSql(table);
      try {
        const found = this.#database.prepare(`SELECT *, ${path} AS "item path" FROM ${table} WHERE ${where}`)
          .all(...values) as Row[];
        if (found.length === 0) throw new Error("Its index has a row that the table lacks");
        const { bytes, lost } = this.#open(table, found, []);
        step.bytes += bytes;
        step.lost.push(...lost);
      } catch {
        step.lost.push({ path: this.#findPath(table, where, values), table, key: values, columns: [] });
      }
    }
    const last = keys.at(-1);
    if (key.length > 0 && keys.length === ROWS_AT_ONCE) step.after = key.map((name) => last![name]!);
    return step;
  }

  /** Finds the item of a row that can't be read, if an index has it. */
  #findPath(table: string, where: string, values: SQLInputValue[]): string {
    try {
      const row = this.#database.prepare(`SELECT ${getPathSql(table)} AS path FROM ${table} WHERE ${where}`)
        .get(...values);
      if (row?.path != null) return String(row.path);
    } catch {
      // The path needs the damaged page.
    }
    return `${DATABASE}/${table}`;
  }
}
