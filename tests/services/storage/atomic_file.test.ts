import { expect, test } from "vitest";
import { readFileIfExists, removeLeftovers, writeFileAtomic } from "../../../services/storage/atomic_file.ts";
import { startChild } from "../../helpers/processes/storage_child.ts";
import { filesBelow, tempFolder } from "../../helpers/files/storage_folder.ts";

const OLD = "old ".repeat(20_000);
const NEW = "new ".repeat(25_000);

test.each([
  ["sync", OLD],
  ["rename", OLD],
  ["renamed", NEW],
  ["folder_sync", NEW],
])("leaves a complete file when the writer is killed at step %s", { tags: ["D04"] }, async (step, expected) => {
  for (const name of ["credentials.json", "tokens.json", "config.toml"]) {
    await using folder = await tempFolder();
    const path = folder.file(name);
    await writeFileAtomic(path, OLD);
    const child = startChild("storage_atomic_child.ts", [path, NEW, step]);
    expect((await child.lines.next()).done).toBe(true); // it was killed before it could report its end
    await child.end();
    expect(await Deno.readTextFile(path) === expected).toBe(true);
    await writeFileAtomic(path, "after");
    expect(await Deno.readTextFile(path)).toBe("after");
  }
});

test("writes the new content", { tags: ["D04"] }, async () => {
  await using folder = await tempFolder();
  const path = folder.file("credentials.json");
  await writeFileAtomic(path, OLD);
  const child = startChild("storage_atomic_child.ts", [path, NEW, "none"]);
  expect((await child.lines.next()).value).toBe("written");
  expect((await child.end()).code).toBe(0);
  expect(await Deno.readTextFile(path) === NEW).toBe(true);
});

test("leaves one complete version after concurrent writes, and no temporary files", async () => {
  await using folder = await tempFolder();
  const path = folder.file("tokens.json");
  const contents = Array.from({ length: 8 }, (_, n) => String(n).repeat(100_000));
  await Promise.all(contents.map((content) => writeFileAtomic(path, content)));
  expect(contents).toContain(await Deno.readTextFile(path));
  expect(await filesBelow(folder.path)).toEqual([path]);
});

test("returns undefined for a missing file and throws for an unreadable one", async () => {
  await using folder = await tempFolder();
  expect(await readFileIfExists(folder.file("absent"))).toBeUndefined();
  await expect(readFileIfExists(folder.path)).rejects.toMatchObject({ code: "internal" });
  await writeFileAtomic(folder.file("empty"), "");
  expect(await readFileIfExists(folder.file("empty"))).toEqual(new Uint8Array(0));
});

test("sets the requested mode, also when it replaces a file with another mode", async () => {
  await using folder = await tempFolder();
  const path = folder.file("config.toml");
  await Deno.writeTextFile(path, "", { mode: 0o644 });
  await writeFileAtomic(path, "a");
  expect((await Deno.stat(path)).mode! & 0o777).toBe(0o600);
  await writeFileAtomic(path, "b", { mode: 0o640 });
  // The umask of this process may exclude the group.
  expect((await Deno.stat(path)).mode! & 0o777).toBe(0o640 & ~Deno.umask());
});

test("names the file when its folder is missing", async () => {
  await using folder = await tempFolder();
  const path = `${folder.path}/absent/file`;
  await expect(writeFileAtomic(path, "x")).rejects.toMatchObject({
    code: "internal",
    message: expect.stringContaining(`Can't write "${path}": `),
  });
});

test("removes files that nothing refers to and that are older than an hour", async () => {
  const folder = await Deno.makeTempDir({ prefix: "parlor-leftovers-" });
  try {
    const twoHoursAgo = new Date(Date.now() - 2 * 60 * 60 * 1000);
    for (const name of ["old", "wanted", "recent"]) await Deno.writeTextFile(`${folder}/${name}`, name);
    await Deno.mkdir(`${folder}/inner`);
    for (const name of ["old", "wanted", "inner"]) await Deno.utime(`${folder}/${name}`, twoHoursAgo, twoHoursAgo);
    const removed: string[] = [];
    await removeLeftovers(folder, () => ["wanted"], (name) => Promise.resolve(void removed.push(name)));
    expect(removed).toEqual(["old"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
