import { expect, test } from "vitest";
import { openDataDir } from "../../../services/storage/data_dir.ts";
import { MIGRATIONS } from "../../../services/storage/database/migrations.ts";
import { holdsSealedData } from "../../../services/storage/database/lost_database.ts";
import { runChild, startChild } from "../../helpers/processes/storage_child.ts";
import { makeReadOnly, smallFileSystem } from "../../helpers/processes/storage_small_disk.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";

const modeOf = async (path: string) => ((await Deno.stat(path)).mode! & 0o7777).toString(8);

test("under umask 000 every folder is 0700 and every file 0600, from its first moment and temporary ones too", {
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
  "a second process is refused while the first lives, and a killed one leaves no lock behind",
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
        /^Cannot lock ".*lock": another Parlor process uses this data directory; stop it first/,
      ),
    });
    await expect(openDataDir(path)).rejects.toMatchObject({ code: "conflict" });
    await holder.kill();
    await holder.end();
    (await openDataDir(path)).close();
  },
);

test(
  "a directory on a disk that is mounted for reading alone is told of at the start",
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
        /^Cannot open the data directory ".*": it cannot be written to \(Read-only file system/,
      ),
    });
  },
);

test("one process cannot open a data directory twice, and can open it again after closing it", async () => {
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
])("a folder others may enter %s is put right", { tags: ["K08"] }, async (_, names) => {
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
])("a folder %s is refused and left as it is", { tags: ["K08"] }, async (_, mode, names) => {
  await using folder = await tempFolder();
  const path = folder.file("data");
  await Deno.mkdir(path);
  for (const name of names) await Deno.writeTextFile(`${path}/${name}`, "");
  await Deno.chmod(path, mode);
  await expect(openDataDir(path)).rejects.toMatchObject({
    code: "internal",
    message: expect.stringContaining("others may enter it"),
  });
  expect(await modeOf(path)).toBe(mode.toString(8));
  expect((await Array.fromAsync(Deno.readDir(path))).map(({ name }) => name)).toEqual(names);
});

test("a data directory that is a file is refused with its path", async () => {
  await using folder = await tempFolder();
  await Deno.writeTextFile(folder.file("data"), "");
  await expect(openDataDir(folder.file("data"))).rejects.toMatchObject({
    code: "internal",
    message: expect.stringContaining(`Cannot open the data directory "${folder.file("data")}": `),
  });
});

test("a folder inside is 0700, also one that was wider, and never a link to elsewhere", async () => {
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
  "%j is no folder name inside the data directory",
  { tags: ["P01"] },
  async (name) => {
    await using folder = await tempFolder();
    const dataDir = await openDataDir(folder.file("data"));
    await expect(dataDir.ensureFolder(name)).rejects.toMatchObject({ code: "internal" });
    dataDir.close();
  },
);

test("a data directory holds sealed data once it has a database, sealed files or anything in their folders", async () => {
  await using folder = await tempFolder();
  const dataDir = await openDataDir(folder.file("data"));
  expect(await holdsSealedData(dataDir)).toBe(false);
  await dataDir.ensureFolder("attachments");
  expect(await holdsSealedData(dataDir)).toBe(false);
  await Deno.writeTextFile(dataDir.file("attachments", "a.png"), "");
  expect(await holdsSealedData(dataDir)).toBe(true);
  await Deno.remove(dataDir.file("attachments"), { recursive: true });
  for (const name of ["app.db", "credentials.json", "tokens.json"]) {
    await Deno.writeTextFile(dataDir.file(name), "");
    expect(await holdsSealedData(dataDir)).toBe(true);
    await Deno.remove(dataDir.file(name));
  }
  dataDir.close();
});
