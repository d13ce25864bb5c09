/** @slow A running server makes, opens and restores some twenty backups. */
import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { makeBackup } from "../../../services/backup/backup.ts";
import { AFTER_BACKUP_TIMEOUT_MS, isMounted, runAfterBackup } from "../../../services/backup/backup_settings.ts";
import { restoreBackup } from "../../../services/backup/restore.ts";
import { openBackup } from "../../../services/backup/backup_file.ts";
import { AppError } from "../../../services/errors.ts";
import { addDocument, readText } from "../../helpers/files/document_files.ts";
import { putPicture } from "../../helpers/files/pictures.ts";
import { recording } from "../../helpers/files/recordings.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { happened, standingClock } from "../../helpers/fakes/standing_clock.ts";

const acceptSetting = () => false;
const DAY_MS = 24 * 60 * 60 * 1000;
const NAME = /^parlor-.*\.backup$/;

async function backups(folder: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(folder)).catch(() => []);
  return entries.map(({ name }) => name).filter((name) => NAME.test(name)).sort();
}

async function jobsOf(app: TestApp): Promise<{ kind: string; state: string; error?: unknown }[]> {
  return (await (await app.get("/api/jobs")).json()).filter(({ kind }: { kind: string }) => kind === "backup");
}

test("the running server creates a backup per day, which the storage key opens, and deletes the oldest", async () => {
  await using home = await tempFolder();
  const folder = home.file("backups");
  await Deno.mkdir(folder);
  await Deno.writeTextFile(`${folder}/parlor-notes.backup`, "somebody else's");
  let nowMs = Date.parse("2026-05-01T10:00:00Z");
  await using app = await openTestApp({ config: { backupDir: folder, backupKeep: 2 }, now: () => nowMs });
  await app.put("/api/personas/p1", { name: "Ann" });
  const backedUpOn = (days: number) =>
    expect.poll(async () => (await jobsOf(app)).map(({ state }) => state))
      .toEqual(Array.from({ length: days }, () => "done"));
  for (const day of [1, 2, 3]) {
    await backedUpOn(day);
    // None is due an hour later, one is a day later.
    nowMs += DAY_MS / 24;
    await app.restart();
    expect(await jobsOf(app)).toHaveLength(day);
    nowMs += DAY_MS;
    await app.restart();
  }
  await backedUpOn(4);
  expect(await backups(folder)).toEqual([
    ...["parlor-2026-05-03T120000Z.backup", "parlor-2026-05-04T130000Z.backup", "parlor-notes.backup"],
  ]);
  const storageKey = () => Deno.readFile(`${app.dataDir}/storage-key`);
  using backup = await openBackup(`${folder}/parlor-2026-05-04T130000Z.backup`, { getStorageKey: storageKey });
  expect(await Array.fromAsync(backup.entries, ({ path }) => path)).toEqual(
    expect.arrayContaining(["app.db", "personas/p1.json"]),
  );
}, 180_000);

test.each([
  ["forward", "2026-03-28T10:00:00Z", ["2026-03-29T09:30:00Z", "2026-03-29T10:00:00Z"], [-60, -120, -120]],
  ["back", "2026-10-24T10:00:00Z", ["2026-10-25T09:30:00Z", "2026-10-25T10:00:00Z"], [-120, -60, -60]],
])("daily backups are 24 hours apart on the day when the clock goes %s in Berlin", async (_, first, later, offsets) => {
  await using home = await tempFolder();
  const { stdout, success } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "tests/helpers/app/daily_backups.ts", home.file("data"), home.file("backups"), first, ...later],
    env: { TZ: "Europe/Berlin" },
    stderr: "inherit",
  }).output();
  expect(success).toBe(true);
  const nameOf = (time: string) => `parlor-${time.replaceAll(":", "")}.backup`;
  expect(JSON.parse(new TextDecoder().decode(stdout))).toEqual({
    offsets,
    found: [[nameOf(first)], [nameOf(first)], [first, later[1]!].map(nameOf)],
  });
}, 180_000);

test("a fresh database never displaces backups of an earlier one, nor does one that has shrunk", async () => {
  await using home = await tempFolder();
  const folder = home.file("backups");
  let nowMs = Date.parse("2026-05-01T10:00:00Z");
  const options = { config: { backupDir: folder, backupKeep: 2 }, now: () => nowMs };
  const startsOf = new Map<string, number>();
  /** Creates one daily backup per start. */
  const run = async (dataDir: string, days: number) => {
    await using app = await openTestApp({ ...options, dataDir });
    const countDone = async () => (await jobsOf(app)).filter(({ state }) => state === "done").length;
    let starts = startsOf.get(dataDir) ?? 0;
    // A restart would end a backup that is being written.
    await expect.poll(countDone).toBe(++starts);
    for (let day = 0; day < days; day++) {
      nowMs += DAY_MS;
      await app.restart();
      await expect.poll(countDone).toBe(++starts);
    }
    startsOf.set(dataDir, starts);
  };
  await run(home.file("first"), 2);
  const good = await backups(folder);
  expect(good).toHaveLength(2);
  nowMs += DAY_MS;
  await run(home.file("second"), 3);
  expect((await backups(folder)).slice(0, 2)).toEqual(good);
  expect(await backups(folder), "its own rotate").toHaveLength(4);

  const large = "parlor-2026-05-02T000000Z.backup";
  await Deno.writeFile(`${folder}/${large}`, new Uint8Array((await Deno.stat(`${folder}/${good[0]}`)).size * 3));
  nowMs += DAY_MS;
  await run(home.file("first"), 1);
  const left = await backups(folder);
  expect(left).toContain(large);
  expect(left, "those of its own size go").not.toContain(good[0]);
}, 180_000);

test("a backup that can't be written is a failed job with a reason, and the server keeps running", async () => {
  await using home = await tempFolder();
  await Deno.writeTextFile(home.file("file"), "");
  await using app = await openTestApp({ config: { backupDir: home.file("file/below") } });
  await expect.poll(() => jobsOf(app)).toMatchObject([{ state: "failed" }]);
  expect((await app.get("/api/personas")).status).toBe(200);
});

test("a backup_dir within the data folder stops startup", async () => {
  await using home = await tempFolder();
  const start = openTestApp({ dataDir: home.file("data"), config: { backupDir: home.file("data/backups") } });
  await expect(start).rejects.toMatchObject({ message: expect.stringContaining("backup_dir") });
});

async function started(app: TestApp): Promise<{ id: string; title: string }> {
  const answer = await app.post("/api/data/backups");
  expect(answer.status).toBe(202);
  const job = await answer.json();
  expect(answer.headers.get("x-parlor-job-id")).toBe(job.id);
  return job;
}

test(
  "a requested backup is created at once, can be downloaded whole or in ranges, and displaces no daily one",
  async () => {
    await using home = await tempFolder();
    const folder = home.file("backups");
    let nowMs = Date.parse("2026-05-01T10:00:00Z");
    await using app = await openTestApp({ config: { backupDir: folder, backupKeep: 1 }, now: () => nowMs });
    await app.put("/api/personas/p1", { name: "Ann" });
    await expect.poll(async () => (await jobsOf(app)).map(({ state }) => state)).toEqual(["done"]);
    const names: string[] = [];
    for (const _ of [1, 2]) {
      nowMs += 60_000;
      const { id } = await started(app);
      expect(await app.services.jobs.ended(id)).toMatchObject({ state: "done", title: "Backup" });
      names.push(`parlor-2026-05-01T10${new Date(nowMs).toISOString().slice(14, 16)}00Z-asked.backup`);
    }
    expect(await backups(folder)).toEqual(["parlor-2026-05-01T100000Z.backup", ...names].sort());
    const listed = (await (await app.get("/api/data")).json()).backups;
    expect(listed.map(({ name }: { name: string }) => name).sort()).toEqual(await backups(folder));

    const path = `/api/data/backups/${names[0]}`;
    const whole = await app.get(path);
    expect(whole.headers.get("content-disposition")).toContain(`filename="${names[0]}"`);
    const bytes = new Uint8Array(await whole.arrayBuffer());
    expect(bytes).toEqual(await Deno.readFile(`${folder}/${names[0]}`));
    const part = await app.get(path, { headers: { range: "bytes=10-19" } });
    expect([part.status, new Uint8Array(await part.arrayBuffer())]).toEqual([206, bytes.slice(10, 20)]);

    // It can be opened elsewhere.
    await Deno.writeFile(home.file("carried"), bytes);
    using backup = await openBackup(home.file("carried"), {
      getStorageKey: () => Deno.readFile(`${app.dataDir}/storage-key`),
    });
    expect(await Array.fromAsync(backup.entries, ({ path }) => path)).toContain("personas/p1.json");
  },
  180_000,
);

test("two concurrent requests share a backup; a cancelled one leaves no file", async () => {
  await using home = await tempFolder();
  const folder = home.file("backups");
  await using app = await openTestApp({ config: { backupDir: folder } });
  await expect.poll(async () => (await jobsOf(app))[0]?.state).toBe("done");
  const before = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
  await Deno.writeFile(`${app.dataDir}/large`, new Uint8Array());
  await Deno.truncate(`${app.dataDir}/large`, 1_500_000_000);
  const [first, second] = [await started(app), await started(app)];
  expect(second.id).toBe(first.id);
  await expect.poll(() => app.services.jobs.get(first.id).progress)
    .toMatchObject({ done: expect.any(Number), total: expect.any(Number), unit: "bytes" });
  const { total } = app.services.jobs.get(first.id).progress!;
  expect(total).toBeGreaterThan(3_000_000_000);
  const cancelled = await app.post(`/api/jobs/${first.id}/cancel`, {});
  expect(await cancelled.json()).toMatchObject({ state: "cancelled" });
  expect(await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).toEqual(before);
  const left = await Array.fromAsync(Deno.readDir(app.dataDir), ({ name }) => name);
  // The server itself writes its small files at any time.
  expect(left.filter((name) => name.startsWith(".backup-"))).toEqual([]);
}, 180_000);

test("a start removes this server's unfinished backup at once, and another program's after an hour", async () => {
  await using home = await tempFolder();
  const folder = home.file("backups");
  await using app = await openTestApp({ config: { backupDir: folder } });
  await expect.poll(async () => (await jobsOf(app))[0]?.state).toBe("done");
  const listNames = () => Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
  const complete = await listNames();
  await Deno.writeFile(`${app.dataDir}/large`, new Uint8Array());
  await Deno.truncate(`${app.dataDir}/large`, 1_500_000_000);
  const { id } = await started(app);
  const findUnfinished = async () => (await listNames()).find((name) => name.endsWith(".tmp"));
  await expect.poll(findUnfinished).toBeDefined();
  const own = (await findUnfinished())!;
  await app.post(`/api/jobs/${id}/cancel`, {});
  await Deno.remove(`${app.dataDir}/large`);
  const [recent, old] = [0, 2].map((hours) => ({
    name: `.parlor-2026-05-01T030000Z.backup.${crypto.randomUUID()}.tmp`,
    changedAt: new Date(Date.now() - hours * 60 * 60 * 1000),
  })) as [{ name: string; changedAt: Date }, { name: string; changedAt: Date }];
  const others = [recent, old, { name: `.notes.txt.${crypto.randomUUID()}.tmp`, changedAt: old.changedAt }];
  for (const { name, changedAt } of [{ ...recent, name: own }, ...others]) {
    await Deno.writeTextFile(`${folder}/${name}`, "half");
    await Deno.utime(`${folder}/${name}`, changedAt, changedAt);
  }
  await app.restart();
  await expect.poll(async () => (await listNames()).sort()).toEqual([...complete, recent.name, others[2]!.name].sort());
}, 180_000);

test("a refused restore leaves nothing but the lock", async () => {
  await using home = await tempFolder();
  await using app = await openTestApp();
  const storageKey = await Deno.readFile(`${app.dataDir}/storage-key`);
  const path = home.file("a.backup");
  await makeBackup({
    dataDir: app.dataDir,
    storageKey,
    path,
    version: "1",
    nowMs: Date.now(),
    passphrase: "correct horse",
  });
  const bytes = await Deno.readFile(path);
  bytes[Math.floor(bytes.length / 2)]! ^= 1;
  await Deno.writeFile(path, bytes);
  const dataDir = home.file("restored");
  const getPassphrase = () => Promise.resolve("correct horse");
  const restoring = restoreBackup({ path, dataDir, replace: false, now: Date.now, getPassphrase, acceptSetting });
  await expect(restoring).rejects.toBeInstanceOf(AppError);
  expect(await Array.fromAsync(Deno.readDir(dataDir), ({ name }) => name)).toEqual(["lock"]);
});

test("without a folder there are no backups, and no name can lead out of the folder", async () => {
  await using home = await tempFolder();
  await using bare = await openTestApp();
  const refused = await bare.post("/api/data/backups");
  expect([refused.status, (await refused.json()).error]).toMatchObject([503, {
    code: "not_available",
    message: expect.stringContaining("backup_dir"),
  }]);
  await Deno.writeTextFile(home.file("secret.backup"), "not in the folder");
  await Deno.mkdir(home.file("backups/inner.backup"), { recursive: true });
  await using app = await openTestApp({ config: { backupDir: home.file("backups") } });
  for (
    const name of ["..%2Fsecret.backup", "none.backup", "inner.backup", ".hidden.backup", "%2e%2e%2fsecret.backup"]
  ) {
    const answer = await app.get(`/api/data/backups/${name}`);
    expect([name, answer.status]).toEqual([name, 404]);
    await answer.body?.cancel();
    const removal = await app.delete(`/api/data/backups/${name}`);
    expect([name, removal.status, (await removal.json()).error.code]).toEqual([name, 404, "not_found"]);
  }
  expect(await Deno.readTextFile(home.file("secret.backup"))).toBe("not in the folder");
  expect((await Deno.stat(home.file("backups/inner.backup"))).isDirectory).toBe(true);
  expect((await (await bare.get("/api/data/backups/a.backup")).json()).error.code).toBe("not_found");
});

test("a backup is deleted permanently, and of a link only the link itself", async () => {
  await using home = await tempFolder();
  const folder = home.file("backups");
  await Deno.mkdir(folder);
  await Deno.writeTextFile(`${folder}/a.backup`, "one");
  await Deno.writeTextFile(`${folder}/notes.txt`, "no backup");
  await Deno.writeTextFile(home.file("elsewhere.backup"), "another disk's");
  await Deno.symlink(home.file("elsewhere.backup"), `${folder}/link.backup`);
  await using app = await openTestApp({ config: { backupDir: folder } });
  const names = async () =>
    (await (await app.get("/api/data")).json()).backups.map(({ name }: { name: string }) => name);
  expect(await names()).toEqual(expect.arrayContaining(["a.backup", "link.backup"]));
  expect((await app.delete("/api/data/backups/a.backup")).status).toBe(204);
  expect((await app.delete("/api/data/backups/a.backup")).status).toBe(404);
  expect((await app.delete("/api/data/backups/link.backup")).status).toBe(204);
  expect((await app.delete("/api/data/backups/notes.txt")).status).toBe(404);
  expect(await names()).not.toEqual(expect.arrayContaining(["a.backup"]));
  expect(await Deno.readTextFile(home.file("elsewhere.backup"))).toBe("another disk's");
  expect(await Deno.readTextFile(`${folder}/notes.txt`)).toBe("no backup");
});

test("the command after a backup receives the file; if it fails, the job fails and the backup stays", async () => {
  await using home = await tempFolder();
  const folder = home.file("backups");
  const script = home.file("after.sh");
  const took = home.file("took");
  const body = `cp "$PARLOR_BACKUP_FILE" "${took}"; test -z "$PARLOR_BACKUP_PASSPHRASE" || exit 9`;
  await Deno.writeTextFile(script, body);
  await using app = await openTestApp({ config: { backupDir: folder, backupAfter: ["/bin/sh", script] } });
  await expect.poll(async () => (await jobsOf(app)).map(({ state }) => state)).toEqual(["done"]);
  const [name] = await backups(folder);
  expect(await Deno.readFile(took)).toEqual(await Deno.readFile(`${folder}/${name}`));
  expect(await jobsOf(app)).toMatchObject([{ detail: { after: "/bin/sh", contents: expect.any(String) } }]);

  await Deno.writeTextFile(script, "echo first; echo no route to host >&2; exit 3");
  const { id } = await started(app);
  const failed = await app.services.jobs.ended(id);
  expect(failed).toMatchObject({ state: "failed", error: { code: "upstream_error" } });
  expect(failed.error!.message).toMatch(
    /^The backup ".*" was created, but .*"\/bin\/sh" ended with code 3: .*no route/,
  );
  expect(await Array.fromAsync(Deno.readDir(folder))).toHaveLength(2);
  const lines = app.logLines.map((line) => JSON.parse(line));
  expect(lines.find(({ message }) => message === "Ran backup_after")).toMatchObject({
    level: "info",
    program: "/bin/sh",
    seconds: expect.any(Number),
  });
  expect(lines.find(({ message }) => message === "backup_after failed")).toMatchObject({
    level: "error",
    program: "/bin/sh",
    error: failed.error!.message,
  });

  await Deno.writeTextFile(script, `echo running >"${took}.running"; sleep 600; echo never`);
  const hanging = await started(app);
  await expect.poll(() => Deno.stat(`${took}.running`).then(() => true, () => false)).toBe(true);
  expect(await (await app.post(`/api/jobs/${hanging.id}/cancel`, {})).json()).toMatchObject({ state: "cancelled" });
  expect(await Array.fromAsync(Deno.readDir(folder)), "its backup stays, too").toHaveLength(3);
}, 180_000);

test("the command after a backup is stopped with everything it has started after one hour", async () => {
  expect(AFTER_BACKUP_TIMEOUT_MS).toBe(3_600_000);
  await using home = await tempFolder();
  const script = home.file("after.sh");
  const begun = home.file("begun");
  await Deno.writeTextFile(script, `echo uploading; echo >"${begun}"; sleep 600; echo never`);
  using clock = standingClock(); // the script may start late
  const signal = new AbortController().signal;
  const ended = runAfterBackup({ command: ["/bin/sh", script], file: home.file("b"), signal, timeoutMs: 500 });
  ended.catch(() => {});
  await happened(() => existsSync(begun));
  await expect(clock.until(ended, 500)).rejects.toMatchObject({
    code: "upstream_timeout",
    message: expect.stringMatching(/was created, but backup_after failed: .*: uploading$/),
  });
});

test("a second backup within the same second gets another name", async () => {
  await using home = await tempFolder();
  const folder = home.file("backups");
  await using app = await openTestApp({ config: { backupDir: folder }, now: () => 1_800_000_000_000 });
  await expect.poll(async () => (await jobsOf(app)).map(({ state }) => state)).toEqual(["done"]);
  for (let n = 0; n < 2; n++) await app.services.jobs.ended((await started(app)).id);
  expect(await backups(folder)).toHaveLength(3);
});

test("a folder that must be a mount point isn't filled while its disk is missing", async () => {
  await using home = await tempFolder();
  const backupDir = home.file("usb");
  await Deno.mkdir(backupDir);
  await using app = await openTestApp({ config: { backupDir, backupDirMustBeMount: true } });
  await expect.poll(() => jobsOf(app)).toMatchObject([{
    state: "failed",
    error: { message: expect.stringContaining("Is its disk mounted?") },
  }]);
  expect(await Array.fromAsync(Deno.readDir(backupDir))).toEqual([]);
  expect((await (await app.get("/api/findings")).json()).map(({ code }: { code: string }) => code))
    .toContain("backup_dir_not_mounted");
});

test.skipIf(Deno.build.os !== "linux")("a folder on a separate disk counts as mounted", async () => {
  // Every Linux has a file system in memory there.
  expect(await isMounted("/dev/shm")).toBe(true);
  expect(await isMounted("/dev/shm/parlor-backups")).toBe(true);
  expect(await isMounted("/dev/shm/parlor-backups/deeper")).toBe(false);
});

test("progress ends at 100 %, and a backup lists its contents", async () => {
  await using home = await tempFolder();
  await using app = await openTestApp({ config: { backupDir: home.file("backups") } });
  await app.put("/api/personas/p1", { name: "Ann" });
  await app.put("/api/conversations/c1", { title: "One", messages: [] });
  // The daily backup at the start may be older than the chat.
  await expect.poll(async () => (await jobsOf(app)).map(({ state }) => state)).toEqual(["done"]);
  const { id } = await started(app);
  const { progress, detail } = await app.services.jobs.ended(id);
  expect(progress!.done).toBe(progress!.total);
  expect(detail).toMatchObject({
    contents: expect.stringMatching(/^1 chat, .*1 persona/),
    chats: 1,
    personas: 1,
    recordings: 0,
  });
});

test("a restore keeps modification times", async () => {
  await using home = await tempFolder();
  await using app = await openTestApp();
  await app.put("/api/personas/p1", { name: "Ann" });
  const storageKey = await Deno.readFile(`${app.dataDir}/storage-key`);
  const changedAt = new Date("2024-03-01T12:00:00Z");
  await Deno.utime(`${app.dataDir}/personas/p1.json`, changedAt, changedAt);
  const path = home.file("a.backup");
  const backup = { dataDir: app.dataDir, storageKey, path, version: "1", nowMs: Date.now() };
  const made = await makeBackup({ ...backup, passphrase: "correct horse" });
  const dataDir = home.file("restored");
  const passphrase = () => Promise.resolve("correct horse");
  const restored = await restoreBackup({
    path,
    dataDir,
    replace: false,
    now: Date.now,
    getPassphrase: passphrase,
    acceptSetting,
  });
  expect((await Deno.stat(`${dataDir}/personas/p1.json`)).mtime).toEqual(changedAt);
  expect(restored.contents).toEqual(made.contents);
  expect(restored.contents).toMatchObject({ personas: 1 });
});

test("a restore contains documents, their text and their owners", async () => {
  await using home = await tempFolder();
  await using app = await openTestApp();
  const original = "The lighthouse has 17 windows.";
  const { id } = await addDocument(app, "almanac.txt", original);
  await app.put("/api/personas/p1", { name: "Ann", documents: [{ id, use: "whole" }] });
  const storageKey = await Deno.readFile(`${app.dataDir}/storage-key`);
  const path = home.file("a.backup");
  const passphrase = "correct horse";
  await makeBackup({ dataDir: app.dataDir, storageKey, path, version: "1", nowMs: Date.now(), passphrase });
  await app.delete(`/api/documents/${id}`); // what happens afterward isn't part of it
  const dataDir = home.file("restored");
  await restoreBackup({
    path,
    dataDir,
    replace: false,
    now: Date.now,
    getPassphrase: () => Promise.resolve(passphrase),
    acceptSetting,
  });
  await using restored = await openTestApp({ dataDir });
  expect(await (await restored.get(`/api/documents/${id}`)).json()).toMatchObject({
    name: "almanac.txt",
    state: "ready",
  });
  expect(await readText(restored, id)).toEqual([{ n: 1, text: original }]);
  expect(await (await restored.get(`/api/documents/${id}/file`)).text()).toBe(original);
  expect((await (await restored.get("/api/personas/p1")).json()).documents).toEqual([{ id, use: "whole" }]);
});

test("a backup counts recordings separately from images, and a restore brings both back", async () => {
  await using home = await tempFolder();
  await using app = await openTestApp();
  await putPicture(app, "a.png");
  for (const [name, format] of [["a.wav", "wav"], ["b.webm", "webm"]] as const) {
    await app.put(`/api/attachments/${name}`, recording(format), { headers: { "Content-Type": "audio/wav" } });
  }
  const storageKey = await Deno.readFile(`${app.dataDir}/storage-key`);
  const path = home.file("a.backup");
  const backup = { dataDir: app.dataDir, storageKey, path, version: "1", nowMs: Date.now() };
  const made = await makeBackup({ ...backup, passphrase: "correct horse" });
  expect(made.contents).toMatchObject({ images: 1, recordings: 2 });
  const dataDir = home.file("restored");
  const passphrase = () => Promise.resolve("correct horse");
  const restored = await restoreBackup({
    path,
    dataDir,
    replace: false,
    now: Date.now,
    getPassphrase: passphrase,
    acceptSetting,
  });
  expect(restored.contents).toEqual(made.contents);
  await using second = await openTestApp({ dataDir });
  expect(await (await second.get("/api/attachments/b.webm")).bytes()).toEqual(recording("webm"));
});
