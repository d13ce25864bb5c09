import { afterEach, beforeEach, expect, test } from "vitest";
import { REPLY_FIELDS } from "../../../services/conversations/message.ts";
import { gather, useModel } from "../../helpers/app/chat_client.ts";
import { readConversation } from "../../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";

let app: TestApp;
let llm: FakeLlm;
beforeEach(async () => {
  app = await openTestApp();
  llm = await openFakeLlm({ personality: "llama.cpp", pieces: ["Fine."] });
  await useModel(app, llm);
});
afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await llm.close();
});

const readReply = async () => (await readConversation(app)).messages.at(-1)! as unknown as Record<string, unknown>;
const ask = async (fields: object) =>
  await gather(await app.post("/api/chat", { conversation_id: "c1", context: "server", messages: [], ...fields }));
const show = (id: unknown, n: number) =>
  app.patch(`/api/conversations/c1/messages/${id}`, { active_variant: n }).then((response) => response.json());

test("each version of a reply lists the notes that were sent for it", async () => {
  await app.put("/api/memories/n1", { text: "Ada likes tea." });
  await ask({ messages: [{ role: "user", content: "One" }] });
  const first = await readReply();
  expect(first.memories).toEqual(["n1"]);
  await app.delete("/api/memories/n1");
  await app.put("/api/memories/n2", { text: "Ada owes a coin." });
  await ask({ action: "regenerate", assistant_message_id: first.id });
  expect((await readReply()).memories).toEqual(["n2"]);
  await show(first.id, 0);
  expect((await readReply()).memories).toEqual(["n1"]);
  await show(first.id, 1);
  expect((await readReply()).memories).toEqual(["n2"]);
});

test("a version that was sent without notes lists none of the version before it", async () => {
  await app.put("/api/memories/n1", { text: "Ada likes tea." });
  await ask({ messages: [{ role: "user", content: "One" }] });
  const { id } = await readReply();
  const plain = { context: "client", messages: [{ role: "user", content: "plain" }] };
  await ask({ ...plain, action: "regenerate", assistant_message_id: id });
  expect((await readReply()).memories).toBeUndefined();
});

test("no field of a reply gets from one version into another", async () => {
  const values: Partial<Record<(typeof REPLY_FIELDS)[number], unknown>> = {
    reasoning: "first",
    usage: { prompt_tokens: 1 },
    timings: { prompt_ms: 1 },
    finish_reason: "length",
    output_limit: 7,
    left_out: [{ field: "top_k", status: 400, reason: "unknown" }],
    lorebook_state: { "b1/1": { sticky: 2 } },
    documents: [{ id: "d1", use: "whole" }],
    memories: ["n1"],
    connection_id: "first",
    split_reasoning: true,
    reasoning_details: [{ type: "reasoning.text", text: "first" }],
    sources: [{ n: 1, url: "https://first.example" }],
    context_use: { size: 2048, tokens: 5, reply_tokens: 7, parts: [{ kind: "history", tokens: 5 }] },
    continued_after_restart: true,
  };
  // Rounds and calls are tested with tools. A reply with an error has no text.
  const own = REPLY_FIELDS.filter((field) => !["tool_rounds", "tool_calls", "error"].includes(field));
  expect(own.filter((field) => values[field] === undefined)).toEqual([]);
  const messages = [
    { id: "u1", role: "user", content: "One" },
    { id: "a1", role: "assistant", content: "First.", ...values },
  ];
  const put = await app.put("/api/conversations/c1", { messages });
  expect(put.status, await put.clone().text()).toBe(201);
  const stored = await readReply();
  expect(own.filter((field) => stored[field] === undefined)).toEqual([]);
  const again = { context: "client", messages: [{ role: "user", content: "plain" }], assistant_message_id: "a1" };
  await ask({ ...again, action: "regenerate" });
  const second = await readReply();
  expect(own.filter((field) => JSON.stringify(second[field]) === JSON.stringify(stored[field]))).toEqual([]);
  await show("a1", 0);
  const shown = await readReply();
  for (const field of own) expect(shown[field], field).toEqual(stored[field]);
  await show("a1", 1);
  const back = await readReply();
  for (const field of own) expect(back[field], field).toEqual(second[field]);
});
