import { afterEach, beforeEach, expect, test } from "vitest";
import { randomBytes } from "node:crypto";
import { createSealer } from "../../../services/crypto/sealer.ts";
import { createEventHub } from "../../../services/events/event_hub.ts";
import { type Database, openDatabase, type Statement } from "../../../services/storage/database/database.ts";
import { Trash } from "../../../services/storage/trash.ts";

const NOW_MS = 1_700_000_000_000;
import { expireByClock } from "../../helpers/app/pass_time.ts";
let folder: string;
let db: Database;
/** Statements of each write. */
let writes: number[];
/** Items whose rows were read completely. */
let opened: string[];
let trash: Trash;

beforeEach(async () => {
  folder = await Deno.makeTempDir();
  db = await openDatabase({ path: `${folder}/app.db` });
  [writes, opened] = [[], []];
  const watched: Database = {
    ...db,
    get: <T>(sql: string, ...params: Parameters<Database["get"]>[1][]) => {
      opened.push(String(params[0]));
      return db.get<T>(sql, ...params);
    },
    write: (statements) => {
      writes.push(statements.length);
      return db.write(statements);
    },
  };
  trash = new Trash({
    db: watched,
    sealer: createSealer(new Uint8Array(randomBytes(32))).forPurpose("trash"),
    events: createEventHub(() => {}),
    now: () => NOW_MS,
    isExpired: expireByClock(() => NOW_MS),
  });
});
afterEach(async () => {
  await db.close();
  await Deno.remove(folder, { recursive: true });
});

const add = (kind: string, ids: string[]) => db.write(ids.map((id) => trash.put(kind, `Title of ${id}`, { id }, id)));
const range = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`);
const restore = () => Promise.resolve();

test("deletes items that are only a record in few writes, and reads none of them", async () => {
  trash.register("note", { restore });
  await add("note", range("n", 1_200));
  expect(await trash.list()).toHaveLength(1_200);
  await trash.removeAll();
  expect([writes, opened]).toEqual([[1, 1, 1], []]);
  expect(await trash.list()).toEqual([]);
});

test("reads the record of an item with other data when its turn comes, several at once", async () => {
  let [running, most] = [0, 0];
  const openedBefore: number[] = [];
  trash.register("file", {
    restore,
    async purge(_record: unknown, removal: Statement) {
      openedBefore.push(opened.length);
      most = Math.max(most, ++running);
      await db.write([removal]);
      running--;
    },
  });
  await add("file", range("f", 100));
  await trash.removeAll();
  expect(most).toBeGreaterThan(1);
  // Never more records in memory than are purged at once.
  expect(openedBefore.every((count, at) => count - at <= 16)).toBe(true);
  expect(await trash.list()).toEqual([]);
});

test("an item that is restored while the trash is emptied isn't purged", async () => {
  const purged: unknown[] = [];
  let restoring: Promise<void> | undefined;
  trash.register("file", {
    restore: async (_record, removal) => void await db.write([removal]),
    async purge(record, removal) {
      await (restoring ??= trash.restore("f99"));
      purged.push((record as { id: string }).id);
      await db.write([removal]);
    },
  });
  await add("file", range("f", 100));
  await trash.removeAll();
  expect(purged).toHaveLength(99);
  expect(purged).not.toContain("f99");
});

test("an item that can't be deleted doesn't stop the deletion of others", async () => {
  trash.register("note", { restore });
  trash.register("file", {
    restore,
    async purge(record, removal) {
      if ((record as { id: string }).id === "f1") throw new Error("the disk is full");
      await db.write([removal]);
    },
  });
  await add("file", range("f", 3));
  await add("note", range("n", 3));
  await expect(trash.removeAll()).rejects.toThrow("the disk is full");
  expect((await trash.list()).map(({ id }) => id)).toEqual(["f1"]);
});
