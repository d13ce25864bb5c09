import { expect, test } from "vitest";
import { openBackup } from "../../../services/transfer/backup_file.ts";
import { tempFolder } from "../../helpers/storage_folder.ts";
import { openTestApp, type TestApp } from "../../helpers/test_app.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const NAME = /^parlor-.*\.backup$/;

async function backups(folder: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(folder)).catch(() => []);
  return entries.map(({ name }) => name).filter((name) => NAME.test(name)).sort();
}

async function jobsOf(app: TestApp): Promise<{ kind: string; state: string; error?: unknown }[]> {
  return (await (await app.get("/api/jobs")).json()).filter(({ kind }: { kind: string }) => kind === "backup");
}

test("a backup a day is made by the running server, opens by the storage key, and the oldest go", async () => {
  await using home = await tempFolder();
  const folder = home.file("backups");
  await Deno.mkdir(folder);
  await Deno.writeTextFile(`${folder}/parlor-notes.backup`, "somebody else's");
  let nowMs = Date.parse("2026-05-01T10:00:00Z");
  await using app = await openTestApp({ config: { backupDir: folder, backupKeep: 2 }, now: () => nowMs });
  await app.put("/api/personas/p1", { name: "Ann" });
  for (const day of [1, 2, 3]) {
    await expect.poll(async () => (await jobsOf(app)).map(({ state }) => state), { timeout: 20_000 })
      .toEqual(Array.from({ length: day }, () => "done"));
    // An hour later there is none due, a day later there is.
    nowMs += DAY_MS / 24;
    await app.restart();
    expect(await jobsOf(app)).toHaveLength(day);
    nowMs += DAY_MS;
    await app.restart();
  }
  await expect.poll(async () => (await jobsOf(app))[0]?.state, { timeout: 20_000 }).toBe("done");
  expect(await backups(folder)).toEqual([
    ...["parlor-2026-05-03T120000Z.backup", "parlor-2026-05-04T130000Z.backup", "parlor-notes.backup"],
  ]);
  const storageKey = () => Deno.readFile(`${app.dataDir}/storage-key`);
  using backup = await openBackup(`${folder}/parlor-2026-05-04T130000Z.backup`, { storageKey });
  expect(await Array.fromAsync(backup.entries, ({ path }) => path)).toEqual(
    expect.arrayContaining(["app.db", "personas/p1.json"]),
  );
}, 60_000);

test("a backup that cannot be written is a failed job with its reason, and the server runs on", async () => {
  await using home = await tempFolder();
  await Deno.writeTextFile(home.file("file"), "");
  await using app = await openTestApp({ config: { backupDir: home.file("file/below") } });
  await expect.poll(() => jobsOf(app), { timeout: 20_000 }).toMatchObject([{ state: "failed" }]);
  expect((await app.get("/api/personas")).status).toBe(200);
});

test("a backup_dir within the data folder stops the start", async () => {
  await using home = await tempFolder();
  const start = openTestApp({ dataDir: home.file("data"), config: { backupDir: home.file("data/backups") } });
  await expect(start).rejects.toMatchObject({ message: expect.stringContaining("backup_dir") });
});
