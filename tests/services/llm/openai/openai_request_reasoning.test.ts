/** Reasoning in replies with tool calls: what servers send, what they get back, and what isn't sent. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ChatMessage } from "../../../../services/llm/chat_event.ts";
import { DIALECT_NAMES, type DialectName } from "../../../../services/llm/dialects/dialect.ts";
import { getDialect } from "../../../../services/llm/dialects/dialects.ts";
import { createOpenAiBody } from "../../../../services/llm/openai/openai_request.ts";
import { createUpstreamClient, type UpstreamClient } from "../../../../services/llm/upstream_client.ts";
import { type FakeLlm, openFakeLlm } from "../../../helpers/fakes/llm/fake_llm.ts";
import { ask, failureOf, gather, never, target } from "../model_calls.ts";

let client: UpstreamClient;
beforeAll(() => {
  client = createUpstreamClient({ log: () => {} });
});
afterAll(() => client.close());

const CALLS = [{ id: "t1", type: "function", function: { name: "look", arguments: "{}" } }];
const EFFORTS = ["none", "minimal", "low", "medium", "high"];

/** A reply with a tool call after one without; both have additional fields. */
function turns(fields: Record<string, unknown>): ChatMessage[] {
  return [
    { role: "user", content: "hi" },
    { role: "assistant", content: "hello", ...fields },
    { role: "user", content: "look" },
    { role: "assistant", content: "", tool_calls: CALLS, ...fields },
    { role: "tool", tool_call_id: "t1", content: "a fox" },
    { role: "assistant", content: "A fox.", ...fields },
    { role: "user", content: "thanks" },
  ];
}

/** Fields of reasoning that each message has in a dialect. */
function reasoningIn(name: DialectName, messages: ChatMessage[]): Record<string, unknown>[] {
  const upstream = target("http://h/v1", { dialect: getDialect(name) });
  const { fields } = createOpenAiBody(upstream, { ...ask(), messages }, { stream: false });
  return (fields.messages as ChatMessage[]).map((message) =>
    Object.fromEntries(Object.entries(message).filter(([field]) => field.startsWith("reasoning")))
  );
}

function openStrict(personality: "deepseek" | "openrouter", more = {}): Promise<FakeLlm> {
  return openFakeLlm({ personality, ...more });
}

function strictTarget(llm: FakeLlm, name: DialectName) {
  return target(llm.url, { dialect: getDialect(name) });
}

test.each([...DIALECT_NAMES.filter((name) => name !== "anthropic" && name !== "ollama")])(
  "%s gets reasoning in turns that call tools, as far as it accepts it, and nowhere else",
  (name) => {
    const details = [{ type: "reasoning.text", text: "hm", signature: "c2ln" }];
    const [wanted] = getDialect(name).returnsReasoningWithTools;
    const sent = { reasoning_content: "hm", reasoning_details: details };
    const kept = wanted === undefined ? {} : { [wanted]: sent[wanted as keyof typeof sent] };
    expect(reasoningIn(name, turns(sent))).toEqual([{}, {}, {}, kept, {}, kept, {}]);
  },
);

test("servers that reject unknown fields of messages get no reasoning", () => {
  const names: DialectName[] = ["openai", "azure", "gemini", "mistral", "groq"];
  for (const name of names) expect(getDialect(name).returnsReasoningWithTools, name).toEqual([]);
});

test("OpenRouter gets text as reasoning if there are no blocks", () => {
  expect(reasoningIn("openrouter", turns({ reasoning_content: "hm" }))[3]).toEqual({ reasoning: "hm" });
});

test("messages without reasoning are unchanged", () => {
  const messages = turns({});
  const { fields } = createOpenAiBody(target("http://h/v1"), { ...ask(), messages }, { stream: false });
  expect(fields.messages).toEqual(messages);
});

test.each([{}, { reasoning_content: "I have to look." }])(
  "DeepSeek accepts a turn with a tool call whose response had %j",
  async (fields) => {
    await using llm = await openStrict("deepseek");
    const messages = turns(fields);
    const answer = await gather(
      await client.openChatStream(strictTarget(llm, "deepseek"), { ...ask(), messages }, never()),
    );
    expect(answer).toMatchObject({ text: "Hello", error: undefined });
    const sent = llm.chats.at(-1)!.json!.messages as ChatMessage[];
    expect(sent[3]!.reasoning_content).toBe(fields.reasoning_content ?? "");
    expect(sent[1]).not.toHaveProperty("reasoning_content");
  },
);

test("DeepSeek's rejection of calls without reasoning is reported if another dialect was chosen", async () => {
  await using llm = await openStrict("deepseek");
  const error = await failureOf(
    client.openChatStream(strictTarget(llm, "openai"), { ...ask(), messages: turns({}) }, never()),
  );
  expect(error.message).toContain("must be passed back");
});

test.each(["deepseek", "openrouter"] as const)("%s accepts every effort and its samplers", async (name) => {
  await using llm = await openStrict(name);
  const dialect = getDialect(name);
  const samplers = Object.fromEntries(Object.keys(dialect.samplers).map((sampler) => [sampler, 1]));
  for (const effort of EFFORTS) {
    const call = ask("hi", { ...samplers, max_tokens: 50, reasoning_effort: effort });
    expect((await gather(await client.openChatStream(strictTarget(llm, name), call, never()))).text).toBe("Hello");
  }
  // None was refused and retried.
  expect(llm.chats).toHaveLength(EFFORTS.length);
});

test("DeepSeek's thinking is switched by type", async () => {
  await using llm = await openStrict("deepseek");
  for (const effort of ["none", "high"]) {
    const call = ask("hi", { reasoning_effort: effort });
    await gather(await client.openChatStream(strictTarget(llm, "deepseek"), call, never()));
  }
  expect(llm.chats.map(({ json }) => json!.thinking)).toEqual([{ type: "disabled" }, { type: "enabled" }]);
});

test.each([true, false])(
  "OpenRouter's blocks are collected and sent back unchanged; streamed: %s",
  async (isStreamed) => {
    await using llm = await openStrict("openrouter", {
      pieces: [],
      reasoning: ["let me ", "look"],
      tools: [[{ index: 0, ...CALLS[0] }]],
      switches: { reason: "tool_calls", signature: "c2ln", ignore_stream: isStreamed ? "off" : "on" },
    });
    const upstream = strictTarget(llm, "openrouter");
    const block = { type: "reasoning.text", text: "let me look", index: 0, signature: "c2ln" };
    const pieces = await gather(await client.openChatStream(upstream, ask(), never()));
    const details = pieces.events.flatMap((event) => event.type === "reasoning_details" ? event.details : []);
    expect(pieces.reasoning).toBe("let me look");
    expect(details.map((detail) => (detail as { text: string }).text).join("")).toBe("let me look");
    const messages = turns({}).map((message) =>
      message.tool_calls === undefined ? message : { ...message, reasoning_details: [block] }
    );
    llm.requests.length = 0;
    await gather(await client.openChatStream(upstream, { ...ask(), messages }, never()));
    expect((llm.chats[0]!.json!.messages as ChatMessage[])[3]!.reasoning_details).toEqual([block]);
  },
);
