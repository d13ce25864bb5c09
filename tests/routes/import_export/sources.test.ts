import { expect, test } from "vitest";
import { getImportSourceFile } from "../../../services/storage/sealed_file.ts";
import { rotateKey } from "../../../services/backup/key_management.ts";
import { listDataFiles } from "../../../services/backup/backup.ts";
import { added, got, importJob, importReport, jsonFile, NOTHING_ADDED as NOTHING } from "../../helpers/app/imported.ts";
import { passTime } from "../../helpers/app/pass_time.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const SECRET = "The lamp is behind the third door";

/** A Claude export with two chats. */
const EXPORT = jsonFile(["One", "Two"].map((name) => ({
  uuid: `chat-${name}`,
  name,
  chat_messages: [{ uuid: `message-${name}`, sender: "human", text: `${SECRET} ${name}` }],
})));

async function importKept(app: TestApp, more = "") {
  return await importReport(app, `kind=claude&name=conversations.json&keep_source=true${more}`, EXPORT);
}

async function listStored(app: TestApp): Promise<string[]> {
  return await Array.fromAsync(Deno.readDir(`${app.dataDir}/import-sources`), ({ name }) => name);
}

test("reads a stored file again without copies: updates, skips and restores are counted", async () => {
  await using app = await openTestApp();
  const first = await importKept(app);
  expect(added(first)).toEqual({ ...NOTHING, conversation: 2 });
  const id = first.source_id!;
  expect(await got(app, "/api/import/sources")).toEqual([{
    id,
    kind: "claude",
    name: "conversations.json",
    size_bytes: EXPORT.length,
    created_at: expect.stringMatching(/Z$/),
  }]);
  const list = async () => (await got(app, "/api/conversations?view=summary")).items as { id: string; title: string }[];
  const [changed, removed] = await list();
  await app.patch(`/api/conversations/${changed!.id}`, { title: "Mine" });

  const preview = await importReport(app, `kind=claude&dry_run=true&source_id=${id}`);
  expect(preview).toMatchObject({ dry_run: true, source_id: id, counts: { conversation: { added: 0, present: 2 } } });
  expect(preview.upload_id).toBeUndefined();
  await app.delete(`/api/conversations/${removed!.id}`);
  await app.delete("/api/trash");
  const again = await importReport(app, `kind=claude&source_id=${id}`);
  expect(again).toMatchObject({ source_id: id, counts: { conversation: { added: 1, updated: 0, present: 1 } } });
  expect((await list()).map(({ title }) => title).sort()).toEqual(["Mine", removed!.title].sort());
  // What was read again isn't stored twice, and nothing of it stays in the clear.
  expect(await listStored(app)).toEqual([id]);
  expect(await Array.fromAsync(Deno.readDir(`${app.dataDir}/uploads`))).toEqual([]);
  const { path } = getImportSourceFile(`${app.dataDir}/import-sources`, id);
  expect(new TextDecoder().decode(await Deno.readFile(path))).not.toContain(SECRET);
});

test("stores a file only if asked, after a preview, too, and not if the import fails", async () => {
  await using app = await openTestApp();
  expect((await importReport(app, "kind=claude&name=my%20chats.json", EXPORT)).source_id).toBeUndefined();
  const { upload_id } = await importReport(
    app,
    "kind=claude&name=my%20chats.json&dry_run=true&keep_source=true",
    EXPORT,
  );
  expect(await listStored(app)).toEqual([]);
  const { source_id } = await importReport(
    app,
    `kind=claude&name=my%20chats.json&keep_source=true&upload_id=${upload_id}`,
  );
  expect(await listStored(app)).toEqual([source_id]);
  const { state } = await importJob(
    app,
    "kind=claude&name=my%20chats.json&keep_source=true",
    new TextEncoder().encode("no"),
  );
  expect([state, await listStored(app)]).toEqual(["failed", [source_id]]);

  const { used } = await got(app, "/api/data");
  expect(used).toContainEqual({ what: "imports", size_bytes: expect.any(Number) });
  expect((await app.delete(`/api/import/sources/${source_id}`)).status).toBe(204);
  expect(await listStored(app)).toEqual([]);
  expect((await app.delete(`/api/import/sources/${source_id}`)).status).toBe(404);
  expect((await app.post(`/api/import?kind=claude&source_id=${source_id}`)).status).toBe(404);
  expect((await app.post(`/api/import?kind=claude&source_id=a&upload_id=b`)).status).toBe(400);
});

test("a stored file is deleted after 30 days that the server has seen", async () => {
  let nowMs = Date.parse("2026-03-01T12:00:00Z");
  await using app = await openTestApp({ now: () => nowMs });
  await importKept(app);
  // A clock that is wrong by years deletes nothing.
  nowMs += 1000 * DAY_MS;
  await app.services.runMaintenance();
  nowMs -= 1000 * DAY_MS;
  await passTime(app, 29 * DAY_MS, (stepMs) => nowMs += stepMs);
  expect(await got(app, "/api/import/sources")).toHaveLength(1);
  await passTime(app, 4 * DAY_MS, (stepMs) => nowMs += stepMs);
  expect(await got(app, "/api/import/sources")).toEqual([]);
  expect(await listStored(app)).toEqual([]);
});

test("a stored file is in no backup, and is read with the new key after a rotation", async () => {
  await using folder = await tempFolder();
  const dataDir = folder.file("data");
  let id: string;
  {
    await using app = await openTestApp({ dataDir });
    id = (await importKept(app)).source_id!;
    const backedUp = await Array.fromAsync(listDataFiles(dataDir), ({ path }) => path);
    expect(backedUp.filter((path) => path.includes(id))).toEqual([]);
    expect(backedUp.length).toBeGreaterThan(0);
  }
  await rotateKey({ dataDir, keepUnreadable: false });
  await using app = await openTestApp({ dataDir });
  const again = await importReport(app, `kind=claude&source_id=${id}`);
  expect(again.counts.conversation).toEqual({ added: 0, updated: 0, present: 2, refused: 0 });
});

test("a damaged stored file is an error of its job and stays deletable", async () => {
  await using app = await openTestApp();
  const id = (await importKept(app)).source_id!;
  const { path } = getImportSourceFile(`${app.dataDir}/import-sources`, id);
  using file = await Deno.open(path, { write: true });
  await file.truncate((await file.stat()).size - 10);
  expect(await got(app, "/api/import/sources")).toEqual([]);
  expect((await app.post(`/api/import?kind=claude&source_id=${id}`)).status).toBe(404);
  expect((await app.delete(`/api/import/sources/${id}`)).status).toBe(204);
});
