import { afterEach, beforeEach, expect, test } from "vitest";
import { gather, until, useModel } from "../../helpers/app/chat_client.ts";
import { type FakeLlm, type ManualAnswer, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { range, readConversation, say } from "../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  app = await openTestApp({ titleIdleMs: 10 });
  llm = await openFakeLlm({ personality: "llama.cpp" });
  await useModel(app, llm);
  await app.patch("/api/settings", { auto_title: false });
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

interface Chapter {
  text: string;
  from_message_id?: string;
  up_to_message_id: string;
  edited?: boolean;
}
const numberOf = (id: string | undefined) => Number(id!.slice(1));
type Sent = { role: string; content: string }[];
const sentOf = ({ request }: ManualAnswer) => request.json!.messages as Sent;
const turn = (n: number, words = 20) =>
  say(`m${n}`, `${n} ${"word ".repeat(words)}`.trim(), n % 2 ? "assistant" : "user");
const save = (count: number, more: Record<string, unknown> = {}) =>
  app.put("/api/conversations/c1", { title: "Long", messages: range(count).map((n) => turn(n)), ...more });
const summary = async () =>
  (await readConversation(app)).summary as { text: string; up_to_message_id: string } | undefined;

/** Sends a message, responds as the model, and returns the model request. */
async function ask(text = "And now?"): Promise<Sent> {
  const body = { conversation_id: "c1", context: "server", messages: [{ role: "user", content: text }] };
  const asked = app.post("/api/chat", body);
  const call = await llm.nextCall();
  await call.emit("Yes");
  await call.finish();
  await gather(await asked);
  return sentOf(call);
}

/** Responds to the request for a summary, and returns it. */
async function summarise(text: string): Promise<Sent> {
  const call = await llm.nextCall();
  expect(call.request.json!.stream).toBe(false);
  await call.emit(text);
  await call.finish();
  return sentOf(call);
}

test("summarizes cut messages when idle, in steps that fit, and sends the summary in their place", async () => {
  llm.switches.manual = "on";
  await save(120);
  const sent = await ask();
  expect(sent[0]).toEqual({ role: "user", content: turn(Number.parseInt(sent[0]!.content)).content });
  const oldest = Number.parseInt(sent[0]!.content);
  const texts: string[] = [];
  for (let told = ""; told !== `m${oldest - 1}`; told = (await summary())!.up_to_message_id) {
    const text = `Step ${texts.length}.`;
    const [instruction, asked] = await summarise(`<think>hm</think>${text}`);
    expect(instruction!.role).toBe("system");
    expect(asked!.content.includes("The record up to now:")).toBe(texts.length > 0);
    if (texts.length > 0) expect(asked!.content).toContain(texts.at(-1)!);
    texts.push(text);
    await until(async () => (await summary())?.text === texts.join("\n\n"), "the chapter is kept");
  }
  const { chapters } = await readConversation(app) as unknown as { chapters: Chapter[] };
  expect(chapters.map(({ text }) => text)).toEqual(texts);
  expect(chapters[0]!.from_message_id).toBe("m0");
  chapters.slice(1).forEach((chapter, n) => {
    expect(numberOf(chapter.from_message_id)).toBe(numberOf(chapters[n]!.up_to_message_id) + 1);
  });
  expect(texts.length).toBeGreaterThan(1);
  const next = await ask();
  expect(next[0]).toEqual({ role: "system", content: expect.stringContaining(texts.at(-1)!) });
  expect(next[1]).toEqual(sent[0]);
  expect((await readConversation(app)).summary).toEqual({
    text: texts.join("\n\n"),
    up_to_message_id: `m${oldest - 1}`,
  });
});

test("a chapter is cut after a sentence to its share of a small context", async () => {
  llm.contextSize = 1_024;
  llm.switches.manual = "on";
  await save(40);
  await ask();
  const [instruction] = await summarise("They counted the ships of the night. ".repeat(100));
  expect(instruction!.content).toContain("at most 40 words");
  await until(async () => await summary() !== undefined, "the chapter is kept");
  const { text } = (await summary())!;
  expect(text).toMatch(/^(They counted the ships of the night\. ?)+$/);
  expect(text.length).toBeLessThan(400);
});

test("drops only the chapters of a changed message, keeps edited ones, and fills the gap again", async () => {
  const chapter = (text: string, from: number, upTo: number, more = {}) => ({
    text,
    from_message_id: `m${from}`,
    up_to_message_id: `m${upTo}`,
    ...more,
  });
  await save(120);
  const chapters = [chapter("One.", 0, 9), chapter("Two.", 10, 19), chapter("Three.", 20, 29)];
  const summarized = { text: "One.\n\nTwo.\n\nThree.", up_to_message_id: "m29" };
  await app.patch("/api/conversations/c1", { summary: summarized });
  expect(await readConversation(app)).not.toHaveProperty("chapters");
  await app.patch("/api/conversations/c1", { chapters });
  // A text that differs from the last summary was written by the user.
  expect(await readConversation(app)).toMatchObject({ summary: summarized, chapters: [{ edited: true }, {}, {}] });
  await app.patch("/api/conversations/c1/messages/m12", { pinned: true });
  expect((await readConversation(app)).chapters, "a pin changes nothing that they say").toHaveLength(3);
  await app.patch("/api/conversations/c1/messages/m12", { pinned: false });
  const plain = { ...(await readConversation(app)), chapters: undefined };
  expect((await app.put("/api/conversations/c1", plain)).ok).toBe(true);
  expect((await readConversation(app)).chapters, "a client that doesn't know them keeps them").toHaveLength(3);

  await app.patch("/api/conversations/c1/messages/m5", { content: "0 other" });
  expect((await readConversation(app)).chapters, "all of them are the owner's").toHaveLength(3);
  await app.patch("/api/conversations/c1", { chapters: null });
  expect(await readConversation(app)).not.toHaveProperty("summary");

  llm.switches.manual = "on";
  const oldest = Number.parseInt((await ask())[0]!.content);
  const written = async () => ((await readConversation(app)).chapters ?? []) as Chapter[];
  for (let n = 0; (await summary())?.up_to_message_id !== `m${oldest - 1}`; n++) {
    await summarise(`Part ${n}.`);
    await until(async () => (await written()).length > n, "a chapter is written");
  }
  const [first, second, ...others] = await written();
  expect(first).toEqual({ text: "Part 0.", from_message_id: "m0", up_to_message_id: expect.any(String) });
  const mine = { ...second!, text: "Mine.", edited: true };
  await app.patch("/api/conversations/c1", { chapters: [first, { ...second, text: "Mine." }, ...others] });
  expect(await written()).toEqual([first, mine, ...others]);
  await app.patch(`/api/conversations/c1/messages/${second!.from_message_id}`, { content: "other" });
  expect(await written(), "an edited chapter stays").toEqual([first, mine, ...others]);
  await app.patch("/api/conversations/c1/messages/m1", { content: "1 other" });
  expect(await written()).toEqual([mine, ...others]);
  await ask("Go on");
  const [, asked] = await summarise("Filled.");
  expect(asked!.content).toContain("1 other");
  await until(async () => (await written())[0]?.text === "Filled.", "the gap is filled");
  expect((await summary())!.text.startsWith("Filled.\n\nMine.")).toBe(true);
});

test("merges the oldest chapters when all are too long together", async () => {
  const long = (n: number) => `c${n} ${"word ".repeat(300)}`.trim();
  await save(120);
  llm.switches.manual = "on";
  const oldest = Number.parseInt((await ask())[0]!.content);
  let written = 0;
  for (; (await summary())?.up_to_message_id !== `m${oldest - 1}`; written++) {
    await summarise(long(written));
    await until(async () => ((await readConversation(app)).chapters as Chapter[])?.length > written, "it is written");
  }
  expect(written).toBeGreaterThan(1);
  const before = (await readConversation(app)).chapters as Chapter[];
  const [, asked] = await summarise("Both.");
  expect(asked!.content).toContain("c0 word");
  expect(asked!.content).toContain("c1 word");
  await until(
    async () => ((await readConversation(app)).chapters as Chapter[])[0]!.text === "Both.",
    "they are merged",
  );
  expect(((await readConversation(app)).chapters as Chapter[])[0]).toEqual({
    text: "Both.",
    from_message_id: "m0",
    up_to_message_id: before[1]!.up_to_message_id,
  });
});

test("keeps a pinned message in the prompt when the history is trimmed, before what follows", async () => {
  await save(120);
  await app.patch("/api/conversations/c1/messages/m3", { pinned: true });
  llm.switches.manual = "on";
  await app.patch("/api/settings", { auto_summary: false });
  const sent = await ask();
  expect(sent[0]).toEqual({ role: "system", content: `[Earlier message of Assistant: ${turn(3).content}]` });
  const next = await ask("More?");
  expect(next.slice(0, 5), "the prompt begins as before").toEqual(sent.slice(0, 5));
  const whole = await readConversation(app);
  expect(whole.messages[3]).toMatchObject({ pinned: true });
  const { id } = await (await app.post("/api/conversations/c1/fork", { message_id: "m110" })).json();
  const fork = await (await app.post("/api/chat/preview", { conversation_id: id, context: "server" })).json();
  expect(JSON.stringify(fork.messages[0])).toContain(turn(3).content);
  await app.patch("/api/conversations/c1/messages/m3", { pinned: false });
  const preview = await app.post("/api/chat/preview", { conversation_id: "c1", context: "server" });
  expect(JSON.stringify((await preview.json()).messages)).not.toContain("Earlier message of");
});

test("drops a summary when a covered message changes, and keeps it when a later one does", async () => {
  const kept = { text: "They met.", up_to_message_id: "m3" };
  const change = (method: string, path: string, body?: Record<string, unknown>) =>
    app.request(method, `/api/conversations/c1${path}`, body);
  const stays: (() => Promise<Response>)[] = [
    () => change("PATCH", "/messages/m4", { content: "new" }),
    () => change("DELETE", "/messages/m5"),
    () => change("POST", "/messages", { message: say("x1"), after: "m3" }),
    () => change("POST", "/messages", { message: say("x2") }),
    () => change("PATCH", "", { note: { text: "a" } }),
    () => save(6, { summary: kept }),
  ];
  for (const act of stays) {
    await save(8, { summary: kept });
    expect((await act()).ok).toBe(true);
    expect(await summary(), act.toString()).toEqual(kept);
  }
  const drops: (() => Promise<Response>)[] = [
    () => change("PATCH", "/messages/m3", { content: "new" }),
    () => change("PATCH", "/messages/m0", { hidden: true }),
    () => change("DELETE", "/messages/m2"),
    () => change("DELETE", "/messages/m3?following=true"),
    () => change("POST", "/messages", { message: say("x3"), after: "m2" }),
    () => change("PATCH", "", { summary: null }),
    () => save(3, { summary: kept }),
    () =>
      app.put("/api/conversations/c1", {
        messages: [say("m0", "changed"), ...range(7).map((n) => turn(n + 1))],
        summary: kept,
      }),
  ];
  for (const act of drops) {
    await save(8, { summary: kept });
    expect((await act()).ok).toBe(true);
    expect(await summary(), act.toString()).toBeUndefined();
  }
  await save(8, { summary: kept });
  const own = { ...kept, text: "My own words" };
  await app.put("/api/conversations/c1", { messages: [say("m0", "changed"), turn(3)], summary: own });
  expect(await summary(), "another one is the word of whoever saves").toEqual(own);
  expect((await app.patch("/api/conversations/c1", { summary: { up_to_message_id: "m0" } })).status).toBe(400);
});

test("drops a summary when a message is restored among the covered ones, and doesn't restore an old summary with a field", async () => {
  const kept = { text: "They met.", up_to_message_id: "m3" };
  await save(8);
  const gone = await app.delete("/api/conversations/c1/messages/m2");
  await app.patch("/api/conversations/c1", { summary: kept });
  expect((await app.post(`/api/trash/${gone.headers.get("x-parlor-trash-id")}/restore`, {})).ok).toBe(true);
  expect(await summary()).toBeUndefined();
  await app.patch("/api/conversations/c1", { summary: kept });
  await app.patch("/api/conversations/c1", { folder: "a" });
  await app.patch("/api/conversations/c1/messages/m1", { content: "changed" });
  const revisions = await (await app.get("/api/conversations/c1/revisions")).json();
  const patched = revisions.find(({ cause }: { cause: string }) => cause === "patch");
  expect((await app.post(`/api/conversations/c1/revisions/${patched.n}/restore`, {})).ok).toBe(true);
  expect(await summary()).toBeUndefined();
});

test("discards a summary if its messages change meanwhile, and cancels the call when a reply starts", async () => {
  llm.switches.manual = "on";
  await save(60);
  await ask();
  const first = await llm.nextCall();
  await app.patch("/api/conversations/c1/messages/m0", { content: "Everything was different." });
  await first.emit("Too late.");
  await first.finish();
  const asked = app.post("/api/chat", {
    conversation_id: "c1",
    context: "server",
    messages: [{ role: "user", content: "Go on" }],
  });
  const reply = await llm.nextCall();
  expect(reply.request.json!.stream).toBe(true);
  expect(await summary()).toBeUndefined();
  await reply.emit("Yes");
  await reply.finish();
  await gather(await asked);
  const second = await llm.nextCall();
  expect(JSON.stringify(sentOf(second))).toContain("Everything was different.");
  const other = app.post("/api/chat", { conversation_id: "c2", messages: [{ role: "user", content: "Hi" }] });
  const busy = await llm.nextCall();
  await second.over;
  expect(second.request.closedEarly).toBe(true);
  await busy.emit("Hi");
  await busy.finish();
  await gather(await other);
  await summarise("At last.");
  await until(async () => (await summary())?.text === "At last.", "it is made when that is done");
});

test("writes no summary if everything fits, if they are off, or over one the user wrote", async () => {
  const calls = () => llm.chats.filter(({ json }) => json!.stream !== true).length;
  const answered = async (fields: Record<string, unknown>, id = "c1") => {
    await gather(await app.post("/api/chat", { conversation_id: id, context: "server", ...fields }));
    const { replies } = await app.services.chat();
    await until(() => replies.listRunning().length === 0, "the reply is settled");
  };
  const hi = { messages: [{ role: "user", content: "Hi" }] };
  await save(6);
  await answered(hi);
  await app.patch("/api/settings", { auto_summary: false });
  await save(120);
  await answered(hi);
  await app.patch("/api/settings", { auto_summary: true });
  await save(6, { summary: { text: "Mine, for good." } });
  await answered(hi);
  expect((llm.chats.at(-1)!.json!.messages as Sent)[0]!.content).toContain("Mine, for good.");
  await save(120, { summary: { text: "Mine, for good." } });
  await answered(hi);
  expect((llm.chats.at(-1)!.json!.messages as Sent)[0]!.content).toContain("Mine, for good.");
  await app.patch("/api/settings", { auto_title: true });
  await answered(hi, "c3");
  await until(async () => (await readConversation(app, "c3")).title === "Hello", "the queue has been quiet");
  expect(calls()).toBe(1);
});
