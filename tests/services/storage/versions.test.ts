import { expect, test } from "vitest";
import { AppError } from "../../../services/errors.ts";
import { type VersionLimits, Versions } from "../../../services/storage/versions.ts";
import { expireByClock } from "../../helpers/app/pass_time.ts";
import { fill, smallFileSystem } from "../../helpers/processes/storage_small_disk.ts";
import { filesBelow, tempFolder } from "../../helpers/files/storage_folder.ts";

const FOX = { kind: "characters", id: "fox" } as const;
const MINUTE_MS = 60_000;

async function openStore(limits: Partial<VersionLimits> = {}) {
  const home = await tempFolder();
  const folder = home.file("versions");
  const path = home.file("fox.json");
  await Deno.mkdir(folder);
  await Deno.writeTextFile(path, "0");
  const clock = { nowMs: 1_000_000 };
  const log: string[] = [];
  const versions = new Versions({
    folder,
    limits,
    now: () => clock.nowMs,
    isExpired: expireByClock(() => clock.nowMs),
    log: (_, message) => void log.push(message),
  });
  /** Replaces the file by rename, as all files are written. */
  const replace = (text: string) =>
    versions.replace(FOX, { cause: "put", parts: [{ name: "card.json", path }], touched: [path] }, async () => {
      await Deno.writeTextFile(`${path}.new`, text);
      await Deno.rename(`${path}.new`, path);
    });
  const texts = async () => {
    const found: string[] = [];
    for (const { n } of await versions.list(FOX)) {
      found.push(await Deno.readTextFile((await versions.listParts(FOX, n)).get("card.json")!));
    }
    return found;
  };
  return {
    folder,
    path,
    clock,
    log,
    versions,
    replace,
    texts,
    [Symbol.asyncDispose]: () => home[Symbol.asyncDispose](),
  };
}

test("drops the version that was current for the shortest time when there are too many, never the newest", async () => {
  await using store = await openStore({ maxCount: 3 });
  for (const [text, minutes] of [["1", 600], ["2", 1], ["3", 1], ["4", 300], ["5", 1]] as const) {
    store.clock.nowMs += minutes * MINUTE_MS;
    await store.replace(text);
  }
  expect(await store.texts()).toEqual(["4", "3", "0"]);
});

test("drops versions until the rest fits the size limit, never the newest", async () => {
  await using store = await openStore({ maxBytes: 2_500 });
  for (const letter of "abcd") {
    store.clock.nowMs += MINUTE_MS;
    await store.replace(letter.repeat(1_000));
  }
  store.clock.nowMs += MINUTE_MS;
  await store.replace("small");
  expect((await store.texts()).map((text) => text[0])).toEqual(["d", "b", "0"]);
  await store.replace("x".repeat(9_000));
  await store.replace("small");
  expect((await store.texts()).map((text) => text[0])).toEqual(["x"]);
});

test("leaves files and versions unchanged after a failed write", async () => {
  await using store = await openStore();
  const other = `${store.path}.assets`;
  const failing = store.versions.replace(
    FOX,
    { cause: "put", parts: [{ name: "card.json", path: store.path }], touched: [store.path, other] },
    async () => {
      await Deno.writeTextFile(other, "new");
      await Deno.writeTextFile(`${store.path}.new`, "half");
      await Deno.rename(`${store.path}.new`, store.path);
      throw new AppError("storage_full", "full");
    },
  );
  await expect(failing).rejects.toMatchObject({ code: "storage_full" });
  expect(await Deno.readTextFile(store.path)).toBe("0");
  await expect(Deno.stat(other)).rejects.toThrow(Deno.errors.NotFound);
  expect(await store.versions.list(FOX)).toEqual([]);
  expect(store.log).toEqual([]);
});

test("keeps the current file when the process ends between keeping and writing, and accepts the next write", async () => {
  await using store = await openStore();
  const never = new Promise<void>(() => {});
  const kept = Promise.withResolvers<void>();
  void store.versions.replace(
    FOX,
    { cause: "put", parts: [{ name: "card.json", path: store.path }], touched: [store.path] },
    () => {
      kept.resolve();
      return never;
    },
  );
  await kept.promise;
  expect(await Deno.readTextFile(store.path)).toBe("0");
  // What a process leaves that ended while it was saving.
  const [folder] = (await filesBelow(store.folder)).map((path) => path.replace(/\/1\.\d+\.put\/.*$/, ""));
  await Deno.mkdir(`${folder}/.new`);
  await Deno.writeTextFile(`${folder}/.new/card.json`, "half");
  await store.replace("1");
  expect(await store.texts()).toEqual(["0", "0"]);
  expect(await Deno.readTextFile(store.path)).toBe("1");
});

test("refuses a write on a full disk before anything is replaced", async (context) => {
  await using home = await tempFolder();
  await using disk = await smallFileSystem(home.file("disk"), 1);
  if (disk === undefined) return context.skip();
  const [folder, path] = [home.file("disk/versions"), home.file("disk/fox.json")];
  await Deno.mkdir(folder);
  await Deno.writeTextFile(path, "0");
  const versions = new Versions({ folder, now: Date.now, isExpired: () => false, log: () => {} });
  await fill(home.file("disk/rest"));
  const part = { name: "voice", bytes: () => new Uint8Array(100_000) };
  let isWritten = false;
  await expect(versions.replace(FOX, { cause: "put", parts: [part], touched: [path] }, () => {
    isWritten = true;
    return Promise.resolve();
  })).rejects.toMatchObject({ code: "storage_full" });
  expect(isWritten).toBe(false);
  expect(await versions.list(FOX)).toEqual([]);
});
