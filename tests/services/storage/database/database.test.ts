import { expect, test } from "vitest";
import { AppError } from "../../../../services/errors.ts";
import type { SqlValue } from "../../../../services/storage/database/database.ts";
import { openWriter } from "../../../../services/storage/database/writer.ts";
import { tempFolder, testDatabase } from "../../../helpers/files/storage_folder.ts";

const insert = (id: string, sealed: Uint8Array = new Uint8Array([1])) => ({
  sql: "INSERT INTO draft(conversation_id, version, sealed) VALUES(?, 1, ?)",
  params: [id, sealed],
});
const idsOf = (rows: { conversation_id: string }[]) => rows.map((row) => row.conversation_id);
const IDS = "SELECT conversation_id FROM draft ORDER BY conversation_id";

test("reads see every write that has resolved", async () => {
  await using folder = await tempFolder();
  await using database = await testDatabase(folder.file("app.db"));
  for (let n = 0; n < 50; n++) {
    expect(database.get("SELECT 1 FROM draft WHERE conversation_id = ?", String(n))).toBeUndefined();
    const [result] = await database.write([insert(String(n))]);
    expect(result).toEqual({ changes: 1, lastInsertRowid: n + 1 });
    expect(database.get<{ n: number }>("SELECT count(*) AS n FROM draft")?.n).toBe(n + 1);
  }
});

test("stores every kind of value unchanged", async () => {
  await using folder = await tempFolder();
  await using database = await testDatabase(folder.file("app.db"), [
    { version: 1, sql: "CREATE TABLE thing(n INTEGER PRIMARY KEY, value ANY) STRICT" },
  ]);
  const whole = crypto.getRandomValues(new Uint8Array(50_000));
  const values: SqlValue[] = ["", "tëxt 🦆 end", 0, -1.5, 2 ** 53 - 1, 12n, null, new Uint8Array(0), whole];
  await database.write(values.map((value) => ({ sql: "INSERT INTO thing(value) VALUES(?)", params: [value] })));
  const back = database.all<{ value: SqlValue }>("SELECT value FROM thing ORDER BY n").map(({ value }) => value);
  expect(back).toEqual(values.map((value) => typeof value === "bigint" ? Number(value) : value));
});

test("writes a view of a larger buffer alone and leaves the caller's buffers usable", async () => {
  await using folder = await tempFolder();
  await using database = await testDatabase(folder.file("app.db"));
  const large = new Uint8Array(1000).map((_, index) => index % 251);
  const own = new Uint8Array([5, 6]);
  await database.write([insert("part", large.subarray(10, 14)), insert("own", own)]);
  const sealedOf = (id: string) => database.get("SELECT sealed FROM draft WHERE conversation_id = ?", id);
  expect(sealedOf("part")).toEqual({ sealed: new Uint8Array([10, 11, 12, 13]) });
  expect(sealedOf("own")).toEqual({ sealed: new Uint8Array([5, 6]) });
  expect([large.byteLength, own.byteLength]).toEqual([1000, 2]);
});

test("writes a unit completely or not at all, without affecting other units of its group", async () => {
  await using folder = await tempFolder();
  await using database = await testDatabase(folder.file("app.db"));
  const outcomes = await Promise.allSettled([
    database.write([insert("a")]),
    database.write([insert("b"), insert("a")]),
    database.write([insert("c"), { sql: "UPDATE absent SET x = 1" }]),
    database.write([insert("d"), { sql: "UPDATE draft SET version = 2", expectChanges: 17 }]),
    database.write([insert("e"), insert("f")]),
    database.write([{
      sql: "UPDATE draft SET version = 9 WHERE conversation_id = ?",
      params: ["e"],
      expectChanges: 1,
    }]),
  ]);
  expect(outcomes.map((outcome) => outcome.status === "rejected" ? outcome.reason.code : "written"))
    .toEqual(["written", "conflict", "internal", "conflict", "written", "written"]);
  expect(idsOf(database.all(IDS))).toEqual(["a", "e", "f"]);
  expect(database.get("SELECT version FROM draft WHERE conversation_id = 'e'")).toEqual({ version: 9 });
});

test("leaves nothing of a single unit that fails", async () => {
  await using folder = await tempFolder();
  await using database = await testDatabase(folder.file("app.db"));
  await expect(database.write([insert("a"), { ...insert("b"), expectChanges: 0 }])).rejects.toMatchObject({
    code: "conflict",
    message: "Can't write to the database: changed 1 rows instead of 0",
  });
  await expect(database.write([insert("a"), insert("a")])).rejects.toMatchObject({ code: "conflict" });
  expect(database.all(IDS)).toEqual([]);
  await database.write([insert("a")]);
  expect(idsOf(database.all(IDS))).toEqual(["a"]);
});

test("a unit can't end the transaction of its group", async () => {
  await using folder = await tempFolder();
  await using database = await testDatabase(folder.file("app.db"));
  const outcomes = await Promise.allSettled([
    database.write([insert("a")]),
    database.write([{ sql: "ROLLBACK" }]),
    database.write([insert("b")]),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(idsOf(database.all(IDS))).toEqual(["a", "b"]);
});

test("a reused statement doesn't see values of an earlier call", async () => {
  await using folder = await tempFolder();
  await using database = await testDatabase(folder.file("app.db"));
  await database.write([insert("a")]);
  await expect(database.write([{ sql: insert("b").sql, params: ["b"] }])).rejects.toMatchObject({ code: "internal" });
  expect(idsOf(database.all(IDS))).toEqual(["a"]);
});

test("writes 10,000 concurrent units in order", async () => {
  await using folder = await tempFolder();
  await using database = await testDatabase(folder.file("app.db"));
  const results = await Promise.all(Array.from({ length: 10_000 }, (_, n) => database.write([insert(String(n))])));
  expect(results.map(([result]) => result!.lastInsertRowid)).toEqual(results.map((_, n) => n + 1));
});

test("an iteration keeps its snapshot while other reads see later writes", async () => {
  await using folder = await tempFolder();
  await using database = await testDatabase(folder.file("app.db"));
  await database.write(["a", "b", "c"].map((id) => insert(id)));
  const seen: string[] = [];
  for (const row of database.iterate<{ conversation_id: string }>(IDS)) {
    seen.push(row.conversation_id);
    await database.write([insert(`later ${row.conversation_id}`)]);
    expect(database.get<{ n: number }>("SELECT count(*) AS n FROM draft")?.n).toBe(3 + seen.length);
  }
  expect(seen).toEqual(["a", "b", "c"]);
});

test("two iterations of one query don't disturb each other, and one left early releases the log", async () => {
  await using folder = await tempFolder();
  await using database = await testDatabase(folder.file("app.db"));
  await database.write(["a", "b", "c"].map((id) => insert(id)));
  const rows = database.iterate<{ conversation_id: string }>(IDS);
  const pairs: string[] = [];
  for (const outer of rows) {
    for (const inner of rows) pairs.push(outer.conversation_id + inner.conversation_id);
  }
  expect(pairs.join(" ")).toBe("aa ab ac ba bb bc ca cb cc");
  for (const _ of rows) break;
  await database.write([insert("d")]);
  const other = new (await import("node:sqlite")).DatabaseSync(folder.file("app.db"));
  expect(other.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get()).toEqual({ busy: 0, log: 0, checkpointed: 0 });
  other.close();
});

test("the reading connection can't write", async () => {
  await using folder = await tempFolder();
  await using database = await testDatabase(folder.file("app.db"));
  expect(() => database.all("DELETE FROM draft")).toThrow(AppError);
  expect(() => database.get("SELECT * FROM absent")).toThrow(
    /^Can't read the database ".*app.db": no such table: absent$/,
  );
});

test("closing waits for earlier writes, empties the log and refuses later writes", async () => {
  await using folder = await tempFolder();
  const path = folder.file("app.db");
  const database = await testDatabase(path);
  const writes = Array.from({ length: 100 }, (_, n) => database.write([insert(String(n))]));
  await Promise.all([database.close(), database.close()]);
  await Promise.all(writes);
  await expect(database.write([insert("late")])).rejects.toMatchObject({ code: "internal" });
  expect(() => database.all(IDS)).toThrow("it's closed");
  expect((await Array.fromAsync(Deno.readDir(folder.path))).map(({ name }) => name)).toEqual(["app.db"]);
  await using again = await testDatabase(path);
  expect(again.all(IDS)).toHaveLength(100);
});

test("rejects pending writes when the writer dies; the process and the next write are unharmed", {
  tags: ["L05"],
}, async () => {
  await using folder = await tempFolder();
  const path = folder.file("app.db");
  await (await testDatabase(path)).close();
  const programs = [
    "../../../helpers/processes/storage_broken_worker.ts",
    "../../../../services/storage/database/writer_worker.ts",
  ];
  const writer = openWriter({
    path,
    startWorker: () => new Worker(new URL(programs.shift()!, import.meta.url), { type: "module" }),
  });
  const outcomes = await Promise.allSettled([writer.write([insert("a")]), writer.write([insert("b")])]);
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({
      reason: {
        code: "internal",
        message: expect.stringMatching(/^Can't write to the database: the writer has ended/),
      },
    });
  }
  await writer.write([insert("c")]);
  await writer.close();
  await using database = await testDatabase(path);
  expect(idsOf(database.all(IDS))).toEqual(["c"]);
});

test.each([
  ["a function", () => 1],
  ["undefined", undefined],
  ["a boolean", true],
  ["NaN", NaN],
  ["a text that would come back cut", "a\0b"],
  ["an unpaired surrogate", "\ud83e"],
])("refuses %s as a value without affecting other writes", async (_, value) => {
  await using folder = await tempFolder();
  await using database = await testDatabase(folder.file("app.db"));
  const wrong = { sql: insert("a").sql, params: [value as never, new Uint8Array(1)] };
  const outcomes = await Promise.allSettled([database.write([wrong]), database.write([insert("b")])]);
  expect(outcomes[0]).toMatchObject({
    reason: { code: "internal", message: expect.stringContaining('value 1 of "INSERT INTO draft') },
  });
  expect(idsOf(database.all(IDS))).toEqual(["b"]);
});
