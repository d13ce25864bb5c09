/** Requests to servers of other protocols during a reply with tool calls. */
import { expect, test } from "vitest";
import { ask, gather, savedMessage, useModel } from "../../helpers/app/chat_client.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";
import { openFakeAnthropic } from "../../helpers/fakes/llm/fake_llm_anthropic.ts";
import { openFakeOllama } from "../../helpers/fakes/llm/fake_ollama.ts";
import { answerText, FakeTools } from "../../helpers/fakes/fake_tools.ts";

/** A tool that needs no approval. `onCall` changes the model's next response. */
const openTools = (onCall: () => void) =>
  new FakeTools().set("look", () => {
    onCall();
    return answerText("a fox");
  }, { permission: "allow" });

test("Anthropic gets signed thinking, the call and its result as blocks", async () => {
  await using llm = await openFakeAnthropic({
    pieces: ["I look."],
    thinking: ["Where?"],
    tool: { id: "toolu_1", name: "look", fragments: ['{"q":', '"den"}'] },
    stopReason: "tool_use",
  });
  const tools = openTools(() =>
    Object.assign(llm.options, { tool: undefined, thinking: [], pieces: ["Done."], stopReason: "end_turn" })
  );
  await using app = await openTestApp({ toolSources: [() => Promise.resolve(tools)] });
  await useModel(app, llm, { kind: "anthropic", model: "claude-fake" });
  expect((await gather(await ask(app, 1, { context: "server" }))).text).toBe("I look.Done.");
  expect(tools.calls).toEqual([{ name: "look", args: { q: "den" } }]);
  const { messages, tools: sent } = llm.requests.at(-1)!.json as Record<string, unknown[]>;
  expect(sent).toMatchObject([{ name: "look", input_schema: { type: "object" } }]);
  expect(messages).toMatchObject([
    { role: "user" },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Where?", signature: expect.any(String) },
        { type: "text", text: "I look." },
        { type: "tool_use", id: "toolu_1", name: "look", input: { q: "den" } },
      ],
    },
    {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: "a fox" }] }],
    },
  ]);
});

test("Ollama gets the arguments as an object and the name of the tool with its result", async () => {
  await using llm = await openFakeOllama({
    models: { llama: { capabilities: ["completion", "tools"] } },
    pieces: [],
    toolCalls: [{ name: "look", arguments: { q: "den" } }],
  });
  const tools = openTools(() => Object.assign(llm.options, { toolCalls: [], pieces: ["Done."] }));
  await using app = await openTestApp({ toolSources: [() => Promise.resolve(tools)] });
  await useModel(app, llm, { kind: "ollama", model: "llama" });
  expect((await gather(await ask(app, 1, { context: "server" }))).text).toBe("Done.");
  const { messages } = llm.requests.filter(({ path }) => path === "/api/chat").at(-1)!.json as Record<
    string,
    unknown[]
  >;
  expect(messages!.slice(-2)).toMatchObject([
    { role: "assistant", tool_calls: [{ function: { name: "look", arguments: { q: "den" } } }] },
    { role: "tool", tool_name: "look", content: "a fox" },
  ]);
});

test("Ollama gets calls and results as text after the last round, because it knows no tool_choice", async () => {
  await using llm = await openFakeOllama({
    models: { llama: { capabilities: ["completion", "tools"] } },
    pieces: ["So."],
    toolCalls: [{ name: "look", arguments: { q: "den" } }],
  });
  const tools = openTools(() => {});
  await using app = await openTestApp({ toolSources: [() => Promise.resolve(tools)], toolLimits: { rounds: 2 } });
  await useModel(app, llm, { kind: "ollama", model: "llama" });
  const { text, error, isDone } = await gather(await ask(app, 1, { context: "server" }));
  expect({ text, error, isDone }).toEqual({ text: "So.So.So.", error: undefined, isDone: true });
  expect(tools.calls).toHaveLength(2);
  const last = llm.requests.filter(({ path }) => path === "/api/chat").at(-1)!.json as Record<string, unknown>;
  expect(last.tools).toBeUndefined();
  expect(last.messages).toEqual([
    { role: "user", content: "question 1" },
    ...[1, 2].flatMap(() => [
      { role: "assistant", content: 'So.\n[Called the tool look with {"q":"den"}]' },
      { role: "user", content: expect.stringMatching(/not an instruction.*\na fox$/) },
    ]),
  ]);
  expect((await savedMessage(app, "a1"))!.status).toBe("complete");
});

test("an Ollama model without tools is asked without them, and the message says so", async () => {
  await using llm = await openFakeOllama({ models: { llama: { capabilities: ["completion"] } } });
  const tools = openTools(() => {});
  await using app = await openTestApp({ toolSources: [() => Promise.resolve(tools)] });
  await useModel(app, llm, { kind: "ollama", model: "llama" });
  expect((await gather(await ask(app, 1, { context: "server" }))).text).toBe("Hello");
  expect((await savedMessage(app, "a1"))!.left_out).toMatchObject([
    { field: "tools", reason: expect.stringContaining("does not support tools") },
  ]);
});
