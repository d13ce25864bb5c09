import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { checkItems } from "../../../services/integrity/pass.ts";
import { createSealer } from "../../../services/crypto/sealer.ts";
import { checkSchema, SCHEMA_PATH } from "../../../services/integrity/schema_check.ts";
import { MIGRATIONS } from "../../../services/storage/database/migrations.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";

function createDatabase(path = ":memory:", version = Infinity): DatabaseSync {
  const database = new DatabaseSync(path);
  for (const migration of MIGRATIONS) {
    if (migration.version <= version) database.exec(`${migration.sql}; PRAGMA user_version = ${migration.version}`);
  }
  return database;
}

/** Makes a table again, with other white space. */
const DRAFT_AGAIN = `DROP TABLE draft;
  CREATE TABLE draft(
    conversation_id TEXT PRIMARY KEY,
    version INTEGER NOT NULL, sealed BLOB NOT NULL
  ) STRICT`;

test.each([
  ["a missing table", "DROP TABLE revision"],
  ["a table too many", "CREATE TABLE revisioo(a TEXT)"],
  ["another name of a column", "ALTER TABLE draft RENAME COLUMN version TO versioo"],
  [
    "another letter case in its text",
    DRAFT_AGAIN.replace("sealed BLOB NOT NULL", "sealed BLOB NOT nULL"),
  ],
  ["a missing index", "DROP INDEX block_by_position"],
  [
    "an index of another column",
    "DROP INDEX block_by_position; CREATE INDEX block_by_position ON block(position)",
  ],
])("%s is damage of the schema", async (_, sql) => {
  await using home = await tempFolder();
  using database = createDatabase(home.file("app.db"));
  expect(checkSchema(database)).toEqual([]);
  database.exec(sql);
  const damages = [{ path: SCHEMA_PATH, parts: ["schema"] }];
  expect(checkSchema(database)).toEqual(damages);
  const data = { dataDir: home.path, sealer: createSealer(new Uint8Array(32)) };
  expect(await checkItems(data, [SCHEMA_PATH])).toEqual(damages);
});

test("the schema of an earlier version, a table that was put aside, and the tables of Litestream are no damage", () => {
  using earlier = createDatabase(":memory:", MIGRATIONS.at(-2)!.version);
  expect(checkSchema(earlier)).toEqual([]);
  using aside = createDatabase();
  aside.exec("CREATE TABLE manifest_damaged_9(path TEXT PRIMARY KEY) STRICT");
  expect(checkSchema(aside)).toEqual([]);
  using replicated = createDatabase();
  // https://github.com/benbjohnson/litestream/blob/v0.5.17/db.go
  replicated.exec(
    "CREATE TABLE _litestream_seq(id INTEGER PRIMARY KEY, seq INTEGER); CREATE TABLE _litestream_lock(id INTEGER)",
  );
  expect(checkSchema(replicated)).toEqual([]);
});

test("other white space in the schema's text is no damage", () => {
  using database = createDatabase();
  database.exec(DRAFT_AGAIN);
  expect(checkSchema(database)).toEqual([]);
});
