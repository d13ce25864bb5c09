/** Compares the schema of a database with the program's: a damaged one hides columns, indexes or whole tables. */
import { DatabaseSync } from "node:sqlite";
import { DAMAGED_TABLE } from "../storage/database/manifest.ts";
import { MIGRATIONS } from "../storage/database/migrations.ts";
import type { Damage } from "./damage.ts";
import { DATABASE } from "./tables.ts";

/** Path of damage of the schema. */
export const SCHEMA_PATH = `${DATABASE}/schema`;

/** Tables with their columns, indexes with theirs, and the text of the statements, in which only white space may differ. */
const QUERIES = [
  `SELECT t.name AS owner, c.name, c.type, c."notnull", c.dflt_value, c.pk, c.hidden
   FROM sqlite_schema AS t JOIN pragma_table_xinfo(t.name) AS c WHERE t.type = 'table' ORDER BY t.name, c.cid`,
  `SELECT i.tbl_name AS owner, i.name, c.name AS part, c.desc, c.coll, c.key
   FROM sqlite_schema AS i JOIN pragma_index_xinfo(i.name) AS c WHERE i.type = 'index' ORDER BY i.name, c.seqno`,
  `SELECT tbl_name AS owner, type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name`,
];

/** @throws SQLite's errors if the schema can't be read */
export function checkSchema(database: DatabaseSync): Damage[] {
  using expected = new DatabaseSync(":memory:");
  const version = Number(database.prepare("PRAGMA user_version").get()?.user_version);
  for (const migration of MIGRATIONS) if (migration.version <= version) expected.exec(migration.sql);
  const [found, wanted] = [database, expected].map((each) => JSON.stringify(listSchema(each)));
  return found === wanted ? [] : [{ path: SCHEMA_PATH, parts: ["schema"] }];
}

/** Lists the names of all tables. @throws SQLite's errors */
export function listTableNames(database: DatabaseSync): string[] {
  return database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all()
    .map(({ name }) => String(name)).filter(isOwn);
}

function listSchema(database: DatabaseSync): unknown[] {
  return QUERIES.map((query) =>
    database.prepare(query).all().filter(({ owner }) => isOwn(String(owner)))
      .map((row) => "sql" in row ? { ...row, sql: String(row.sql).replace(/\s+/g, " ") } : row)
  );
}

/** Tables of SQLite, of damage that was set aside, and of Litestream, which keeps two of its own in the database. */
const FOREIGN = ["sqlite_", DAMAGED_TABLE, "_litestream_"];

function isOwn(table: string): boolean {
  return !FOREIGN.some((prefix) => table.startsWith(prefix));
}
