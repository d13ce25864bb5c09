import { expect, test } from "vitest";
import { hasSealedData, openDataDir, removeUnfinishedWrites } from "../../../services/storage/data_dir.ts";
import { MIGRATIONS } from "../../../services/storage/database/migrations.ts";
import { runChild, startChild } from "../../helpers/processes/storage_child.ts";
import { makeReadOnly, smallFileSystem } from "../../helpers/processes/storage_small_disk.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";

const modeOf = async (path: string) => ((await Deno.stat(path)).mode! & 0o7777).toString(8);

test("creates folders with 0700 and files with 0600 from the first moment, even under umask 000", {
  tags: ["K08"],
}, async () => {
  await using folder = await tempFolder();
  const lines = await runChild("storage_modes_child.ts", [folder.file("deep/data")]);
  const made = lines.map((line) =>
    JSON.parse(line) as { when: string; path: string; isDirectory: boolean; mode: string }
  );
  expect(made.filter(({ mode, isDirectory }) => mode !== (isDirectory ? "700" : "600"))).toEqual([]);
  const names = (when: string) => made.filter((one) => one.when === when).map(({ path }) => path.split("/").at(-1)!);
  const copy = `app.db.schema-${MIGRATIONS.length}`;
  expect(names("last").sort()).toEqual(
    [
      ...["app.db", "app.db-shm", "app.db-wal", copy, "attachments", "data", "lock", "storage-key"],
      "tokens.json",
    ],
  );
  expect(names("first")).toEqual(expect.arrayContaining(["lock", "app.db", `${copy}.tmp`]));
  expect(names("first").filter((name) => /^storage-key\..*\.tmp$|^\.tokens\.json\..*\.tmp$/.test(name))).toHaveLength(
    2,
  );
});

test(
  "refuses a second process while the first is alive; a killed process leaves no lock",
  { tags: ["D05"] },
  async () => {
    await using folder = await tempFolder();
    const path = folder.file("data");
    const holder = startChild("storage_lock_child.ts", [path]);
    expect((await holder.lines.next()).value).toBe("opened");
    const [refusal] = await runChild("storage_lock_child.ts", [path]);
    expect(JSON.parse(refusal!)).toMatchObject({
      code: "conflict",
      message: expect.stringMatching(
        /^Can't lock ".*lock": another Parlor process is using this data directory. Stop it first/,
      ),
    });
    await expect(openDataDir(path)).rejects.toMatchObject({ code: "conflict" });
    await holder.kill();
    await holder.end();
    (await openDataDir(path)).close();
  },
);

test(
  "refuses a read-only disk at startup",
  { tags: ["M05"] },
  async (context) => {
    await using folder = await tempFolder();
    const path = folder.file("data");
    await using disk = await smallFileSystem(path);
    if (disk === undefined) return context.skip("only root can mount");
    (await openDataDir(path)).close();
    await makeReadOnly(path);
    await expect(openDataDir(path)).rejects.toMatchObject({
      code: "internal",
      message: expect.stringMatching(
        /^Can't open the data directory ".*": it isn't writable \(Read-only file system/,
      ),
    });
  },
);

test("refuses to open a data directory twice in one process, and opens it again after closing", async () => {
  await using folder = await tempFolder();
  const first = await openDataDir(folder.file("data"));
  await expect(openDataDir(folder.file("data"))).rejects.toMatchObject({ code: "conflict" });
  await expect(openDataDir(folder.file("data"))).rejects.toMatchObject({ code: "conflict" });
  first.close();
  (await openDataDir(folder.file("data"))).close();
});

test.skipIf(Deno.build.os === "windows").each([
  ["that is empty", []],
  ["that holds a configuration", ["config.toml"]],
  ["that holds a database", ["app.db", "something"]],
])("corrects the mode of a folder that others can access %s", { tags: ["K08"] }, async (_, names) => {
  await using folder = await tempFolder();
  const path = folder.file("data");
  await Deno.mkdir(path);
  for (const name of names) await Deno.writeTextFile(`${path}/${name}`, "");
  await Deno.chmod(path, 0o755);
  const dataDir = await openDataDir(path);
  dataDir.close();
  expect(await modeOf(path)).toBe("700");
});

test.skipIf(Deno.build.os === "windows").each([
  ["of other files", 0o755, ["letter.txt"]],
  ["that everybody writes to", 0o1777, []],
])("refuses a folder %s and leaves it unchanged", { tags: ["K08"] }, async (_, mode, names) => {
  await using folder = await tempFolder();
  const path = folder.file("data");
  await Deno.mkdir(path);
  for (const name of names) await Deno.writeTextFile(`${path}/${name}`, "");
  await Deno.chmod(path, mode);
  await expect(openDataDir(path)).rejects.toMatchObject({
    code: "internal",
    message: expect.stringContaining("other users can access it"),
  });
  expect(await modeOf(path)).toBe(mode.toString(8));
  expect((await Array.fromAsync(Deno.readDir(path))).map(({ name }) => name)).toEqual(names);
});

test("refuses a data directory that is a file and names its path", async () => {
  await using folder = await tempFolder();
  await Deno.writeTextFile(folder.file("data"), "");
  await expect(openDataDir(folder.file("data"))).rejects.toMatchObject({
    code: "internal",
    message: expect.stringContaining(`Can't open the data directory "${folder.file("data")}": `),
  });
});

test("creates subfolders with 0700, corrects wider ones and never follows links", async () => {
  await using folder = await tempFolder();
  const dataDir = await openDataDir(folder.file("data"));
  await Deno.mkdir(dataDir.file("voices"));
  await Deno.chmod(dataDir.file("voices"), 0o755);
  await Deno.mkdir(folder.file("elsewhere"));
  await Deno.symlink(folder.file("elsewhere"), dataDir.file("attachments"));
  expect(await dataDir.ensureFolder("voices")).toBe(dataDir.file("voices"));
  expect(await modeOf(dataDir.file("voices"))).toBe("700");
  await dataDir.ensureFolder("replies");
  expect(await modeOf(dataDir.file("replies"))).toBe("700");
  await expect(dataDir.ensureFolder("attachments")).rejects.toMatchObject({ code: "internal" });
  dataDir.close();
});

test.each(["", ".", "..", "a/b", "a\\b", "a\0b"])(
  "refuses %j as a folder name",
  { tags: ["P01"] },
  async (name) => {
    await using folder = await tempFolder();
    const dataDir = await openDataDir(folder.file("data"));
    await expect(dataDir.ensureFolder(name)).rejects.toMatchObject({ code: "internal" });
    dataDir.close();
  },
);

test("detects sealed data: a database, sealed files, or content of their folders", async () => {
  await using folder = await tempFolder();
  const dataDir = await openDataDir(folder.file("data"));
  expect(await hasSealedData(dataDir)).toBe(false);
  await dataDir.ensureFolder("attachments");
  expect(await hasSealedData(dataDir)).toBe(false);
  await Deno.writeTextFile(dataDir.file("attachments", "a.png"), "");
  expect(await hasSealedData(dataDir)).toBe(true);
  await Deno.remove(dataDir.file("attachments"), { recursive: true });
  for (const name of ["app.db", "credentials.json", "tokens.json"]) {
    await Deno.writeTextFile(dataDir.file(name), "");
    expect(await hasSealedData(dataDir)).toBe(true);
    await Deno.remove(dataDir.file(name));
  }
  dataDir.close();
});

test("removes what a killed process was writing, but not what a command may be writing now", async () => {
  await using folder = await tempFolder();
  const dataDir = await openDataDir(folder.path);
  try {
    const cards = await dataDir.ensureFolder("characters");
    const write = async (path: string, ageS: number) => {
      await Deno.writeTextFile(path, "half");
      await Deno.utime(path, Date.now() / 1000 - ageS, Date.now() / 1000 - ageS);
    };
    const name = (target: string) => `.${target}.${crypto.randomUUID()}.tmp`;
    const [card, tokens, recentTokens] = [name("wren.json"), name("tokens.json"), name("tokens.json")];
    await write(`${cards}/${card}`, 0);
    await write(`${cards}/.other.tmp`, 90);
    await write(`${cards}/wren.json`, 90);
    await write(`${folder.path}/${tokens}`, 90);
    await write(`${folder.path}/${recentTokens}`, 0);
    expect(await removeUnfinishedWrites(dataDir, [cards, `${folder.path}/missing`])).toEqual([tokens, card]);
    const left = async (path: string) => (await Array.fromAsync(Deno.readDir(path), ({ name }) => name)).sort();
    expect(await left(cards)).toEqual([".other.tmp", "wren.json"]);
    expect(await left(folder.path)).toEqual([recentTokens, "characters", "lock"].sort());
  } finally {
    dataDir.close();
  }
});
