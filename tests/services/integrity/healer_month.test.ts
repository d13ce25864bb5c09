import { expect, test } from "vitest";
import { flipSealed } from "../../helpers/files/damage.ts";
import { say } from "../../helpers/app/stored_chat.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

test("what a disk damaged on day 3 can be restored on day 30, although seven backups are kept", async () => {
  await using home = await tempFolder();
  const folder = home.file("backups");
  let nowMs = Date.parse("2026-03-01T06:00:00Z");
  await using app = await openTestApp({ now: () => nowMs, config: { backupDir: folder, backupKeep: 7 } });
  const backups = await app.services.backups();
  const ended = (count: number) =>
    expect.poll(
      () => app.services.jobs.list().filter(({ kind, state }) => kind === "backup" && state === "done").length,
      {
        timeout: 60_000,
      },
    ).toBe(count);
  await ended(1);
  await app.put("/api/conversations/pond", { title: "The pond", messages: [say("m0")] });
  await app.put("/api/lorebooks/book", { name: "Book", book: { entries: [] } });
  const before = await (await app.get("/api/conversations/pond")).json();
  for (let day = 2; day <= 30; day++) {
    nowMs += DAY_MS;
    if (day === 4) {
      flipSealed(app.dataDir, { table: "block", column: "sealed", where: "conversation_id = 'pond'" });
    }
    backups.look();
    // Ended jobs leave the list after a week.
    await expect.poll(
      async () =>
        (await backups.list()).length > 0 && app.services.jobs.list().every(({ state }) => state === "done") &&
        (await Array.fromAsync(Deno.readDir(folder))).some(({ name }) =>
          name.includes(new Date(nowMs).toISOString().slice(0, 10))
        ),
      { timeout: 60_000 },
    ).toBe(true);
  }
  const names = (await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).sort();
  expect(names.map((name) => name.slice(7, 17))).toEqual([
    "2026-03-03",
    ...Array.from({ length: 7 }, (_, i) => `2026-03-${24 + i}`),
  ]);
  const answer = await app.post("/api/data/unreadable/restore", { path: "conversations/pond" });
  expect(await answer.json()).toMatchObject({ from: "backup", made_at: expect.stringMatching(/^2026-03-03/) });
  expect(await (await app.get("/api/conversations/pond")).json()).toEqual(before);
}, 600_000);
