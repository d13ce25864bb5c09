import { expect, test } from "vitest";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";

const PATH = "/api/data/backups";
const DAY_MS = 24 * 60 * 60 * 1000;

async function findBackupJobs(app: TestApp): Promise<{ title: string; state: string }[]> {
  const jobs: { kind: string; title: string; state: string }[] = await (await app.get("/api/jobs")).json();
  return jobs.filter(({ kind }) => kind === "backup").map(({ title, state }) => ({ title, state }));
}

test("backs up to a folder that was set on the page at once, on its schedule, and after a restart", async () => {
  await using home = await tempFolder();
  const folder = `${await Deno.realPath(home.path)}/backups`;
  let nowMs = Date.parse("2026-05-01T10:00:00Z");
  await using app = await openTestApp({ now: () => nowMs });
  expect(await (await app.get("/api/data")).json()).toMatchObject({
    backup_dir: null,
    backup_schedule: "daily",
    backup_fixed: [],
    backup_same_disk: null,
  });
  const answer = await app.patch(PATH, {
    backup_dir: `${home.path}/backups`,
    backup_schedule: "weekly",
    backup_keep: 3,
  });
  expect([answer.status, await answer.json()]).toEqual([
    200,
    { backup_dir: folder, backup_schedule: "weekly", backup_keep: 3 },
  ]);
  await expect.poll(() => findBackupJobs(app)).toEqual([{ title: "Weekly backup", state: "done" }]);
  if (Deno.build.os !== "windows") expect((await Deno.stat(folder)).mode! & 0o777).toBe(0o700);
  expect(await Deno.readTextFile(`${app.dataDir}/config.toml`)).toContain('backup_schedule = "weekly"');
  expect((await (await app.get("/api/data")).json()).backup_same_disk).toBe(true);

  nowMs += 2 * DAY_MS;
  app.services.backups().then((backups) => backups.look());
  expect(await (await app.post(PATH)).json()).toMatchObject({ title: "Backup" });
  expect((await app.patch(PATH, { backup_schedule: "off" })).status).toBe(200);
  expect((await app.patch(PATH, { backup_dir: null })).status).toBe(200);
  expect((await app.post(PATH)).status).toBe(503);
  await expect.poll(async () => (await findBackupJobs(app)).map(({ title }) => title).sort()).toEqual(
    ["Backup", "Weekly backup"],
  );
});

test("refuses folders that could hide, mix up or lose backups", async () => {
  await using home = await tempFolder();
  await using app = await openTestApp();
  await Deno.mkdir(home.file("other"));
  await Deno.writeTextFile(home.file("other/work.backup"), "another program's");
  await Deno.writeTextFile(home.file("file"), "");
  await Deno.symlink(app.dataDir, home.file("link"));
  const refusals: [folder: string, why: string][] = [
    ["backups", "absolute"],
    [home.file("missing/backups"), "doesn't exist"],
    [home.file("other"), "work.backup"],
    [`${app.dataDir}/backups`, "inside the data folder"],
    [app.dataDir, "inside the data folder"],
    [home.file("link"), "inside the data folder"],
    [home.file("link/backups"), "inside the data folder"],
    [`${home.path}/x\0y`, "absolute"],
  ];
  for (const [folder, why] of refusals) {
    const answer = await app.patch(PATH, { backup_dir: folder });
    expect([folder, answer.status]).toEqual([folder, 400]);
    expect((await answer.json()).error.message).toContain(why);
  }
  expect((await app.patch(PATH, { backup_dir: home.file("file") })).status).toBeGreaterThanOrEqual(400);
  for (const body of [{ backup_keep: 0 }, { backup_schedule: "hourly" }, { backup_dir: "" }]) {
    expect((await app.patch(PATH, body)).status).toBe(400);
  }
  expect((await (await app.get("/api/data")).json()).backup_dir).toBeNull();
  expect((await app.delete(`${PATH}/work.backup`)).status).toBe(404);
});

test("accepts a folder with nothing but an unfinished backup", async () => {
  await using home = await tempFolder();
  await using app = await openTestApp();
  const folder = home.file("backups");
  await Deno.mkdir(folder);
  await Deno.writeTextFile(`${folder}/.parlor-2026-05-01T030000Z.backup.${crypto.randomUUID()}.tmp`, "half");
  expect((await app.patch(PATH, { backup_dir: folder })).status).toBe(200);
  await app.patch(PATH, { backup_dir: home.file("another") });
  await Deno.writeTextFile(`${folder}/.work.odt.${crypto.randomUUID()}.tmp`, "another program's");
  expect((await app.patch(PATH, { backup_dir: folder })).status).toBe(400);
});

test("a value that the environment sets can't be changed from the page", async () => {
  await using home = await tempFolder();
  const folder = home.file("backups");
  await Deno.mkdir(folder);
  const { sources } = await import("../../../services/config/config.ts").then(({ loadConfig }) =>
    loadConfig({
      args: ["--data-dir", home.path],
      environment: { PARLOR_BACKUP_DIR: folder },
      readTextFile: () => undefined,
      os: "linux",
    })
  );
  await using app = await openTestApp({ config: { backupDir: folder, backupSchedule: "off", sources } });
  expect((await (await app.get("/api/data")).json()).backup_fixed).toEqual(["backup_dir"]);
  const answer = await app.patch(PATH, { backup_dir: null });
  expect([answer.status, (await answer.json()).error.code]).toEqual([409, "conflict"]);
  expect((await app.patch(PATH, { backup_keep: 2 })).status).toBe(200);
  expect(await findBackupJobs(app)).toEqual([]);
});
