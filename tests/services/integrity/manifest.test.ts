/** Plain columns, removed rows and swapped rows: found by a pass, healed from a backup. */
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { createSealer } from "../../../services/crypto/sealer.ts";
import { ManifestCheck, planManifest } from "../../../services/integrity/manifest.ts";
import { checkAll } from "../../../services/integrity/pass.ts";
import { readColumns, TABLES } from "../../../services/integrity/tables.ts";
import { salvageDatabase } from "../../../services/integrity/salvage.ts";
import { openDatabase } from "../../../services/storage/database/database.ts";
import { checkDatabase, snapshotDatabase } from "../../../services/storage/database/sqlite.ts";
import { fillHouse } from "../../helpers/app/full_house.ts";
import { say } from "../../helpers/app/stored_chat.ts";
import { eventually } from "../../helpers/browser/ui_page.ts";
import { backUp } from "../../helpers/app/back_up.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";
import { openStoredDatabase } from "../../helpers/files/stored_database.ts";

/** Fills a page of the manifest with zeros: its only or first one, or its last one. */
async function damagePage(app: TestApp, which: "first" | "last"): Promise<void> {
  const path = `${app.dataDir}/app.db`;
  const { size, root } = inDatabase(app, (database) => ({
    size: Number(database.prepare("PRAGMA page_size").get()!.page_size),
    root: Number(database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'manifest'").get()!.rootpage),
  }));
  using file = await Deno.open(path, { read: true, write: true });
  const page = new Uint8Array(size);
  file.seekSync((root - 1) * size, Deno.SeekMode.Start);
  file.readSync(page);
  const view = new DataView(page.buffer);
  // https://www.sqlite.org/fileformat.html, "B-tree Pages": 2 is the type of a page that lists others.
  const isParent = page[0] === 2;
  const child = which === "last" ? view.getUint32(8) : view.getUint32(view.getUint16(12));
  file.seekSync(((isParent ? child : root) - 1) * size, Deno.SeekMode.Start);
  file.writeSync(new Uint8Array(size));
}

function inDatabase<T>(app: TestApp, work: (database: DatabaseSync) => T): T {
  using database = openStoredDatabase(app.dataDir);
  return work(database);
}

/** Changes the database as no service does. */
function change(app: TestApp, sql: string): void {
  using database = openStoredDatabase(app.dataDir);
  database.exec(`PRAGMA busy_timeout = 5000; ${sql}`);
}

async function findDamage(app: TestApp): Promise<string[]> {
  const sealer = createSealer(await Deno.readFile(`${app.dataDir}/storage-key`));
  const found: string[] = [];
  for await (const { damages } of checkAll({ dataDir: app.dataDir, sealer })) {
    found.push(...damages.map(({ path }) => path));
  }
  return [...new Set(found)].sort();
}

const restore = async (app: TestApp, path: string, more = {}) =>
  (await app.post("/api/data/unreadable/restore", { path, ...more })).status;

const readChat = async (app: TestApp) => await (await app.get("/api/conversations/c1")).json();

const CHANGES: [string, string, string][] = [
  ["a block's position", "UPDATE block SET position = position + 7 WHERE conversation_id = 'c1'", "conversations/c1"],
  ["a block that isn't live", "UPDATE block SET live = 0 WHERE conversation_id = 'c1'", "conversations/c1"],
  ["a number of messages", "UPDATE conversation SET message_count = 9 WHERE id = 'c1'", "conversations/c1"],
  ["a removed message", "DELETE FROM message WHERE conversation_id = 'c1' AND mid = 'm1'", "conversations/c1"],
  ["a removed draft", "DELETE FROM draft WHERE conversation_id = 'c1'", "conversations/c1"],
  [
    "swapped messages",
    "UPDATE message SET block_id = -block_id WHERE conversation_id = 'c1' AND mid = 'm0'",
    "conversations/c1",
  ],
  ["a removed lorebook", "DELETE FROM document WHERE id = 'book'", "lorebooks/book"],
  ["a time", "UPDATE document SET created_at = created_at + 1 WHERE id = 'book'", "lorebooks/book"],
];

test("changed columns and removed rows are found, and restored from a backup", async () => {
  await using home = await tempFolder();
  await using app = await openTestApp({ config: { backupDir: home.file("backups") } });
  await app.put("/api/conversations/c1", { title: "The pond", messages: [say("m0"), say("m1")] });
  await app.patch("/api/conversations/c1/draft", { draft: "half a thought" });
  await app.put("/api/lorebooks/book", { name: "Book", book: { entries: [] } });
  await backUp(app);
  const readAll = async () => [await readChat(app), await (await app.get("/api/lorebooks/book")).json()];
  const before = await readAll();
  for (const [what, sql, path] of CHANGES) {
    expect(await findDamage(app), what).toEqual([]);
    change(app, sql);
    expect(await findDamage(app), what).toEqual([path]);
    expect(await restore(app, path), what).toBe(200);
    expect(await readAll(), what).toEqual(before);
  }
  expect(await findDamage(app)).toEqual([]);
});

test("a row that is damaged among newer ones is restored alone", async () => {
  await using home = await tempFolder();
  await using app = await openTestApp({ config: { backupDir: home.file("backups") } });
  await app.put("/api/conversations/c1", { title: "The pond", messages: [say("m0"), say("m1")] });
  await app.patch("/api/conversations/c1/draft", { draft: "half a thought" });
  await backUp(app);
  await app.post("/api/conversations/c1/messages", { message: say("m2") });
  const before = await readChat(app);
  change(app, "UPDATE draft SET version = version + 4 WHERE conversation_id = 'c1'");
  change(app, "UPDATE message SET block_id = block_id + 900 WHERE conversation_id = 'c1' AND mid = 'm0'");
  expect(await findDamage(app)).toEqual(["conversations/c1"]);
  expect(await restore(app, "conversations/c1")).toBe(200);
  expect(await findDamage(app)).toEqual([]);
  expect(await readChat(app)).toEqual(before);
});

/** Columns of which a bit is flipped. */
const FLIPPED: [table: string, column: string, where: string, path: string][] = [
  ["conversation", "message_count", "id = 'c1'", "conversations/c1"],
  ["block", "position", "conversation_id = 'c1'", "conversations/c1"],
  ["message", "mid", "mid = 'm0'", "conversations/c1"],
  // Its sealed text is bound to it.
  ["draft", "version", "conversation_id = 'c1'", "conversations/c1"],
  ["document", "created_at", "id = 'book'", "lorebooks/book"],
  ["manifest", "sum", "path = 'lorebooks/book'", "lorebooks/book"],
];

/** Flips bits of a number, or of the first letter of a text. @returns The SQL */
function flip(app: TestApp, [table, column, where]: (typeof FLIPPED)[number], bits: number): string {
  const { value } = inDatabase(
    app,
    (database) => database.prepare(`SELECT ${column} AS value FROM ${table} WHERE ${where}`).get()!,
  );
  const flipped = typeof value === "string"
    ? `'${String.fromCharCode(value.charCodeAt(0) ^ bits)}${value.slice(1)}'`
    : String(BigInt(value as number) ^ BigInt(bits));
  return `PRAGMA ignore_check_constraints = ON; UPDATE ${table} SET ${column} = ${flipped} WHERE ${where}`;
}

test("a flipped bit in a column is put right without a backup, and more than one is not", async () => {
  await using app = await openTestApp();
  await app.put("/api/conversations/c1", { title: "The pond", messages: [say("m0"), say("n1")] });
  await app.patch("/api/conversations/c1/draft", { draft: "half a thought" });
  await app.put("/api/lorebooks/book", { name: "Book", book: { entries: [] } });
  const readAll = async () => [await readChat(app), await (await app.get("/api/lorebooks/book")).json()];
  const before = await readAll();
  for (const each of FLIPPED) {
    const [table, column, , path] = each;
    change(app, flip(app, each, 8));
    expect(await findDamage(app), `${table}.${column}`).toEqual([path]);
    const answer = await app.post("/api/data/unreadable/restore", { path });
    expect([answer.status, (await answer.json()).from], `${table}.${column}`).toEqual([200, "manifest"]);
    expect(await readAll(), `${table}.${column}`).toEqual(before);
    expect(await findDamage(app), `${table}.${column}`).toEqual([]);
  }
  change(app, flip(app, FLIPPED[0]!, 5));
  expect(await restore(app, "conversations/c1")).toBe(503);
});

test("an item that vanished with its line in the manifest is found, and so is one that the manifest lacks", async () => {
  await using app = await openTestApp();
  for (const id of ["one", "two"]) await app.put(`/api/lorebooks/${id}`, { name: id, book: { entries: [] } });
  change(app, "DELETE FROM manifest WHERE path = 'lorebooks/one'");
  expect(await findDamage(app)).toEqual(["database/manifest", "lorebooks/one"]);
  change(app, "DELETE FROM document WHERE id = 'one'");
  expect(await findDamage(app)).toEqual(["database/manifest"]);
});

test.each(
  [
    ["its only page", 1, "first"],
    ["the page with its start", 60, "first"],
    ["another page", 60, "last"],
  ] as const,
)("writing goes on if %s is damaged, and it is made again and said", async (_, count, which) => {
  await using home = await tempFolder();
  await using app = await openTestApp();
  for (let n = 0; n < count; n++) {
    await app.put(`/api/lorebooks/${n}${"-".repeat(90)}`, { name: "Book", book: { entries: [] } });
  }
  await app.put("/api/conversations/c1", { title: "The pond", messages: [say("m0")] });
  await app.restart(() => damagePage(app, which));
  expect((await app.patch("/api/settings", { display_name: "Ann" })).status).toBe(200);
  expect((await app.post("/api/conversations/c1/messages", { message: say("m1") })).status).toBe(201);
  expect((await readChat(app)).messages).toHaveLength(2);
  expect(await findDamage(app)).toEqual([]);
  const listCodes = async () =>
    (await (await app.get("/api/findings")).json()).map(({ code }: { code: string }) => code);
  expect(await eventually(listCodes, (codes) => codes.includes("manifest_remade"))).not.toContain("database_older");
  expect(app.logLines.filter((line) => line.includes("was damaged and made again"))).toHaveLength(1);

  // It's kept from then on, also by later starts, and a backup has a whole database.
  change(app, "UPDATE conversation SET message_count = 9 WHERE id = 'c1'");
  expect(await findDamage(app)).toEqual(["conversations/c1"]);
  change(app, "UPDATE conversation SET message_count = 2 WHERE id = 'c1'");
  await snapshotDatabase(`${app.dataDir}/app.db`, home.file("copy"));
  expect(salvageDatabase(home.file("copy"), home.file("whole"))).toEqual([]);
  checkDatabase(home.file("whole"));
  await app.restart();
  expect(await findDamage(app)).toEqual([]);
  expect(await listCodes()).not.toContain("database_older");
});

test("a pass that meets a damaged page of the manifest names it", async () => {
  await using app = await openTestApp();
  await app.put("/api/lorebooks/one", { name: "One", book: { entries: [] } });
  await app.restart(async () => {
    await damagePage(app, "first");
    expect(await findDamage(app)).toEqual(["database/manifest"]);
  });
  expect(await findDamage(app)).toEqual([]);
});

test("whatever services write keeps the manifest, in every table and through deletion", async () => {
  await using app = await openTestApp();
  await fillHouse(app);
  expect(await findDamage(app)).toEqual([]);
  const ids = (await (await app.get("/api/conversations")).json()).map(({ id }: { id: string }) => id);
  expect(ids.length).toBeGreaterThan(0);
  for (const id of ids) await app.delete(`/api/conversations/${id}`);
  expect((await app.delete("/api/trash")).status).toBe(204);
  expect(await findDamage(app)).toEqual([]);
  await app.restart();
  expect(await findDamage(app)).toEqual([]);
});

test("every plain column of every table counts", async () => {
  await using app = await openTestApp();
  await fillHouse(app);
  await app.restart(async () => {
    using database = openStoredDatabase(app.dataDir);
    database.exec("PRAGMA ignore_check_constraints = ON");
    const manifest = new ManifestCheck(database, createSealer(await Deno.readFile(`${app.dataDir}/storage-key`)));
    const paths = database.prepare("SELECT path FROM manifest WHERE instr(path, '/') > 0").all()
      .map(({ path }) => String(path));
    expect(manifest.checkItems(paths)).toEqual([]);
    for (const table of Object.keys(TABLES)) {
      const { plain } = readColumns(database, table);
      if (database.prepare(`SELECT 1 FROM ${table}`).get() === undefined) continue;
      for (const column of plain) {
        const [more, less] = ["x", 1_000_000].map((by) =>
          typeof by === "string"
            ? [`${column} || 'x'`, `substr(${column}, 1, length(${column}) - 1)`]
            : [`ifnull(${column}, 0) + ${by}`, `${column} - ${by}`]
        ).reduce(([texts, back], [numbers, less]) => [
          `CASE typeof(${column}) WHEN 'text' THEN ${texts} ELSE ${numbers} END`,
          `CASE typeof(${column}) WHEN 'text' THEN ${back} ELSE ${less} END`,
        ]);
        const change = (to: string) =>
          database.exec(
            `UPDATE ${table} SET ${column} = ${to} WHERE ${column} IS (SELECT max(${column}) FROM ${table})`,
          );
        change(more!);
        expect(manifest.checkItems(paths).length, `${table}.${column}`).toBeGreaterThan(0);
        change(less!);
      }
    }
  });
});

test("a folder of before gets its manifest with the first write, and a failed write changes nothing of it", async () => {
  await using app = await openTestApp();
  await app.put("/api/conversations/c1", { title: "The pond", messages: [say("m0")] });
  await app.restart(async () => {
    change(app, "DELETE FROM manifest; UPDATE conversation SET message_count = 1 WHERE id = 'c1'");
    expect(await findDamage(app)).toEqual([]);
    const sealer = createSealer(await Deno.readFile(`${app.dataDir}/storage-key`));
    const database = await openDatabase({
      path: `${app.dataDir}/app.db`,
      planManifest: (connection) => planManifest(connection, sealer),
    });
    const failing = database.write([
      { sql: "DELETE FROM message WHERE conversation_id = 'c1'" },
      { sql: "DELETE FROM draft WHERE conversation_id = 'nobody'", expectChanges: 1 },
    ]);
    await expect(failing).rejects.toMatchObject({ code: "conflict" });
    await database.close();
  });
  expect(await findDamage(app)).toEqual([]);
  change(app, "UPDATE conversation SET message_count = 2 WHERE id = 'c1'");
  expect(await findDamage(app)).toEqual(["conversations/c1"]);
});
