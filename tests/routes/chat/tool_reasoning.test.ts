import { expect, test } from "vitest";
import { ask, gather, savedMessage, useModel } from "../../helpers/app/chat_client.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";

const TOOL = { type: "function", function: { name: "look", parameters: { type: "object" } } };
const CALL = { index: 0, id: "t1", type: "function", function: { name: "look", arguments: "{}" } };
const BLOCK = { type: "reasoning.text", text: "let me look", index: 0, signature: "c2ln" };

test("OpenRouter's signed reasoning is stored with the call of a tool, and a client can return it with the result", async () => {
  await using llm = await openFakeLlm({
    personality: "openrouter",
    pieces: [],
    reasoning: ["let me ", "look"],
    tools: [[CALL]],
    switches: { reason: "tool_calls", signature: "c2ln" },
  });
  await using app = await openTestApp();
  await useModel(app, llm, { server: { override: "openrouter" } });
  await gather(await ask(app, 1, { tools: [TOOL] }));
  const stored = await savedMessage(app, "a1");
  expect(stored).toMatchObject({ reasoning: "let me look", reasoning_details: [BLOCK] });

  const { index: _, ...call } = CALL;
  const messages = [
    { role: "user", content: "look" },
    { role: "assistant", content: null, tool_calls: [call], reasoning_details: stored!.reasoning_details },
    { role: "tool", tool_call_id: "t1", content: "a fox" },
  ];
  const answer = await app.post("/api/chat", { messages, tools: [TOOL], stream: false });
  expect(answer.status).toBe(200);
  expect(llm.chats.at(-1)!.json!.messages).toEqual(messages);
});

test("reasoning that a client sends doesn't reach a server that doesn't want it", async () => {
  await using llm = await openFakeLlm();
  await using app = await openTestApp();
  await useModel(app, llm, { server: { override: "mistral" } });
  const messages = [
    { role: "user", content: "hi" },
    { role: "assistant", content: "hello", reasoning_content: "hm" },
    { role: "user", content: "and?" },
  ];
  expect((await app.post("/api/chat", { messages, stream: false })).status).toBe(200);
  expect(llm.chats.at(-1)!.body).not.toContain("reasoning_content");
});
