import { afterEach, beforeEach, expect, test } from "vitest";
import { ask, type Frame, framesOf, gather, savedMessage, useModel } from "../../helpers/app/chat_client.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { say } from "../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  app = await openTestApp();
  llm = await openFakeLlm({ personality: "llama.cpp" });
  await useModel(app, llm);
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm[Symbol.asyncDispose]();
});

const progressOf = (frames: Frame[]) =>
  frames.filter(({ event }) => event === "prompt_progress").map(({ data }) => JSON.parse(data));

test("passes on how much of the prompt llama.cpp has read, until the first text", async () => {
  llm.switches.manual = "on";
  const asked = ask(app, 1);
  const call = await llm.nextCall();
  expect(call.request.json).toMatchObject({ stream: true, return_progress: true });
  await call.raw(llm.progress({ total: 4100, cache: 3900, processed: 3900 }));
  const following = framesOf(await asked);
  const frames: Frame[] = [];
  const readUntil = async (isEnough: () => boolean) => {
    while (!isEnough()) {
      const { done, value } = await following.next();
      if (done) throw new Error("the stream ended");
      frames.push(value);
    }
  };
  await readUntil(() => progressOf(frames).length === 1);
  await call.raw(llm.progress({ total: 4100, cache: 3900, processed: 4100 }));
  await readUntil(() => progressOf(frames).length === 2);
  expect(progressOf(frames)).toEqual([
    { total: 4100, cache: 3900, processed: 3900 },
    { total: 4100, cache: 3900, processed: 4100 },
  ]);
  // A client that comes later gets the last one.
  const late = framesOf(await app.get("/api/chat/replies/a1"));
  let first: Frame | undefined;
  while (first?.event !== "prompt_progress") first = (await late.next()).value;
  expect(JSON.parse(first.data).processed).toBe(4100);
  await call.emit("Hello");
  await call.finish();
  await readUntil(() => frames.at(-1)!.data === "[DONE]");
  expect(frames.map(({ data }) => data).join("")).toContain("Hello");
  await late.return(undefined);
});

test("passes progress on in chats that aren't stored, but not in the OpenAI-compatible API", async () => {
  const messages = [{ role: "user", content: "hi" }];
  const plain = await gather(await app.post("/api/chat", { messages, stream: true }));
  expect(progressOf(plain.frames).length).toBeGreaterThan(0);
  const body = { model: "default", messages, stream: true };
  const compatible = await gather(await app.post("/api/v1/chat/completions", body));
  expect(compatible).toMatchObject({ text: "Hello", isDone: true });
  expect(progressOf(compatible.frames)).toEqual([]);
});

test("asks other servers for no progress", async () => {
  await using other = await openFakeLlm();
  await useModel(app, other);
  await gather(await ask(app, 1));
  expect(other.chats[0]!.json).not.toHaveProperty("return_progress");
});

test("a reply stores how its prompt filled the context, and where the sent messages start", async () => {
  llm.contextSize = 1_024;
  const messages = Array.from(
    { length: 12 },
    (_, n) => say(`m${n}`, `${n} ${"word ".repeat(150)}`.trim(), n % 2 ? "assistant" : "user"),
  );
  await app.put("/api/conversations/c1", { messages, system_prompt: "Be brief." });
  await gather(await ask(app, 1, { context: "server", max_tokens: 100 }));
  const { context_use: use } = await savedMessage(app, "a1") as {
    context_use: {
      size: number;
      tokens: number;
      parts: { kind: string; tokens: number }[];
      first_message_id: string;
      left_out: object;
    };
  };
  const sent = llm.chats[0]!.json!.messages as { role: string; content: string }[];
  const oldest = sent.find(({ role }) => role !== "system")!;
  expect(use).toMatchObject({
    size: 1_024,
    reply_tokens: 100,
    first_message_id: `m${Number.parseInt(oldest.content)}`,
  });
  expect(use.left_out).toEqual({ messages: Number.parseInt(oldest.content) });
  expect(use.parts.map(({ kind }) => kind).toSorted()).toEqual(["history", "main"]);
  expect(use.parts.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(use.tokens);
});

test("a reply stores which examples, lorebook entries and notes its prompt left out", async () => {
  llm.contextSize = 1_024;
  const fields = { name: "Ada", mes_example: `<START>\nAda: ${"example ".repeat(2_000)}` };
  await app.put("/api/characters/ada", fields);
  const entry = { uid: 0, key: ["ferry"], content: "It comes at nine.", comment: "Ferry" };
  const form = new FormData();
  const book = { entries: { 0: { ...entry, probability: 0, useProbability: true } } };
  form.set("file", new File([JSON.stringify(book)], "Harbor.json"));
  const created = await (await app.post("/api/lorebooks/import", form)).json();
  await app.put("/api/memories/n1", { text: "word ".repeat(400), scope: { kind: "everything" } });
  await app.put("/api/conversations/c1", {
    participants: [{ character_id: "ada" }],
    lorebook_ids: [created.id],
    messages: [say("m0", "The ferry and the lamp")],
  });
  await gather(await ask(app, 1, { context: "server", max_tokens: 100 }));
  const { context_use: use } = await savedMessage(app, "a1") as { context_use: { left_out: object } };
  expect(use.left_out).toEqual({
    pieces: [{ kind: "examples", tokens: expect.any(Number) }],
    lorebook_entries: [{ lorebook_name: "Harbor", entry_name: "Ferry", reason: "probability", key: "ferry" }],
    memories: ["n1"],
  });
});

test("a chat that fits has no oldest message", async () => {
  await app.put("/api/conversations/c1", { messages: [say("m0", "Hi"), say("m1", "Hello", "assistant")] });
  await gather(await ask(app, 1, { context: "server" }));
  const saved = await savedMessage(app, "a1") as { context_use: object };
  expect(saved.context_use).toMatchObject({ size: 2_048 });
  expect(saved.context_use).not.toHaveProperty("first_message_id");
});
