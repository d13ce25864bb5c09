/** What a failed regeneration leaves. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { ask, framesOf, gather, savedMessage, understand, until, useModel } from "../../helpers/app/chat_client.ts";
import { type ChildServer, connectModel, startChildServer } from "../../helpers/app/child_server.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { fill, smallFileSystem } from "../../helpers/processes/storage_small_disk.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  llm = await openFakeLlm({ reasoning: ["Hm."] });
  app = await openTestApp();
  await useModel(app, llm);
  await gather(await ask(app, 1));
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm[Symbol.asyncDispose]();
});

const regenerate = (fields: Record<string, unknown> = {}) => ask(app, 1, { action: "regenerate", ...fields });
const answer = () => savedMessage(app, "a1");
const texts = async (): Promise<string[]> =>
  (await (await app.get("/api/conversations/c1/messages/a1/variants")).json())
    .map(({ content }: { content: string }) => content);
const follow = (lastEventId?: string) =>
  app.get("/api/chat/replies/a1", lastEventId === undefined ? {} : { headers: { "Last-Event-ID": lastEventId } });
const isOver = () =>
  until(async () => (await (await app.get("/api/chat/replies")).json()).length === 0, "the reply is over");

test("keeps the good answer when the model refuses, and records the attempt until the next success", async () => {
  const good = await answer();
  llm.switches.fail = "status_json";
  llm.switches.status = 503;
  expect((await regenerate()).status).toBe(502);
  const failed = await answer();
  expect(failed).toEqual({
    ...good,
    last_attempt: {
      action: "regenerate",
      status: "failed",
      error: {
        code: "upstream_error",
        message: expect.any(String),
        upstream: expect.objectContaining({ kind: "overloaded", status: 503, connection_name: "Double" }),
      },
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
    },
  });
  expect(await texts()).toEqual(["Hello"]);
  expect(await gather(await follow()), "who follows the attempt").toMatchObject({
    text: "",
    error: { code: "upstream_error" },
  });
  expect(await gather(await ask(app, 1)), "who sends again").toMatchObject({ text: "Hello", isDone: true });

  llm.switches.fail = "none";
  llm.pieces = ["Better"];
  await gather(await regenerate());
  const better = await answer();
  expect(better).toMatchObject({ content: "Better", status: "complete", variant_count: 2, active_variant: 1 });
  expect(better).not.toHaveProperty("last_attempt");
  expect(await texts()).toEqual(["Hello", "Better"]);
});

test("a stopped reply whose continuation fails stays as it was, and records the attempt", async () => {
  llm.switches.manual = "on";
  const asked = ask(app, 2);
  const call = await llm.nextCall();
  await call.emit("Half a");
  await until(async () => (await savedMessage(app, "a2"))?.content === "Half a", "the reply has begun");
  await app.post("/api/chat/replies/a2/stop");
  await gather(await asked);
  const stopped = await savedMessage(app, "a2");
  llm.switches.manual = "off";
  llm.switches.fail = "status_json";
  llm.switches.status = 503;
  expect((await ask(app, 2, { action: "continue", context: "server", messages: [] })).status).toBe(502);
  expect(await savedMessage(app, "a2")).toMatchObject({
    ...stopped,
    status: "stopped",
    last_attempt: { action: "continue", status: "failed", error: { code: "upstream_error" } },
  });
  llm.switches.fail = "none";
  llm.pieces = [" sentence."];
  await gather(await ask(app, 2, { action: "continue", context: "server", messages: [] }));
  const whole = await savedMessage(app, "a2");
  expect(whole).toMatchObject({ content: expect.stringMatching(/^Half a\s+sentence\.$/), status: "complete" });
  expect(whole).not.toHaveProperty("last_attempt");
});

test("keeps the good answer when the model can't be looked up or no connection is active", async () => {
  const good = await answer();
  await useModel(app, { url: "http://127.0.0.1:9" }, { model: null });
  expect((await regenerate()).status).toBe(502);
  expect(await answer()).toMatchObject({
    ...good,
    last_attempt: { status: "failed", error: { code: "upstream_error" } },
  });
  for (const { id } of await (await app.get("/api/connections")).json()) await app.delete(`/api/connections/${id}`);
  expect((await regenerate()).status).toBe(503);
  expect(await answer()).toMatchObject({ ...good, last_attempt: { error: { code: "not_available" } } });
});

test("keeps the text of a broken attempt as an inactive version", async () => {
  await gather(await regenerate());
  await app.patch("/api/conversations/c1/messages/a1", { active_variant: 0 });
  const good = await answer();
  llm.pieces = ["par", "tial", "never"];
  llm.switches.fail = "cut";
  llm.switches.after = 3;
  const heard = await gather(await regenerate());
  expect(heard).toMatchObject({ text: "partial", isDone: false, error: { code: "upstream_error" } });
  await isOver();
  const failed = await answer();
  expect(failed).toMatchObject({
    ...good,
    variant_count: 3,
    active_variant: 0,
    last_attempt: { status: "failed", error: { code: "upstream_error" } },
  });
  expect(await texts()).toEqual(["Hello", "Hello", "partial"]);
  expect(await gather(await follow())).toMatchObject({ text: "partial", error: { code: "upstream_error" } });
  const lastId = heard.frames.findLast(({ id }) => id !== undefined)!.id;
  expect(await gather(await follow(lastId))).toMatchObject({ text: "", error: { code: "upstream_error" } });
  const picked = await app.patch("/api/conversations/c1/messages/a1", { active_variant: 2 });
  expect(await picked.json()).toMatchObject({ content: "partial", status: "failed", active_variant: 2 });
});

test("follows a running regenerate from any cursor and keeps its text as the active version when stopped", async () => {
  llm.switches.manual = "on";
  const asked = regenerate();
  const call = await llm.nextCall();
  await call.emit("One ");
  await call.emit("two");
  const seen = [];
  for await (const frame of framesOf(await asked)) {
    seen.push(frame);
    if (understand(seen).text === "One two") break;
  }
  expect(await answer()).toMatchObject({ content: "One two", status: "streaming", active_variant: 1 });
  const first = seen.find(({ data }) => data.includes("One"))!;
  const following = follow(first.id);
  const whole = follow();
  await app.post("/api/chat/replies/a1/stop");
  expect((await gather(await whole)).text).toBe("One two");
  expect(understand(seen.slice(0, seen.indexOf(first) + 1)).text + (await gather(await following)).text).toBe(
    "One two",
  );
  const stopped = await answer();
  expect(stopped).toMatchObject({ content: "One two", status: "stopped", variant_count: 2, active_variant: 1 });
  expect(stopped).not.toHaveProperty("last_attempt");
});

test("restores the good answer when a regenerate is stopped before its first token", async () => {
  const good = await answer();
  llm.switches.manual = "on";
  const asked = regenerate();
  const call = await llm.nextCall();
  const stopped = await app.post("/api/chat/replies/a1/stop");
  expect(await stopped.json()).toEqual(good);
  await call.over;
  await (await asked).body?.cancel();
  expect(await answer()).toEqual(good);
  expect(await texts()).toEqual(["Hello"]);
});

test("keeps an answer complete when a continuation fails, and keeps the text of a broken continuation", async () => {
  const good = await answer();
  llm.switches.fail = "status_json";
  llm.switches.status = 503;
  expect((await regenerate({ action: "continue" })).status).toBe(502);
  expect(await answer()).toEqual({ ...good, last_attempt: expect.objectContaining({ status: "failed" }) });
  llm.pieces = [" and", " more", "never"];
  llm.switches.fail = "cut";
  llm.switches.after = 3;
  await gather(await regenerate({ action: "continue" }));
  await isOver();
  expect(await answer()).toMatchObject({ content: "Hello and more", status: "failed", variant_count: 1 });
});

test("keeps the good answer over a restart in the middle of a regenerate", async () => {
  const good = await answer();
  llm.switches.manual = "on";
  const asked = regenerate();
  const call = await llm.nextCall();
  await call.emit("Half");
  await until(async () => (await answer())?.content === "Half", "the text came");
  const heard = gather(await asked);
  await app.restart();
  await heard;
  expect(await answer()).toMatchObject({
    ...good,
    variant_count: 2,
    active_variant: 0,
    last_attempt: { status: "interrupted", error: { code: "interrupted" } },
  });
  expect(await texts()).toEqual(["Hello", "Half"]);
});

test.each([["with", "Half", 2], ["without", "", 1]])(
  "kill -9 in the middle of a regenerate %s text keeps the good answer active",
  { tags: ["D02"], timeout: 240_000 },
  async (_, text, count) => {
    await using folder = await tempFolder();
    const ids = { conversation_id: "c1", user_message_id: "u1", assistant_message_id: "a1" };
    const question = { ...ids, messages: [{ role: "user", content: "Hi" }] };
    const read = async (server: ChildServer) =>
      (await server.json<{ messages: Record<string, unknown>[] }>("GET", "/api/conversations/c1")).messages[1]!;
    const first = await startChildServer({ dataDir: folder.path });
    await connectModel(first, llm.url);
    await gather(await first.request("POST", "/api/chat", question));
    const good = await read(first);
    llm.switches.manual = "on";
    const asked = first.request("POST", "/api/chat", { ...question, action: "regenerate" });
    asked.catch(() => {});
    const call = await llm.nextCall();
    if (text !== "") {
      await call.emit(text);
      await until(async () => (await read(first)).content === text, "the text came");
    }
    await first.kill("SIGKILL");

    await using second = await startChildServer({ dataDir: folder.path });
    expect(await read(second)).toMatchObject({
      ...good,
      variant_count: count,
      active_variant: 0,
      last_attempt: { status: "interrupted", error: { code: "interrupted" } },
    });
    const versions = await second.json<{ content: string }[]>("GET", "/api/conversations/c1/messages/a1/variants");
    expect(versions.map(({ content }) => content)).toEqual(["Hello", text].slice(0, count));
  },
);

test(
  "shows the good answer while a regenerated one can't be saved, and the new one once it is",
  { tags: ["D03"] },
  async (context) => {
    await using folder = await tempFolder();
    const disk = await smallFileSystem(`${folder.path}/data`, 6);
    if (disk === undefined) {
      console.warn("SKIPPED D03 of a regenerate: only root on Linux can mount a small file system");
      return context.skip();
    }
    try {
      await using small = await openTestApp({ dataDir: `${folder.path}/data` });
      await useModel(small, llm);
      await gather(await ask(small, 1));
      const good = await savedMessage(small, "a1");
      llm.switches.manual = "on";
      const asked = ask(small, 1, { action: "regenerate" });
      const call = await llm.nextCall();
      await call.emit("All of it");
      await until(async () => (await savedMessage(small, "a1"))?.content === "All of it", "the text came");
      await fill(`${folder.path}/data/everything_else`);
      await call.finish();
      expect(await gather(await asked)).toMatchObject({ text: "All of it", error: { code: "storage_full" } });
      expect(await savedMessage(small, "a1")).toEqual({
        ...good,
        last_attempt: {
          status: "failed",
          error: { code: "storage_full", message: expect.any(String) },
          created_at: expect.any(String),
        },
      });
      await Deno.remove(`${folder.path}/data/everything_else`);
      await until(async () => {
        const message = await savedMessage(small, "a1");
        return message?.content === "All of it" && message.status === "complete";
      }, "it is saved");
      const saved = await savedMessage(small, "a1");
      expect(saved).toMatchObject({ status: "complete", variant_count: 2, active_variant: 1 });
      expect(saved).not.toHaveProperty("last_attempt");
    } finally {
      await disk[Symbol.asyncDispose]();
    }
  },
);
