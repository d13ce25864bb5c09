import { afterEach, beforeEach, expect, test } from "vitest";
import { randomBytes } from "node:crypto";
import { createSealer } from "../../../../services/crypto/sealer.ts";
import { DocumentStore } from "../../../../services/storage/documents/document_store.ts";
import { createEventHub } from "../../../../services/events/event_hub.ts";
import { type Database, openDatabase } from "../../../../services/storage/database/database.ts";
import { Trash } from "../../../../services/storage/trash.ts";

interface Head {
  title: string;
}
interface Body {
  text: string;
}
import { expireByClock } from "../../../helpers/app/pass_time.ts";

const key = new Uint8Array(randomBytes(32));
let folder: string;
let db: Database;
let trash: Trash;
let store: DocumentStore<Head, Body>;
let nowMs: number;

async function open(): Promise<void> {
  db = await openDatabase({ path: `${folder}/app.db` });
  const [sealer, events, now] = [createSealer(key), createEventHub(() => {}), () => nowMs];
  trash = new Trash({ db, sealer: sealer.forPurpose("trash"), events, now, isExpired: expireByClock(now) });
  store = new DocumentStore<Head, Body>({
    kind: "paper",
    noun: "paper",
    db,
    events,
    trash,
    now,
    sealer: sealer.forPurpose("papers"),
    getTitle: ({ title }) => title,
    log: () => {},
  });
  trash.register("paper", store);
}

async function reopen(): Promise<void> {
  await db.close();
  await open();
}

beforeEach(async () => {
  folder = await Deno.makeTempDir();
  nowMs = 1_700_000_000_000;
  await open();
});
afterEach(async () => {
  await db.close();
  await Deno.remove(folder, { recursive: true });
});

const put = (id: string, title: string, text: string) => store.put(id, () => ({ head: { title }, body: { text } }));

test("stores heads of any length and bodies with unusual characters unchanged", async () => {
  const title = "long ".repeat(2_000);
  const text = "half \ud800 pair, NUL \u0000, \u2028";
  await put("a", title, text);
  await put("b", "short", "x".repeat(100_000));
  await reopen();
  expect(store.list().map(({ id, head }) => [id, head])).toEqual([["b", { title: "short" }], ["a", { title }]]);
  expect((await store.get("a")).body).toEqual({ text });
  expect((await store.get("b")).body.text).toHaveLength(100_000);
});

test(
  "an encrypted value can't be decrypted in another document, or as its other part",
  { tags: ["K02"] },
  async () => {
    await put("a", "A", "secret of a");
    await put("b", "B", "secret of b");
    await db.write([{
      sql:
        `UPDATE document SET sealed = (SELECT sealed FROM document WHERE kind = 'paper' AND id = 'a') WHERE id = 'b'`,
      params: [],
    }]);
    await reopen();
    expect(store.list().map(({ id, head }) => [id, head])).toEqual([["b", undefined], ["a", { title: "A" }]]);
    await expect(store.get("b")).rejects.toMatchObject({ code: "internal" });
    expect((await store.get("a")).body.text).toBe("secret of a");
  },
);

test("doesn't decrypt an older value of the same document", { tags: ["K02"] }, async () => {
  await put("a", "A", "first");
  const { sealed } = db.get<{ sealed: Uint8Array }>("SELECT sealed FROM document WHERE id = 'a'")!;
  await put("a", "A", "second");
  await db.write([{ sql: "UPDATE document SET sealed = ? WHERE id = 'a'", params: [sealed] }]);
  await reopen();
  await expect(store.get("a")).rejects.toMatchObject({ code: "internal" });
});

test("a truncated or empty value is an error of that document only", { tags: ["K03"] }, async () => {
  await put("a", "A", "text");
  await put("b", "B", "text");
  await db.write([{ sql: "UPDATE document SET sealed = x'' WHERE id = 'a'", params: [] }]);
  await reopen();
  await expect(store.get("a")).rejects.toMatchObject({ code: "internal" });
  expect((await store.get("b")).body.text).toBe("text");
  await put("a", "A", "anew");
  expect((await store.get("a")).body.text).toBe("anew");
});

test("deletes expired documents with their rows", async () => {
  await put("a", "A", "text");
  await store.remove("a");
  expect(db.all("SELECT id FROM document WHERE kind LIKE '%paper%'")).toHaveLength(1);
  nowMs += 8 * 24 * 60 * 60 * 1000;
  await trash.sweep();
  expect(db.all("SELECT id FROM document WHERE kind LIKE '%paper%'")).toEqual([]);
  expect(await trash.list()).toEqual([]);
});

test("restores each of several removed documents with the same id", async () => {
  for (const text of ["one", "two"]) {
    await put("a", text, text);
    await store.remove("a");
    nowMs += 1000;
  }
  const [second, first] = await trash.list();
  expect([first!.title, second!.title]).toEqual(["one", "two"]);
  await trash.restore(first!.id);
  expect((await store.get("a")).body.text).toBe("one");
  await expect(trash.restore(second!.id)).rejects.toMatchObject({ code: "conflict" });
  await store.remove("a");
  await trash.restore(second!.id);
  expect((await store.get("a")).body.text).toBe("two");
});

test("lists without reading bodies, and bounds the cache of large bodies", async () => {
  const text = "x".repeat(9 * 1024 * 1024);
  for (const id of ["a", "b", "c", "d", "e"]) await put(id, id, text + id);
  for (const id of ["a", "b", "c", "d", "e"]) expect((await store.get(id)).body.text.at(-1)).toBe(id);
  expect(store.list()).toHaveLength(5);
});

test("a read during writes returns one whole version, never an error", async () => {
  await put("a", "0", "0");
  let isWriting = true;
  const found: string[][] = [];
  const reading = (async () => {
    while (isWriting) {
      const { head, body } = await store.get("a");
      found.push([head.title, body.text]);
      await new Promise((resolve) => setTimeout(resolve));
    }
  })();
  for (let i = 1; i <= 200; i++) await put("a", String(i), String(i));
  isWriting = false;
  await reading;
  expect(found.length).toBeGreaterThan(20);
  expect(found.filter(([title, text]) => title !== text)).toEqual([]);
});
