import { expect, test, vi } from "vitest";
import { ReplyRunner } from "../../../services/chat/reply_runner.ts";
import { ConversationWriter } from "../../../services/conversations/conversation_writer.ts";
import { ask, gather, savedMessage, until, useModel } from "../../helpers/app/chat_client.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { fill, smallFileSystem } from "../../helpers/processes/storage_small_disk.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";

test(
  "ends an unsaved reply with an error while the disk is full, and saves it later",
  { tags: ["D03"] },
  async (context) => {
    const folder = await Deno.makeTempDir({ prefix: "parlor-test-" });
    const disk = await smallFileSystem(`${folder}/data`, 6);
    if (disk === undefined) {
      console.warn("SKIPPED D03 of a reply: only root on Linux can mount a small file system");
      return context.skip();
    }
    try {
      await using llm = await openFakeLlm({ switches: { manual: "on" } });
      await using app = await openTestApp({ dataDir: `${folder}/data` });
      await useModel(app, llm);
      const follow = async () => await gather(await app.get("/api/chat/replies/a1"));
      const response = await ask(app, 1);
      const call = await llm.nextCall();
      await call.emit("All of it");
      await until(async () => (await savedMessage(app, "a1"))?.content === "All of it", "the text came");
      await fill(`${folder}/data/everything_else`);
      await call.finish();

      const refused = { isDone: false, text: "All of it", error: { code: "storage_full" } };
      const heard = await gather(response);
      expect(heard).toMatchObject(refused);
      expect(heard.error!.message).toMatch(/^Can't save the reply yet. Its text is safe and will be saved later: /);
      expect(await follow(), "whoever asks later").toMatchObject(refused);
      const unsaved = { status: "failed", content: "All of it", error: { code: "storage_full" } };
      expect(await savedMessage(app, "a1")).toMatchObject(unsaved);
      expect((await ask(app, 1, { stream: false })).status, "as one object").toBe(507);
      expect((await ask(app, 2)).status, "it still runs").toBe(409);
      expect((await app.put("/api/conversations/c1", { messages: [] })).status, "what is not saved is not left out")
        .toBe(507);
      expect((await app.delete("/api/conversations/c1")).status).toBe(507);
      expect((await app.post("/api/chat/replies/a1/stop")).status).toBe(507);
      expect(await savedMessage(app, "a1")).toMatchObject(unsaved);

      await Deno.remove(`${folder}/data/everything_else`);
      await until(async () => (await savedMessage(app, "a1"))?.status === "complete", "it is saved");
      const saved = await savedMessage(app, "a1");
      expect(saved).toMatchObject({ content: "All of it" });
      expect(saved).not.toHaveProperty("error");
      await until(async () => (await (await app.get("/api/chat/replies")).json()).length === 0, "it is over");
      expect(await follow()).toMatchObject({ isDone: true, text: "All of it" });
    } finally {
      await disk[Symbol.asyncDispose]();
      await Deno.remove(folder, { recursive: true });
    }
  },
);

test(
  "keeps the text of an unsaved reply when the server stops, marked as interrupted",
  { tags: ["D03"] },
  async (context) => {
    const folder = await Deno.makeTempDir({ prefix: "parlor-test-" });
    const disk = await smallFileSystem(`${folder}/data`, 6);
    if (disk === undefined) {
      console.warn("SKIPPED D03 of a reply at a stop: only root on Linux can mount a small file system");
      return context.skip();
    }
    try {
      await using llm = await openFakeLlm({ switches: { manual: "on" } });
      await using app = await openTestApp({ dataDir: `${folder}/data` });
      await useModel(app, llm);
      const response = await ask(app, 1);
      const call = await llm.nextCall();
      await call.emit("All of it");
      await until(async () => (await savedMessage(app, "a1"))?.content === "All of it", "the text came");
      await fill(`${folder}/data/everything_else`);
      const heard = gather(response);
      await app.restart(() => Deno.remove(`${folder}/data/everything_else`));
      expect(await heard).toMatchObject({ isDone: false, error: { code: "storage_full" } });
      expect(await savedMessage(app, "a1")).toMatchObject({ content: "All of it", status: "interrupted" });
    } finally {
      await disk[Symbol.asyncDispose]();
      await Deno.remove(folder, { recursive: true });
    }
  },
);

test("a reply that has ended, but isn't saved yet when the server stops, is saved as it ended", async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp", switches: { manual: "on" } });
  // The client hears of the end, however long it takes.
  await using app = await openTestApp({ limits: { closeMs: 60_000 } });
  await useModel(app, llm);
  const reply = gather(await ask(app, 1));
  const call = await llm.nextCall();
  await call.emit("All of it");
  await until(async () => (await savedMessage(app, "a1"))?.content === "All of it", "the text came");

  const [saving, closing] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { editMessage } = ConversationWriter.prototype;
  const { close } = ReplyRunner.prototype;
  async function saveLater(this: ConversationWriter, ...args: Parameters<typeof editMessage>) {
    saving.resolve();
    await closing.promise;
    return await editMessage.apply(this, args);
  }
  const saves = vi.spyOn(ConversationWriter.prototype, "editMessage").mockImplementation(saveLater);
  const closes = vi.spyOn(ReplyRunner.prototype, "close").mockImplementation(function (this: ReplyRunner) {
    const closed = close.call(this);
    closing.resolve();
    return closed;
  });
  try {
    await call.finish();
    await saving.promise;
    await app.restart();
  } finally {
    closing.resolve();
    saves.mockRestore();
    closes.mockRestore();
  }
  expect(await reply).toMatchObject({ text: "All of it", isDone: true });
  expect(await savedMessage(app, "a1")).toMatchObject({ content: "All of it", status: "complete" });
  expect(llm.chats).toHaveLength(1);
});
