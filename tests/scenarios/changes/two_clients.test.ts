import { afterEach, beforeEach, expect, test } from "vitest";
import { ask, framesOf, gather, until, useModel } from "../../helpers/app/chat_client.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { idsOf, readConversation, say, type StoredConversation } from "../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  app = await openTestApp({ titleIdleMs: 10 });
  await app.patch("/api/settings", { auto_title: false });
  llm = await openFakeLlm();
  await useModel(app, llm);
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

/** A page with an open conversation that follows changes only through the event stream. */
class Page {
  /** The shown state; `undefined` after the conversation is deleted. */
  shown: StoredConversation | undefined;
  /** Text of the running reply as it arrives. */
  streamed = "";
  readonly #leave = new AbortController();
  #work: Promise<void> = Promise.resolve();

  static async open(): Promise<Page> {
    const page = new Page();
    const answer = await app.get("/api/events", { signal: page.#leave.signal });
    page.#work = page.#follow(answer);
    await page.#load();
    return page;
  }

  async close(): Promise<void> {
    this.#leave.abort();
    await this.#work;
  }

  async #follow(answer: Response): Promise<void> {
    try {
      for await (const { data } of framesOf(answer)) {
        const { kind, id } = JSON.parse(data);
        if (id !== "c1") continue;
        if (kind === "reply_started") await this.#followReply();
        else if (["conversation", "draft", "reply_ended"].includes(kind)) await this.#load();
      }
    } catch (error) {
      if (!this.#leave.signal.aborted) throw error;
    }
  }

  async #load(): Promise<void> {
    this.shown = await readConversation(app).catch(() => undefined);
  }

  async #followReply(): Promise<void> {
    const replies = await (await app.get("/api/chat/replies")).json();
    const running = replies.find(({ conversation_id }: { conversation_id: string }) => conversation_id === "c1");
    if (running === undefined) return;
    const reply = await app.get(`/api/chat/replies/${running.assistant_message_id}`);
    this.streamed = "";
    for await (const { event, data } of framesOf(reply)) {
      if (event !== undefined || data === "[DONE]") break;
      this.streamed += JSON.parse(data).choices[0]?.delta.content ?? "";
    }
    await this.#load();
  }
}

/** Waits until both pages show the server's state. */
async function agree(pages: Page[], what: string): Promise<void> {
  await until(async () => {
    const wanted = JSON.stringify(await readConversation(app).catch(() => undefined));
    return pages.every(({ shown }) => JSON.stringify(shown) === wanted);
  }, `both pages agree on ${what}`);
}

test("syncs two pages on one conversation: edits, drafts, a running reply, its title, a delete", async () => {
  await app.put("/api/conversations/c1", { messages: [say("m0"), say("m1")] });
  const pages = [await Page.open(), await Page.open()];
  try {
    await agree(pages, "the begin");
    await app.patch("/api/conversations/c1/messages/m0", { content: "edited" });
    await agree(pages, "an edit");
    await app.post("/api/conversations/c1/messages", { message: say("m2") });
    await app.delete("/api/conversations/c1/messages/m1");
    await agree(pages, "messages that came and went");
    expect(pages.map(({ shown }) => idsOf(shown!.messages))).toEqual([["m0", "m2"], ["m0", "m2"]]);
    await app.patch("/api/conversations/c1/draft", { draft: "Dear" });
    await agree(pages, "a draft");
    expect(pages.map(({ shown }) => shown!.draft)).toEqual(["Dear", "Dear"]);
    await app.patch("/api/conversations/c1", { title: "Tea", pinned: true });
    await agree(pages, "a title");

    llm.switches.manual = "on";
    const asked = ask(app, 1);
    const call = await llm.nextCall();
    await call.emit("Hel");
    await until(() => pages.every(({ streamed }) => streamed === "Hel"), "both pages hear the reply");
    await call.emit("lo");
    await until(() => pages.every(({ streamed }) => streamed === "Hello"), "both pages hear all of it");
    await call.finish();
    await gather(await asked);
    await agree(pages, "the reply");
    expect(pages.map(({ shown }) => shown!.messages.at(-1)!.status)).toEqual(["complete", "complete"]);
    await app.delete("/api/conversations/c1");
    await agree(pages, "a delete");
    expect(pages.map(({ shown }) => shown)).toEqual([undefined, undefined]);
    await app.post("/api/trash/conversation-c1/restore");
    await agree(pages, "what came back");
    expect(pages[1]!.shown).toMatchObject({ title: "Tea", draft: "Dear" });
  } finally {
    await Promise.all(pages.map((page) => page.close()));
  }
});

test("shows a generated title on both pages", async () => {
  await app.patch("/api/settings", { auto_title: true });
  llm.switches.manual = "on";
  const asked = ask(app, 1);
  const call = await llm.nextCall();
  await call.emit("Hello");
  const pages = [await Page.open(), await Page.open()];
  try {
    await call.finish();
    await gather(await asked);
    const naming = await llm.nextCall();
    await agree(pages, "the reply");
    expect(pages.map(({ shown }) => shown!.title)).toEqual(["question 1", "question 1"]);
    await naming.emit("Harbour at dusk");
    await naming.finish();
    await until(() => pages.every(({ shown }) => shown!.title === "Harbour at dusk"), "both pages show the title");
  } finally {
    await Promise.all(pages.map((page) => page.close()));
  }
});

test("rejects a stale save with a reason, keeps the other client's text, and restores an earlier version", async () => {
  await app.put("/api/conversations/c1", { title: "Tea", messages: [say("m0")] });
  const [first, second] = [await readConversation(app), await readConversation(app)];
  const save = (document: StoredConversation) =>
    app.put("/api/conversations/c1", document, { headers: { "If-Match": `"${document.revision}"` } });
  first.messages[0]!.content = "written by the first";
  expect((await save(first)).status).toBe(200);
  second.messages[0]!.content = "written by the second";
  const refused = await save(second);
  expect(refused.status).toBe(412);
  const { error } = await refused.json();
  expect(error).toMatchObject({
    code: "revision_mismatch",
    message: expect.stringContaining("it's at version 2"),
  });
  expect((await readConversation(app)).messages[0]!.content).toBe("written by the first");

  second.revision = 2;
  expect((await save(second)).status).toBe(200);
  const versions = await (await app.get("/api/conversations/c1/revisions")).json();
  expect(versions).toMatchObject([{ n: 2, cause: "put" }, { n: 1, cause: "put" }]);
  const restored = await app.post("/api/conversations/c1/revisions/2/restore", undefined, {
    headers: { "If-Match": '"3"' },
  });
  expect(restored.status).toBe(200);
  expect((await readConversation(app)).messages[0]!.content).toBe("written by the first");
  await app.post("/api/conversations/c1/revisions/3/restore");
  expect((await readConversation(app)).messages[0]!.content).toBe("written by the second");
});
