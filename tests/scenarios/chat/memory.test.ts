import { afterEach, beforeEach, expect, test } from "vitest";
import { gather, until, useModel } from "../../helpers/app/chat_client.ts";
import { type FakeLlm, type ManualAnswer, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { filesWithText } from "../../helpers/files/storage_folder.ts";
import { readConversation, say } from "../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
let llm: FakeLlm;
let nowMs: number;
beforeEach(async () => {
  nowMs = Date.now();
  app = await openTestApp({ titleIdleMs: 10, now: () => nowMs });
  llm = await openFakeLlm({ personality: "llama.cpp", pieces: ["Fine."] });
  await useModel(app, llm);
  await app.patch("/api/settings", { auto_title: false, auto_summary: false });
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

type Sent = { role: string; content: string }[];
const json = async (response: Response | Promise<Response>) => await (await response).json();
const sentOf = ({ request }: ManualAnswer) => request.json!.messages as Sent;
const inbox = () =>
  json(app.get("/api/memories/proposals")) as Promise<{ id: string; text: string; [key: string]: unknown }[]>;
const memorize = (id: string, text: string, more = {}) => app.put(`/api/memories/${id}`, { text, ...more });

async function ask(text = "And now?", id = "c1"): Promise<Sent> {
  const body = { conversation_id: id, context: "server", messages: [{ role: "user", content: text }] };
  await gather(await app.post("/api/chat", body));
  return llm.chats.at(-1)!.json!.messages as Sent;
}

/** Advances the clock by half an hour and runs the search for chats to read. */
async function rest() {
  nowMs += 31 * 60_000;
  await app.services.runMaintenance();
}

async function answerReading(proposals: unknown[]): Promise<ManualAnswer> {
  const call = await llm.nextCall();
  await call.emit(JSON.stringify({ proposals }));
  await call.finish();
  return call;
}

test("sends notes after the card at the same place in each prompt, and no longer after a note is deleted", async () => {
  await app.put("/api/characters/fox", { name: "Fox", description: "Fox is sly.", system_prompt: "Play Fox." });
  await app.put("/api/conversations/c1", {
    participants: [{ character_id: "fox" }],
    messages: [say("m0", "Hi")],
    persona_id: "ada",
  });
  await app.put("/api/personas/ada", { name: "Ada" });
  await memorize("n1", "Ada likes tea {{user}}.");
  nowMs += 1_000;
  await memorize("n2", "Fox owes Ada a coin.", { scope: { kind: "character", id: "fox", persona_id: "ada" } });
  await memorize("n3", "Owl is away.", { scope: { kind: "character", id: "owl" } });
  const prompts = [await ask("One"), await ask("Two"), await ask("Three")];
  const system = prompts[0]![0]!.content;
  const notes = "[Notes from earlier chats:\n- Ada likes tea {{user}}.\n- Fox owes Ada a coin.\n]";
  expect(system.indexOf(notes)).toBeGreaterThan(system.indexOf("Fox is sly."));
  expect(system).not.toContain("Owl is away");
  prompts.slice(1).forEach((sent, n) => {
    const before = prompts[n]!;
    expect(sent.slice(0, before.length), "each prompt begins with the one before").toEqual(before);
  });
  const { messages } = await readConversation(app);
  expect(messages.at(-1)).toMatchObject({ role: "assistant", memories: ["n1", "n2"] });
  const preview = await json(app.post("/api/chat/preview", { conversation_id: "c1", context: "server" }));
  expect(preview.memories).toMatchObject([{ id: "n1", text: "Ada likes tea {{user}}." }, { id: "n2" }]);
  expect(preview.memories_left_out).toEqual([]);
  const pieces = preview.parts[0].pieces.map(({ part }: { part: string }) => part);
  expect(pieces.indexOf("memory")).toBeGreaterThan(pieces.indexOf("description"));

  await app.delete("/api/memories/n1");
  expect(JSON.stringify(await ask("Four"))).not.toContain("likes tea");
  await app.patch("/api/settings", { memory_budget_percent: 0 });
  expect(JSON.stringify(await ask("Five"))).not.toContain("owes Ada");
  await app.patch("/api/settings", { memory_budget_percent: null });
  await app.restart();
  const after = await ask("Six");
  expect(after[0]!.content).toContain("Fox owes Ada a coin.");
});

test("sends notes to clients of the OpenAI-compatible API that talk to a character, but not in stateless requests", async () => {
  await app.put("/api/characters/fox", { name: "Fox", description: "Fox is sly." });
  await memorize("n1", "Ada likes tea.");
  const messages = [{ role: "user", content: "Hi" }];
  await json(app.post("/api/v1/chat/completions", { model: "character:fox", messages }));
  expect((llm.chats.at(-1)!.json!.messages as Sent)[0]!.content).toContain("- Ada likes tea.");
  await json(app.post("/api/chat", { messages, stream: false }));
  expect(llm.chats.at(-1)!.json!.messages).toEqual(messages);
});

test("reads a finished chat, proposes notes with their source, and later reads only new messages", async () => {
  await app.put("/api/conversations/old", { messages: [say("o0", "I was here before.")] });
  nowMs += 1_000;
  await app.patch("/api/settings", { memory_proposals: true });
  await app.services.runMaintenance();
  nowMs += 1_000;
  llm.switches.manual = "on";
  await memorize("n1", "Ada lives in Bern.");
  await app.put("/api/conversations/c1", { messages: [say("m0", "I moved to Oslo."), say("m1", "Nice", "assistant")] });
  await app.services.runMaintenance();
  await rest();
  const first = await answerReading([
    { text: "Ada lives in Oslo.", scope: "everything", replaces: "n1", message: 1 },
    { text: "ada lives in bern", scope: "everything" },
  ]);
  expect(first.request.json).toMatchObject({ stream: false, response_format: { type: "json_schema" } });
  const question = sentOf(first).at(-1)!.content;
  expect(question).toContain("- [n1] Ada lives in Bern.");
  expect(question).toContain("1. User: I moved to Oslo.");
  expect(question).not.toContain("here before");
  await until(async () => (await inbox()).length === 1, "the proposal is stored");
  expect(await inbox()).toMatchObject([
    { text: "Ada lives in Oslo.", replaces: "n1", source: { conversation_id: "c1", message_id: "m0" } },
  ]);
  expect(await json(app.get("/api/memories")), "no note changes by itself").toMatchObject([{
    text: "Ada lives in Bern.",
  }]);
  expect((await app.post(`/api/memories/proposals/${(await inbox())[0]!.id}`, { decision: "dismiss" })).status).toBe(
    204,
  );

  await app.restart();
  await app.post("/api/conversations/c1/messages", { message: say("m2", "My violin is broken.") });
  await rest();
  const second = await answerReading([
    { text: "Ada lives in Oslo", scope: "everything" },
    { text: "Ada's violin is broken.", scope: "everything" },
  ]);
  expect(sentOf(second).at(-1)!.content).not.toContain("I moved to Oslo.");
  await until(async () => (await inbox()).length === 1, "the next proposal is stored");
  expect(await inbox()).toMatchObject([{ text: "Ada's violin is broken.", source: { message_id: "m2" } }]);
  const calls = llm.chats.length;
  await rest();
  expect(llm.chats.length, "nothing is left to read").toBe(calls);
});

test("doesn't read chats with proposals turned off, and withdraws proposals from them", async () => {
  await app.patch("/api/settings", { memory_proposals: true });
  await app.services.runMaintenance();
  nowMs += 1_000;
  llm.switches.manual = "on";
  await app.put("/api/conversations/quiet", { messages: [say("q0", "A secret.")], learn: false });
  await app.put("/api/conversations/c1", { messages: [say("m0", "I like tea.")] });
  await rest();
  const call = await answerReading([{ text: "Ada likes tea.", scope: "everything" }]);
  expect(JSON.stringify(sentOf(call))).not.toContain("A secret.");
  await until(async () => (await inbox()).length === 1, "the proposal is stored");
  await app.patch("/api/conversations/c1", { learn: false });
  await until(async () => (await inbox()).length === 0, "it is withdrawn");
  const calls = llm.chats.length;
  await rest();
  expect(llm.chats.length).toBe(calls);
});

test("asks in words if the server rejects a schema, and offers the character's scope with the persona", async () => {
  await app.patch("/api/settings", { memory_proposals: true });
  await app.services.runMaintenance();
  nowMs += 1_000;
  await app.put("/api/characters/fox", { name: "Fox" });
  await app.put("/api/personas/ada", { name: "Ada" });
  await app.put("/api/conversations/c1", {
    participants: [{ character_id: "fox" }],
    persona_id: "ada",
    messages: [say("m0", "Remember our tower?")],
  });
  Object.assign(llm.switches, { manual: "on", no_response_format: "on" });
  await rest();
  const call = await llm.nextCall();
  expect(llm.chats.map(({ json }) => json!.response_format !== undefined)).toEqual([true, false]);
  await call.emit(`Sure!\n{"proposals": [{"text": "Ada and Fox met at a tower.", "scope": "character"}]}`);
  await call.finish();
  await until(async () => (await inbox()).length === 1, "the proposal is stored");
  expect(await inbox()).toMatchObject([{ scope: { kind: "character", id: "fox", persona_id: "ada" } }]);
});

test("stores no readable text of notes and proposals on disk", { tags: ["K01"] }, async () => {
  await memorize("n1", "needleNote");
  await memorize("n1", "needleChanged", { scope: { kind: "folder", id: "needleFolder" } });
  await memorize("n2", "needleTrashed");
  await app.delete("/api/memories/n2");
  const { proposals } = await app.services.memory();
  await proposals.add({ text: "needleProposal", scope: { kind: "everything" } });
  await proposals.add({ text: "needleDismissed", scope: { kind: "everything" } });
  await app.post(`/api/memories/proposals/${proposals.list()[0]!.id}`, { decision: "dismiss" });
  const needles = ["needleNote", "needleChanged", "needleFolder", "needleTrashed", "needleProposal", "needleDismissed"];
  for (const needle of needles) expect(await filesWithText(app.dataDir, needle)).toEqual([]);
  await app.restart();
  for (const needle of needles) expect(await filesWithText(app.dataDir, needle)).toEqual([]);
  expect(await json(app.get("/api/memories/n1"))).toMatchObject({ text: "needleChanged" });
});
