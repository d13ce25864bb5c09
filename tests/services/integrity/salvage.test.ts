import { expect, test } from "vitest";
import { restoreBackup } from "../../../services/backup/restore.ts";
import { overwritePage } from "../../helpers/files/damage.ts";
import { say } from "../../helpers/app/stored_chat.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";

test("with a bad page in app.db a backup is made of what can be read, and names the rest", async () => {
  await using home = await tempFolder();
  const options = { config: { backupDir: home.file("backups"), backupSchedule: "off" } };
  await using app = await openTestApp(options);
  for (const id of ["a", "b", "c"]) {
    await app.put(`/api/conversations/${id}`, { title: `Chat ${id}`, messages: [say(`${id}0`)] });
  }
  await app.put("/api/lorebooks/book", { name: "Book", book: { entries: [] } });
  await app.restart(() => overwritePage(app.dataDir, { table: "document", column: "sealed", where: "id = 'book'" }));
  const { id } = await (await app.post("/api/data/backups")).json();
  const job = await app.services.jobs.ended(id);
  expect(job).toMatchObject({ state: "done", detail: { unreadable_paths: expect.stringContaining("lorebooks/book") } });
  const [file] = await Array.fromAsync(Deno.readDir(home.file("backups")));

  const dataDir = home.file("restored");
  await Deno.mkdir(dataDir, { mode: 0o700 });
  await Deno.copyFile(`${app.dataDir}/storage-key`, `${dataDir}/storage-key`);
  await restoreBackup({
    path: `${home.file("backups")}/${file!.name}`,
    dataDir,
    replace: false,
    now: Date.now,
    getPassphrase: () => Promise.reject(new Error("not needed")),
    acceptSetting: () => false,
  });
  await using restored = await openTestApp({ dataDir });
  for (const id of ["a", "b", "c"]) {
    expect((await (await restored.get(`/api/conversations/${id}`)).json()).title).toBe(`Chat ${id}`);
  }
});
