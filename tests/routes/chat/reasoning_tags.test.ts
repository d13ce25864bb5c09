import { afterEach, beforeEach, expect, test } from "vitest";
import { ask, beginReply, gather, savedMessage, understand, until, useModel } from "../../helpers/app/chat_client.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";

let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  app = await openTestApp();
  llm = await openFakeLlm();
  await useModel(app, llm);
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

const lastSent = () => llm.chats.at(-1)!.json!.messages as { role: string; content: string }[];

test("reasoning between tags is streamed, stored and returned as reasoning, and never sent back", async () => {
  llm.pieces = ["<th", "ink>I lo", "ok.\n</thi", "nk>\n\nIt is", " up."];
  const answer = await gather(await ask(app, 1));
  expect(answer).toMatchObject({ isDone: true, reasoning: "I look.", text: "It is up." });
  expect(answer.message).toBeUndefined();
  expect(await savedMessage(app, "a1")).toMatchObject({ content: "It is up.", reasoning: "I look." });
  await gather(await ask(app, 2, { context: "server" }));
  expect(lastSent().map(({ content }) => content)).toEqual(["question 1", "It is up.", "question 2"]);
});

test("with a closing tag only, the streamed text stays, and the split message comes before the end", async () => {
  llm.pieces = ["I look.\n", "</think>\n\n", "It is up."];
  const answer = await gather(await ask(app, 1));
  expect(answer).toMatchObject({ isDone: true, reasoning: "", text: "I look.\n</think>\n\nIt is up." });
  const stored = await savedMessage(app, "a1");
  expect(stored).toMatchObject({ content: "It is up.", reasoning: "I look.", status: "complete" });
  expect(answer.message).toEqual(stored);
  expect(answer.frames.at(-2)!.event).toBe("message");
  await gather(await ask(app, 2, { context: "server" }));
  expect(lastSent()[1]).toEqual({ role: "assistant", content: "It is up." });
});

test.each([
  ["<think>It is up.", "stop", { content: "It is up.", reasoning: undefined }],
  ["<think>It is", "length", { content: "", reasoning: "It is" }],
])("an answer in %j that ends with %s doesn't vanish in the reasoning", async (piece, finish, message) => {
  llm.pieces = [piece];
  await gather(await ask(app, 1, { model: `fake:reason=${finish}` }));
  const { content, reasoning } = (await savedMessage(app, "a1"))!;
  expect({ content, reasoning }).toEqual(message);
});

test("without a stream, the response is split as the message is", async () => {
  llm.pieces = ["I look.</think>It is up."];
  for (const fields of [{}, { conversation_id: undefined }]) {
    const { choices: [{ message }] } = await (await ask(app, 1, { stream: false, ...fields })).json();
    expect(message).toEqual({ role: "assistant", content: "It is up.", reasoning_content: "I look." });
  }
  llm.pieces = ["<think>It is up."];
  const { choices: [{ message }] } = await (await ask(app, 2, { stream: false })).json();
  expect(message).toEqual({ role: "assistant", content: "It is up." });
});

test("a client that reconnects after the end gets the message instead of a wrong rest", async () => {
  const { call, reply } = await beginReply(app, llm, "I look. ");
  const lastId = understandPlace(await gather(await app.get("/api/chat/replies/a1"), 2));
  await call.emit("Again.</think>It is up.");
  await call.finish();
  await reply;
  const back = await gather(await app.get("/api/chat/replies/a1", { headers: { "last-event-id": lastId } }));
  expect(back).toMatchObject({
    isDone: true,
    text: "",
    message: { content: "It is up.", reasoning: "I look. Again." },
  });
  const fresh = await gather(await app.get("/api/chat/replies/a1"));
  expect(fresh).toMatchObject({ isDone: true, text: "It is up.", reasoning: "I look. Again." });
  expect(fresh.message).toBeUndefined();
});

test("continuing an answer splits only what is new", async () => {
  llm.pieces = ["It is"];
  await gather(await ask(app, 1));
  llm.pieces = [" hm</think>up."];
  const more = { action: "continue", context: "server", messages: [] };
  const answer = await gather(await ask(app, 1, { ...more, user_message_id: undefined }));
  expect(answer.isDone).toBe(true);
  await until(async () => (await savedMessage(app, "a1"))?.status === "complete", "the answer is saved");
  expect(await savedMessage(app, "a1")).toMatchObject({ content: "It is up.", reasoning: "hm" });
});

test("a stored answer with tags in its text is sent without its reasoning", async () => {
  const messages = [
    { id: "u0", role: "user", content: "What is <think>?" },
    { id: "a0", role: "assistant", content: "<think>An element?</think>A tag." },
  ];
  await app.put("/api/conversations/c1", { messages });
  await gather(await ask(app, 1, { context: "server" }));
  expect(lastSent().map(({ content }) => content)).toEqual(["What is <think>?", "A tag.", "question 1"]);
});

/** Returns the id of the last frame. */
function understandPlace({ frames }: ReturnType<typeof understand>): string {
  return frames.at(-1)!.id!;
}
