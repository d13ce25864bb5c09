/** Saves what can be read of a damaged database into a new one. */
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { MIGRATIONS } from "../storage/database/migrations.ts";
import { type Damage, mergeDamages } from "./damage.ts";
import { DATABASE, getPathSql, readColumns, TABLES } from "./tables.ts";

type Row = Record<string, SQLInputValue>;

const ROWS_AT_ONCE = 64;

/**
 * Copies every row that can be read to a new database with the program's schema.
 *
 * @param to A file that doesn't exist yet.
 * @returns What is missing.
 * @throws SQLite's errors if the source can't be opened or the target can't be written.
 */
export function salvageDatabase(from: string, to: string): Damage[] {
  Deno.openSync(to, { write: true, createNew: true, mode: 0o600 }).close();
  using source = new DatabaseSync(from, { readOnly: true });
  using target = new DatabaseSync(to);
  const version = Number(source.prepare("PRAGMA user_version").get()?.user_version);
  const missing: Damage[] = [];
  target.exec("BEGIN");
  for (const migration of MIGRATIONS) if (migration.version <= version) target.exec(migration.sql);
  const tables = target.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .all();
  for (const { name } of tables) {
    const table = String(name);
    const columns = readColumns(target, table).all;
    const insert = target.prepare(
      `INSERT OR REPLACE INTO ${table} (${columns}) VALUES (${columns.map(() => "?")})`,
    );
    const take = (row: Row) => void insert.run(...columns.map((column) => row[column]!));
    missing.push(...copyRows(source, table, take));
  }
  target.exec(`COMMIT; PRAGMA user_version = ${version}`);
  return mergeDamages(missing);
}

function copyRows(source: DatabaseSync, table: string, take: (row: Row) => void): Damage[] {
  const { key } = readColumns(source, table);
  const query = (where: string, order: "ASC" | "DESC", params: SQLInputValue[], what = "*") =>
    source.prepare(
      `SELECT ${what} FROM ${table} WHERE ${where} ORDER BY ${
        key.map((name) => `${name} ${order}`)
      } LIMIT ${ROWS_AT_ONCE}`,
    ).all(...params) as Row[];
  /** Copies from one end until a page can't be read. @returns False if there is such a page */
  const copyFrom = (order: "ASC" | "DESC"): boolean => {
    let last: SQLInputValue[] | undefined;
    while (true) {
      const where = last === undefined ? "1" : `(${key}) ${order === "ASC" ? ">" : "<"} (${key.map(() => "?")})`;
      let rows: Row[];
      try {
        rows = query(where, order, last ?? []);
      } catch {
        return false;
      }
      for (const row of rows) take(row);
      if (rows.length < ROWS_AT_ONCE) return true;
      last = key.map((name) => rows.at(-1)![name]!);
    }
  };
  if (copyFrom("ASC")) return [];
  copyFrom("DESC");
  return copyOneByOne(source, table, key, take);
}

/** Goes through the primary key, which has its own pages unless the table has no row IDs. */
function copyOneByOne(source: DatabaseSync, table: string, key: string[], take: (row: Row) => void): Damage[] {
  const whole: Damage = { path: `${DATABASE}/${table}`, parts: ["pages"] };
  const missing: Damage[] = [];
  let keys: Row[];
  try {
    keys = source.prepare(`SELECT ${key} FROM ${table} ORDER BY ${key}`).all() as Row[];
  } catch {
    return [whole];
  }
  const where = key.map((name) => `${name} = ?`).join(" AND ");
  for (const each of keys) {
    const values = key.map((name) => each[name]!);
    try {
      const row = source.prepare(`SELECT * FROM ${table} WHERE ${where}`).get(...values) as Row | undefined;
      if (row === undefined) throw new Error("Its index has a row that the table lacks");
      take(row);
    } catch {
      missing.push(findDamage(source, table, where, values) ?? whole);
    }
  }
  return missing;
}

/** Finds the item of a row that can't be read, if the primary key has it. */
function findDamage(source: DatabaseSync, table: string, where: string, values: SQLInputValue[]): Damage | undefined {
  if (TABLES[table] === undefined) return undefined;
  try {
    const row = source.prepare(`SELECT ${getPathSql(table)} AS path FROM ${table} WHERE ${where}`).get(...values);
    return row?.path == null ? undefined : { path: String(row.path), parts: [table] };
  } catch {
    return undefined;
  }
}
