/** @slow Folders with one of everything are damaged and restored from backups. */
import { expect, test } from "vitest";
import { rotateKey } from "../../../services/backup/key_management.ts";
import { cutFile, flipSealed } from "../../helpers/files/damage.ts";
import { putPicture } from "../../helpers/files/pictures.ts";
import { say } from "../../helpers/app/stored_chat.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";
import { backUp } from "../../helpers/app/back_up.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

const restore = async (app: TestApp, path: string, more = {}) => {
  const answer = await app.post("/api/data/unreadable/restore", { path, ...more });
  return [answer.status, await answer.json()];
};

const listUnreadable = async (app: TestApp) => {
  const { items } = await (await app.post("/api/data/check")).json();
  return items.map(({ path }: { path: string }) => path).sort();
};

test("what a backup has is restored from it: titles, messages, drafts, queues, lorebooks, settings, pictures", async () => {
  await using home = await tempFolder();
  await using app = await openTestApp({ config: { backupDir: home.file("backups") } });
  await app.put("/api/conversations/c1", { title: "The pond", messages: [say("m0"), say("m1")] });
  await app.patch("/api/conversations/c1/draft", { draft: "half a thought" });
  await app.post("/api/conversations/c1/queue", { message: { content: "waits" } });
  await app.put("/api/lorebooks/book", { name: "Book", book: { entries: [] } });
  await app.patch("/api/settings", { display_name: "Ann" });
  await putPicture(app, "a.png");
  await backUp(app);
  const read = async () =>
    await Promise.all(
      ["conversations/c1", "conversations/c1/queue", "lorebooks/book", "settings"].map(async (path) =>
        await (await app.get(`/api/${path}`)).json()
      ),
    );
  const before = await read();
  const picture = await (await app.get("/api/attachments/a.png")).bytes();
  const [file] = await Array.fromAsync(Deno.readDir(`${app.dataDir}/attachments`));
  await app.restart(async () => {
    flipSealed(app.dataDir, { table: "conversation", column: "head", where: "id = 'c1'" });
    flipSealed(app.dataDir, { table: "block", column: "sealed", where: "conversation_id = 'c1'" });
    flipSealed(app.dataDir, { table: "draft", column: "sealed", where: "conversation_id = 'c1'" });
    flipSealed(app.dataDir, { table: "message_queue", column: "sealed", where: "conversation_id = 'c1'" });
    flipSealed(app.dataDir, { table: "document", column: "sealed", where: "id = 'book'" });
    flipSealed(app.dataDir, { table: "setting", column: "sealed", where: "key = 'owner_settings'" });
    await cutFile(`${app.dataDir}/attachments/${file!.name}`);
  });
  const damaged = ["attachments/a.png", "conversations/c1", "lorebooks/book", "settings/owner_settings"];
  expect(await listUnreadable(app)).toEqual(damaged);
  for (const path of damaged) expect(await restore(app, path)).toMatchObject([200, { from: "backup" }]);
  expect((await (await app.get("/api/data/unreadable")).json()).items).toEqual([]);
  expect(await read()).toEqual(before);
  expect(await (await app.get("/api/attachments/a.png")).bytes()).toEqual(picture);
  expect(await restore(app, "lorebooks/book")).toMatchObject([404, { error: { code: "not_found" } }]);
});

test("a changed title keeps the messages that came after the backup", async () => {
  await using home = await tempFolder();
  await using app = await openTestApp({ config: { backupDir: home.file("backups") } });
  await app.put("/api/conversations/c1", { title: "The pond", messages: [say("m0")] });
  await backUp(app);
  await app.post("/api/conversations/c1/messages", { message: say("m1") });
  flipSealed(app.dataDir, { table: "conversation", column: "head", where: "id = 'c1'" });
  expect(await restore(app, "conversations/c1")).toMatchObject([200, { from: "backup" }]);
  const { title, messages, damaged } = await (await app.get("/api/conversations/c1")).json();
  expect([title, messages.map(({ id }: { id: string }) => id), damaged]).toEqual(["The pond", ["m0", "m1"], undefined]);
});

test("messages that changed since the backup are replaced by an older state only if that is accepted", async () => {
  await using home = await tempFolder();
  await using app = await openTestApp({ config: { backupDir: home.file("backups") } });
  await app.put("/api/conversations/c1", { title: "The pond", messages: [say("m0")] });
  await backUp(app);
  await app.post("/api/conversations/c1/messages", { message: say("m1") });
  flipSealed(app.dataDir, { table: "block", column: "sealed", where: "conversation_id = 'c1' AND live = 1" });
  expect(await restore(app, "conversations/c1")).toMatchObject([409, { error: { code: "conflict" } }]);
  expect(await restore(app, "conversations/c1", { accept_older: true })).toMatchObject([200, { from: "backup" }]);
  const { messages, damaged } = await (await app.get("/api/conversations/c1")).json();
  expect([messages.map(({ id }: { id: string }) => id), damaged]).toEqual([["m0"], undefined]);
  expect((await app.post("/api/conversations/c1/messages", { message: say("m1") })).status).toBe(201);
});

test("a card comes from its latest readable version, else from a backup; without either the answer says so", async () => {
  await using home = await tempFolder();
  await using app = await openTestApp({ config: { backupDir: home.file("backups") } });
  for (const description of ["At the mill", "At the lake"]) {
    await app.put("/api/characters/heron", { card: { name: "Heron", description } });
  }
  await app.put("/api/personas/baker", { name: "Baker" });
  await backUp(app);
  await app.put("/api/characters/late", { card: { name: "Late" } });
  for (const file of ["characters/heron.json", "characters/late.json", "personas/baker.json"]) {
    await cutFile(`${app.dataDir}/${file}`);
  }
  expect(await listUnreadable(app)).toEqual(["characters/heron", "characters/late", "personas/baker"]);
  expect(await restore(app, "characters/heron")).toMatchObject([200, { from: "version" }]);
  expect((await (await app.get("/api/characters/heron")).json()).card.data.description).toBe("At the mill");
  expect(await restore(app, "personas/baker")).toMatchObject([200, { from: "backup" }]);
  expect((await (await app.get("/api/personas/baker")).json()).name).toBe("Baker");
  expect(await restore(app, "characters/late")).toMatchObject([503, { error: { code: "not_available" } }]);
  expect((await (await app.get("/api/data/unreadable")).json()).items).toMatchObject([{ path: "characters/late" }]);
});

test("parlor restore --item restores while the server is stopped", async () => {
  await using app = await openTestApp();
  for (const description of ["At the mill", "At the lake"]) {
    await app.put("/api/characters/heron", { card: { name: "Heron", description } });
  }
  await app.restart(async () => {
    await cutFile(`${app.dataDir}/characters/heron.json`);
    const command = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "main.ts", "restore", "--item", "characters/heron", "--data-dir", app.dataDir],
    });
    const { code, stdout } = await command.output();
    expect([code, new TextDecoder().decode(stdout)]).toEqual([
      0,
      expect.stringContaining('Restored "characters/heron" from its version of'),
    ]);
  });
  expect((await (await app.get("/api/characters/heron")).json()).card.data.description).toBe("At the mill");
});

test("a backup with a passphrase from before a rotation of the key still heals", async () => {
  await using home = await tempFolder();
  const config = { backupDir: home.file("backups") };
  await using app = await openTestApp({ config, backupPassphrase: "correct horse" });
  await app.put("/api/conversations/c1", { title: "The pond", messages: [say("m0")] });
  await app.put("/api/lorebooks/book", { name: "Book", book: { entries: [] } });
  await app.put("/api/personas/baker", { name: "Baker" });
  await app.patch("/api/settings", { display_name: "Ann" });
  await putPicture(app, "a.png");
  await backUp(app);
  const paths = ["conversations/c1", "lorebooks/book", "settings"];
  const read = async () => await Promise.all(paths.map(async (path) => await (await app.get(`/api/${path}`)).json()));
  const before = await read();
  const picture = await (await app.get("/api/attachments/a.png")).bytes();
  await app.restart(async () => void await rotateKey({ dataDir: app.dataDir, keepUnreadable: false }));
  await app.post("/api/conversations/c1/messages", { message: say("m1") });
  const [file] = await Array.fromAsync(Deno.readDir(`${app.dataDir}/attachments`));
  await app.restart(async () => {
    flipSealed(app.dataDir, { table: "conversation", column: "head", where: "id = 'c1'" });
    flipSealed(app.dataDir, { table: "document", column: "sealed", where: "id = 'book'" });
    flipSealed(app.dataDir, { table: "setting", column: "sealed", where: "key = 'owner_settings'" });
    await cutFile(`${app.dataDir}/attachments/${file!.name}`);
    await cutFile(`${app.dataDir}/personas/baker.json`);
  });
  const damaged = await listUnreadable(app);
  expect(damaged).toEqual([
    ...["attachments/a.png", "conversations/c1", "lorebooks/book"],
    ...["personas/baker", "settings/owner_settings"],
  ]);
  for (const path of damaged) expect(await restore(app, path), path).toMatchObject([200, { from: "backup" }]);
  expect((await app.services.integrity()).getState().damages).toEqual([]);
  const [chat, ...rest] = await read();
  expect(chat).toMatchObject({ title: "The pond", messages: [{ id: "m0" }, { id: "m1" }] });
  expect(rest).toEqual(before.slice(1));
  expect(await (await app.get("/api/attachments/a.png")).bytes()).toEqual(picture);
  const names = await Array.fromAsync(Deno.readDir(app.dataDir), ({ name }) => name);
  expect(names.filter((name) => name.startsWith(".backup-"))).toEqual([]);
});
