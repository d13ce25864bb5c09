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

/** Root may do everything, unless it drops its capabilities. */
async function openWithoutCapabilities(path: string): Promise<{ code: string; message: string } | { opened: true }> {
  const prefix = ["setpriv", "--bounding-set=-all"];
  const child = startChild("storage_lock_child.ts", [path], { prefix });
  const { value } = await child.lines.next();
  await child.kill();
  await child.end();
  return value === "opened" ? { opened: true } : JSON.parse(value!);
}

const canActAsOther = Deno.build.os === "linux" && Deno.uid() === 0 &&
  await Deno.stat("/usr/bin/setpriv").then(() => true, () => false);
const OTHER_UID = 12_345;

test.skipIf(!canActAsOther).each<[string, (data: string) => Promise<void>, string]>([
  [
    "a folder of another user",
    (data) => makeFolder(data, 0o700),
    "because DATA belongs to uid 12345 and has mode 0700. Give DATA and its files to uid 0 (chown -R 0), or run Parlor as uid 12345",
  ],
  [
    "a folder of another user that it can only read",
    (data) => makeFolder(data, 0o755),
    "because DATA belongs to uid 12345 and has mode 0755. Give DATA and its files to uid 0 (chown -R 0), or run Parlor as uid 12345",
  ],
  [
    "an own folder that is read-only",
    async (data) => {
      await Deno.mkdir(data);
      await Deno.chmod(data, 0o500);
    },
    "because DATA has mode 0500. Set its mode to 0700",
  ],
  [
    "a folder with another user's files",
    async (data) => {
      await makeFolder(data, 0o777);
      await Deno.writeTextFile(`${data}/lock`, "", { mode: 0o600 });
      await Deno.chown(`${data}/lock`, OTHER_UID, OTHER_UID);
    },
    "because LOCK belongs to uid 12345 and has mode 0600. Give DATA and its files to uid 0 (chown -R 0), or run Parlor as uid 12345",
  ],
  [
    "a folder of root inside one of another user",
    (data) => makeFolder(data.replace(/\/data$/, ""), 0o755),
    "because PARENT belongs to uid 12345 and has mode 0755. Create DATA for uid 0, or choose another with --data-dir",
  ],
])("says in one sentence why this user can't write to %s", async (_, prepare, reason) => {
  await using folder = await tempFolder();
  const data = folder.file("parent/data");
  await Deno.mkdir(folder.file("parent"));
  await prepare(data);
  expect(await openWithoutCapabilities(data)).toEqual({
    code: "forbidden",
    message: `Can't write to the data directory "${data}" as uid 0, ${
      reason.replaceAll("DATA", `"${data}"`).replace("LOCK", `"${data}/lock"`).replace(
        "PARENT",
        `"${folder.file("parent")}"`,
      )
    }`,
  });
});

async function makeFolder(path: string, mode: number): Promise<void> {
  await Deno.mkdir(path, { recursive: true });
  await Deno.chmod(path, mode);
  await Deno.chown(path, OTHER_UID, OTHER_UID);
}

test.skipIf(!canActAsOther)("accepts a folder of another user that this one can write to", async () => {
  await using folder = await tempFolder();
  const data = folder.file("data");
  await makeFolder(data, 0o777);
  expect(await openWithoutCapabilities(data)).toEqual({ opened: true });
  expect(await modeOf(data)).toBe("777");
  for (const name of ["lock", "app.db"]) expect([name, await modeOf(`${data}/${name}`)]).toEqual([name, "600"]);
  // It isn't a folder with other files.
  await Deno.writeTextFile(folder.file("data/letter.txt"), "");
  for (const name of ["lock", "app.db", "app.db-wal", "app.db-shm"]) {
    await Deno.remove(`${data}/${name}`).catch(() => {});
  }
  expect(await openWithoutCapabilities(data)).toMatchObject({ message: expect.stringContaining("aren't Parlor's") });
});

test("a folder of this user isn't shared", async () => {
  await using folder = await tempFolder();
  const dataDir = await openDataDir(folder.file("data"));
  dataDir.close();
  expect(dataDir.sharedFolder).toBeUndefined();
});

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
