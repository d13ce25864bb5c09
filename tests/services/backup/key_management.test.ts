/** @slow Each test fills a folder with one of everything. */
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createSealer } from "../../../services/crypto/sealer.ts";
import { MIGRATIONS } from "../../../services/storage/database/migrations.ts";
import { rotateKey } from "../../../services/backup/key_management.ts";
import { PURPOSES, refuseUnknownColumns, reseal } from "../../../services/backup/reseal_rows.ts";
import { fillHouse, lookAround, restoreAll } from "../../helpers/app/full_house.ts";
import { filesBelow, type TempFolder, tempFolder } from "../../helpers/files/storage_folder.ts";
import { isLong } from "../../helpers/files/sample.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";
import { openStoredDatabase } from "../../helpers/files/stored_database.ts";

let home: TempFolder;
let before: Record<string, unknown>;
const full = () => home.file("full");

beforeAll(async () => {
  home = await tempFolder();
  await using app = await openTestApp({ dataDir: full() });
  await fillHouse(app);
  before = await lookAround(app);
});
afterAll(() => home[Symbol.asyncDispose]());

/** A copy of the full data directory, deleted at the end of its scope. */
async function copyOfFull() {
  const folder = await tempFolder();
  const { success } = await new Deno.Command("cp", { args: ["-a", full(), folder.file("data")] }).output();
  expect(success).toBe(true);
  return { dataDir: folder.file("data"), [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

async function lookInto(dataDir: string): Promise<Record<string, unknown>> {
  await using app = await openTestApp({ dataDir });
  return await lookAround(app);
}

const keyOf = (dataDir: string) => Deno.readFile(`${dataDir}/storage-key`);

describe("a data directory with something of every kind", () => {
  test("after a rotation everything, including the trash, is readable as before, and the old key opens none of it", {
    tags: ["K06"],
  }, async () => {
    await using copy = await copyOfFull();
    const { dataDir } = copy;
    const oldKey = await keyOf(dataDir);
    const copied = openStoredDatabase(dataDir);
    copied.exec(
      "CREATE TABLE _litestream_seq(id INTEGER PRIMARY KEY, seq INTEGER); INSERT INTO _litestream_seq VALUES(1, 1)",
    );
    copied.close();
    await Deno.mkdir(`${dataDir}/.app.db-litestream`);
    expect(await rotateKey({ dataDir, keepUnreadable: false })).toMatchObject({ unreadable: 0 });
    expect(await keyOf(dataDir)).not.toEqual(oldKey);
    expect((await filesBelow(dataDir)).filter((path) => /incoming|\.tmp|schema-/.test(path))).toEqual([]);

    const [old, none] = [createSealer(oldKey), createSealer(new Uint8Array(32).fill(9))];
    const database = new DatabaseSync(`${dataDir}/app.db`, { readOnly: true });
    for (const { revision, id, head } of database.prepare("SELECT * FROM conversation").all()) {
      const aad = { table: "conversation", id: String(id), field: "head", version: Number(revision) };
      expect(reseal(head as Uint8Array, [{ purpose: "conversations", aad }], old, none)).toBeUndefined();
    }
    database.close();

    await using app = await openTestApp({ dataDir });
    expect(await lookAround(app)).toEqual(before);
    expect(await restoreAll(app)).toBeGreaterThanOrEqual(6);
  });

  test(
    "if it is killed at any step, the old or the new key opens everything, and the next rotation succeeds",
    { tags: ["K06"], timeout: 300_000 },
    async () => {
      const steps: string[] = [];
      {
        await using copy = await copyOfFull();
        await rotateKey({ dataDir: copy.dataDir, keepUnreadable: false, watch: (step) => steps.push(step) });
      }
      expect(steps).toEqual(
        expect.arrayContaining(["resealed", "ready", "placed app.db", "placed storage-key", "done"]),
      );
      const isReadyAt = steps.indexOf("ready");
      // Every file and folder is swapped alike; a usual run takes the two that matter most, and another at random.
      const isSwap = (step: string) => /^(removed|cleared|placed) /.test(step);
      const others = steps.filter((step) => isSwap(step) && !/^placed (app\.db|storage-key)$/.test(step));
      const chosen = others[Math.floor(Math.random() * others.length)];
      const isTaken = (step: string) => isLong() || step === chosen || !others.includes(step);
      for (const [at, step] of steps.entries()) {
        if (!isTaken(step)) continue;
        await using copy = await copyOfFull();
        const { dataDir } = copy;
        const oldKey = await keyOf(dataDir);
        let count = 0;
        const watch = () => {
          if (count++ === at) throw new Error("killed");
        };
        await expect(rotateKey({ dataDir, keepUnreadable: false, watch })).rejects.toThrow("killed");
        expect(await lookInto(dataDir), step).toEqual(before);
        expect((await keyOf(dataDir)).every((byte, i) => byte === oldKey[i]), step).toBe(at < isReadyAt);
        await rotateKey({ dataDir, keepUnreadable: false });
        expect(await lookInto(dataDir), step).toEqual(before);
      }
    },
  );

  test("an unreadable value stops the rotation without changes, unless it may be dropped", async () => {
    await using copy = await copyOfFull();
    const { dataDir } = copy;
    const database = openStoredDatabase(dataDir);
    database.exec("UPDATE conversation SET head = zeroblob(80) WHERE id = 'c2'");
    database.close();
    const oldKey = await keyOf(dataDir);
    await expect(rotateKey({ dataDir, keepUnreadable: false })).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringMatching(/1 values .*conversation c2.*--keep-unreadable/),
    });
    expect(await keyOf(dataDir)).toEqual(oldKey);
    expect(await rotateKey({ dataDir, keepUnreadable: true })).toMatchObject({ unreadable: 1 });
    await using app = await openTestApp({ dataDir });
    expect((await app.get("/api/conversations/c1")).status).toBe(200);
  });

  test("an unknown file stops the rotation, and so does a running server", async () => {
    await using copy = await copyOfFull();
    const { dataDir } = copy;
    await Deno.writeTextFile(`${dataDir}/notes`, "mine");
    await expect(rotateKey({ dataDir, keepUnreadable: false })).rejects.toMatchObject({
      message: expect.stringContaining('"notes"'),
    });
    await Deno.remove(`${dataDir}/notes`);
    await using _app = await openTestApp({ dataDir });
    await expect(rotateKey({ dataDir, keepUnreadable: false })).rejects.toMatchObject({ code: "conflict" });
  });

  test("a key outside the data folder is replaced by a new file next to it, which is never overwritten", async () => {
    await using copy = await copyOfFull();
    const { dataDir } = copy;
    const [storageKeyFile, newKeyFile] = [`${dataDir}-key`, `${dataDir}-new-key`];
    await Deno.rename(`${dataDir}/storage-key`, storageKeyFile);
    await expect(rotateKey({ dataDir, storageKeyFile, keepUnreadable: false })).rejects.toMatchObject({
      message: expect.stringContaining("--new-key-file"),
    });
    await rotateKey({ dataDir, storageKeyFile, newKeyFile, keepUnreadable: false });
    await using app = await openTestApp({ dataDir, config: { storageKeyFile: newKeyFile } });
    expect(await lookAround(app)).toEqual(before);
    await expect(openTestApp({ dataDir: full(), config: { storageKeyFile: newKeyFile } })).rejects.toMatchObject({
      message: expect.stringContaining("another key"),
    });
  });
});

test("the rotation knows every key purpose that services use", async () => {
  const named = new Set<string>();
  for (const path of await filesBelow(new URL("../../../services", import.meta.url).pathname)) {
    for (const [, name] of (await Deno.readTextFile(path)).matchAll(/forPurpose\("([^"]+)"\)/g)) named.add(name!);
  }
  expect(named.size).toBeGreaterThan(8);
  expect([...named].filter((name) => !(PURPOSES as readonly string[]).includes(name))).toEqual([]);
});

test("the rotation knows every column of the schema that can contain an encrypted value, and refuses others", () => {
  using database = new DatabaseSync(":memory:");
  for (const { sql } of MIGRATIONS) database.exec(sql);
  refuseUnknownColumns(database);
  database.exec("CREATE TABLE further(id TEXT PRIMARY KEY, secret BLOB) STRICT");
  expect(() => refuseUnknownColumns(database)).toThrow("further.secret");
});
