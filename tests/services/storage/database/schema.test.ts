import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { MIGRATIONS } from "../../../../services/storage/database/migrations.ts";
import { runChild, startChild } from "../../../helpers/processes/storage_child.ts";
import { filesBelow, tempFolder, testDatabase } from "../../../helpers/files/storage_folder.ts";
import { slowMigrations } from "../../../helpers/processes/storage_migrations.ts";

const DRAFT = { sql: "INSERT INTO draft(conversation_id, version, sealed) VALUES('c', 1, x'00')" };
const NEWEST = MIGRATIONS.length;

async function makeDatabase(path: string): Promise<void> {
  await using database = await testDatabase(path);
  await database.write([DRAFT]);
}

/** Returns the message of a refusal after checking that the file is unchanged. */
async function refusalOf(path: string, migrations = MIGRATIONS): Promise<string> {
  const before = await Deno.readFile(path);
  const error = await testDatabase(path, migrations).then(() => undefined, (thrown) => thrown);
  expect(error).toMatchObject({ code: "internal" });
  expect(await Deno.readFile(path)).toEqual(before);
  return error.message;
}

test("migrations count up from 1 without gaps", () => {
  expect(MIGRATIONS.map(({ version }) => version)).toEqual(MIGRATIONS.map((_, index) => index + 1));
});

test("creates all tables, WAL and the newest schema in a new database, without a copy", async () => {
  await using folder = await tempFolder();
  await using database = await testDatabase(folder.file("app.db"));
  const tables = database.all<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name");
  expect(tables.map(({ name }) => name)).toEqual([
    ...[
      "attachment",
      "attachment_ref",
      "block",
      "card_file",
      "card_tag",
      "change",
      "continuation",
      "conversation",
      "document",
      "document_file",
      "document_text",
      "document_use",
      "draft",
      "job",
      "manifest",
    ],
    ...["message", "message_queue", "reply", "reply_resume", "revision", "session", "setting", "stored_response"],
    ...["tool_call", "tool_permission", "trash", "unread", "variant"],
  ]);
  expect(database.get("PRAGMA user_version")).toEqual({ user_version: NEWEST });
  expect(database.get("PRAGMA journal_mode")).toEqual({ journal_mode: "wal" });
  expect((await filesBelow(folder.path)).filter((path) => path.includes("schema-"))).toEqual([]);
});

test("refuses two conversations whose ids differ only by case", async () => {
  await using folder = await tempFolder();
  await using database = await testDatabase(folder.file("app.db"));
  const insert = (id: string) => ({
    sql: `INSERT INTO conversation(id, revision, created_at, updated_at, message_count, head, summary)
      VALUES(?, 1, 0, 0, 0, x'', x'')`,
    params: [id],
  });
  await database.write([insert("Abc")]);
  await expect(database.write([insert("aBC")])).rejects.toMatchObject({ code: "conflict" });
});

test("an upgrade keeps the data and a copy of the old database", async () => {
  await using folder = await tempFolder();
  const path = folder.file("app.db");
  await makeDatabase(path);
  {
    await using database = await testDatabase(path, slowMigrations(10));
    expect(database.get("SELECT count(*) AS n FROM number")).toEqual({ n: 10 });
    expect(database.get("SELECT count(*) AS n FROM draft")).toEqual({ n: 1 });
    expect(database.get("PRAGMA user_version")).toEqual({ user_version: NEWEST + 1 });
  }
  await using copy = await testDatabase(`${path}.schema-${NEWEST}`);
  expect(copy.get("SELECT count(*) AS n FROM draft")).toEqual({ n: 1 });
  expect(copy.get("PRAGMA integrity_check")).toEqual({ integrity_check: "ok" });
});

test("the copy of an upgrade includes what was only in the log of a killed process", async () => {
  await using folder = await tempFolder();
  const path = folder.file("app.db");
  const child = startChild("storage_crash_child.ts", [path, "0"]);
  await child.lines.next();
  const { value: acknowledged } = await child.lines.next();
  await child.kill();
  await child.end();
  await (await testDatabase(path, slowMigrations(10))).close();
  await using copy = await testDatabase(`${path}.schema-${NEWEST}`);
  expect(copy.get("SELECT 1 AS found FROM setting WHERE key = ?", `n${acknowledged}`)).toEqual({ found: 1 });
});

test(
  "a failed or killed migration leaves the old schema, and the next start completes it",
  { tags: ["D05"], timeout: 180_000 },
  async () => {
    await using folder = await tempFolder();
    const path = folder.file("app.db");
    await makeDatabase(path);
    for (let round = 0; round < 3; round++) {
      const child = startChild("storage_migration_child.ts", [path, "20000000"]); // many seconds
      await untilFile(`${path}.schema-${NEWEST}`); // after the copy, the migration starts
      await child.kill();
      expect((await child.lines.next()).done, "the migration was through before the kill").toBe(true);
      await child.end();
      await Deno.remove(`${path}.schema-${NEWEST}`);
      await using database = await testDatabase(path);
      expect(database.get("PRAGMA user_version")).toEqual({ user_version: NEWEST });
      expect(database.all("SELECT name FROM sqlite_schema WHERE name = 'number'")).toEqual([]);
      expect(database.get("PRAGMA integrity_check")).toEqual({ integrity_check: "ok" });
      expect(database.get("SELECT count(*) AS n FROM draft")).toEqual({ n: 1 });
    }
    const broken = slowMigrations(10);
    broken.push({ version: NEWEST + 2, sql: "CREATE TABLE further(n); SELECT * FROM absent" });
    await expect(testDatabase(path, broken)).rejects.toMatchObject({
      message: expect.stringContaining("no such table"),
    });
    await (await testDatabase(path)).close();

    expect(await runChild("storage_migration_child.ts", [path, "1000"])).toEqual(["done"]);
    expect(await runChild("storage_migration_child.ts", [path, "1000"])).toEqual(["done"]); // run twice changes nothing
    const file = new DatabaseSync(path, { readOnly: true });
    expect(file.prepare("SELECT count(*) AS n FROM number").get()).toEqual({ n: 1000 });
    file.close();
  },
);

test("plays back a rollback journal that a power failure left in the first start", { tags: ["D05"] }, async () => {
  await using folder = await tempFolder();
  const path = folder.file("app.db");
  // A copy during the first transaction, before the write-ahead log is in use.
  const database = new DatabaseSync(folder.file("first"));
  database.exec("PRAGMA cache_size = 1; CREATE TABLE t(x); BEGIN; ");
  for (let i = 0; i < 50; i++) database.exec("INSERT INTO t VALUES(zeroblob(4000))");
  await Deno.copyFile(folder.file("first"), path);
  await Deno.copyFile(folder.file("first-journal"), `${path}-journal`);
  database.exec("ROLLBACK");
  database.close();
  await expect(testDatabase(path)).rejects.toMatchObject({ message: expect.stringContaining("another program") });
  expect(await filesBelow(folder.path)).not.toContain(`${path}-journal`);
});

test("refuses a newer database unchanged", { tags: ["D05"] }, async () => {
  await using folder = await tempFolder();
  const path = folder.file("app.db");
  await (await testDatabase(path, slowMigrations(10))).close();
  expect(await refusalOf(path)).toBe(
    `Can't open the database "${path}": it has schema version ${
      NEWEST + 1
    }, and this program supports versions up to ${NEWEST}. ` +
      "Start the newer program again",
  );
});

test(
  "refuses a newer database with a log, leaving file and log unchanged",
  { tags: ["D05"] },
  async () => {
    await using folder = await tempFolder();
    const path = folder.file("app.db");
    await makeDatabase(path);
    const holder = new DatabaseSync(path);
    holder.exec("PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = 99");
    const copied = folder.file("copied.db");
    for (const ending of ["", "-wal"]) await Deno.copyFile(path + ending, copied + ending);
    holder.close();
    const log = await Deno.readFile(`${copied}-wal`);
    expect(await refusalOf(copied)).toContain("it has schema version 99");
    expect(await Deno.readFile(`${copied}-wal`)).toEqual(log);
  },
);

test("refuses a database of another program unchanged", { tags: ["D05"] }, async () => {
  await using folder = await tempFolder();
  const path = folder.file("app.db");
  const other = new DatabaseSync(path);
  other.exec("CREATE TABLE bookmark(url TEXT)");
  other.close();
  expect(await refusalOf(path)).toContain("it's a database of another program");
});

test.each([
  ["no database", (bytes: Uint8Array) => bytes.fill(0x41)],
  ["a torn first page", (bytes: Uint8Array) => bytes.fill(0xff, 100, 4096)],
])("refuses a file with %s unchanged", { tags: ["D05"] }, async (_, damage) => {
  await using folder = await tempFolder();
  const path = folder.file("app.db");
  await makeDatabase(path);
  const bytes = await Deno.readFile(path);
  damage(bytes);
  await Deno.writeFile(path, bytes);
  expect(await refusalOf(path)).toMatch(
    /^Can't open the database ".*": the file is damaged \(.*\) and wasn't changed/,
  );
});

test(
  "a corrupt page fails only what needs it, and isn't overwritten",
  { tags: ["D05"] },
  async () => {
    await using folder = await tempFolder();
    const path = folder.file("app.db");
    await makeDatabase(path);
    const file = new DatabaseSync(path);
    const rootPage = Number(file.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'draft'").get()!.rootpage);
    file.close();
    const bytes = await Deno.readFile(path);
    bytes.fill(0xff, (rootPage - 1) * 4096, rootPage * 4096);
    await Deno.writeFile(path, bytes);
    {
      await using database = await testDatabase(path);
      expect(() => database.all("SELECT * FROM draft")).toThrow(/^Can't read the database ".*": the file is damaged/);
      await expect(database.write([{ sql: "UPDATE draft SET version = 2" }])).rejects.toMatchObject({
        code: "internal",
      });
      expect(database.all("SELECT * FROM setting")).toEqual([]);
    }
    expect(await Deno.readFile(path)).toEqual(bytes);
  },
);

test(
  "refuses an empty or missing file next to its log, because SQLite would discard the log",
  { tags: ["D05"] },
  async () => {
    await using folder = await tempFolder();
    const path = folder.file("app.db");
    await Deno.writeFile(`${path}-wal`, new Uint8Array(100));
    await expect(testDatabase(path)).rejects.toMatchObject({
      code: "internal",
      message: `Can't open the database "${path}": the file is missing but its log "${path}-wal" isn't`,
    });
    expect((await Deno.stat(`${path}-wal`)).size).toBe(100);
    await Deno.writeFile(path, new Uint8Array(0));
    expect(await refusalOf(path)).toContain("the file is empty but its log");
  },
);

test("refuses a database that another program has locked as a conflict", { tags: ["D05"] }, async () => {
  await using folder = await tempFolder();
  const path = folder.file("app.db");
  await makeDatabase(path);
  const other = new DatabaseSync(path);
  other.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; DELETE FROM trash");
  await expect(testDatabase(path)).rejects.toMatchObject({
    code: "conflict",
    message: `Can't open the database "${path}": another program has it locked`,
  });
  other.close();
  await (await testDatabase(path)).close();
});

test.skipIf(Deno.build.os === "windows")(
  "refuses a read-only folder with the reason",
  { tags: ["D05"] },
  async (context) => {
    await using folder = await tempFolder();
    const path = folder.file("data");
    await Deno.mkdir(path, { mode: 0o700 });
    await Deno.chmod(path, 0o500);
    // Root can write everywhere unless it drops its privileges.
    const prefix = Deno.uid() === 0 ? ["setpriv", "--bounding-set=-all"] : [];
    if (prefix.length > 0 && !await Deno.stat("/usr/bin/setpriv").then(() => true, () => false)) {
      console.warn("SKIPPED D05 read-only folder: root needs setpriv (util-linux) for it");
      return context.skip();
    }
    const [refusal] = await runChild("storage_lock_child.ts", [path], { prefix });
    expect(JSON.parse(refusal!)).toMatchObject({
      code: "forbidden",
      message: expect.stringMatching(
        /^Can't write to the data directory ".*" as uid \d+, because ".*" has mode 0500\./,
      ),
    });
    await Deno.chmod(path, 0o700);
    await makeDatabase(`${path}/app.db`);
    await Deno.writeTextFile(`${path}/lock`, "", { mode: 0o600 });
    await Deno.chmod(path, 0o500);
    const before = await Deno.readFile(`${path}/app.db`);
    const [second] = await runChild("storage_lock_child.ts", [path], { prefix });
    expect(JSON.parse(second!).message).toMatch(
      /^Can't open the database ".*": the file or its folder isn't writable/,
    );
    expect(await Deno.readFile(`${path}/app.db`)).toEqual(before);
    await Deno.chmod(path, 0o700);
  },
);

async function untilFile(path: string): Promise<void> {
  while (!await Deno.stat(path).then(() => true, () => false)) await new Promise((resolve) => setTimeout(resolve, 2));
}
