import { expect, test } from "vitest";
import type { ChatMessage } from "../../../../services/llm/chat_event.ts";
import type { DialectName } from "../../../../services/llm/dialects/dialect.ts";
import { getDialect } from "../../../../services/llm/dialects/dialects.ts";
import { fitMessages } from "../../../../services/llm/dialects/portable_messages.ts";

const call = (id: string, more: Record<string, unknown> = {}, name = "look") => ({
  id,
  type: "function",
  function: { name, arguments: "{}" },
  ...more,
});
const round = (...ids: string[]): ChatMessage[] => [
  { role: "assistant", content: "", tool_calls: ids.map((id) => call(id)) },
  ...ids.map((id) => ({ role: "tool", content: "", tool_call_id: id })),
];
const fit = (dialect: DialectName, messages: ChatMessage[], model?: string) =>
  fitMessages(getDialect(dialect), messages, { model });
/** IDs of all calls and results. */
const idsOf = (messages: ChatMessage[]) =>
  messages.flatMap(({ tool_calls, tool_call_id }) =>
    tool_call_id !== undefined ? [tool_call_id] : ((tool_calls ?? []) as { id: string }[]).map(({ id }) => id)
  );

test.each<[DialectName, RegExp]>([
  ["openai", /^[\x21-\x7e]{1,40}$/],
  ["azure", /^[\x21-\x7e]{1,40}$/],
  ["mistral", /^[A-Za-z0-9]{9}$/],
  ["anthropic", /^[A-Za-z0-9_-]{1,64}$/],
])("%s gets IDs of calls and results that it accepts, the same in every request", (dialect, pattern) => {
  const odd = ["functions.look:0", "a".repeat(90), "töne", "toolu_01", "abcDEF123"];
  const messages = [...round(...odd), ...round("functions.look:0")];
  const fitted = fit(dialect, messages);
  const ids = idsOf(fitted) as string[];
  for (const id of ids) expect(id).toMatch(pattern);
  expect(ids.slice(0, 5)).toEqual(ids.slice(5, 10));
  expect(new Set([...ids.slice(0, 5), ids[10]]).size).toBe(6);
  expect(ids[10]).toBe(ids[11]);
  expect(ids[4]).toBe("abcDEF123");
  expect(fit(dialect, messages)).toEqual(fitted);
  expect(idsOf(messages)).toEqual([...odd, ...odd, "functions.look:0", "functions.look:0"]);
});

test("an unknown server gets IDs as they came", () => {
  expect(idsOf(fit("generic", round("functions.look:0")))).toEqual(["functions.look:0", "functions.look:0"]);
});

test("signatures stay with their vendor", () => {
  const google = { google: { thought_signature: "c2ln" } };
  const messages: ChatMessage[] = [{
    role: "assistant",
    content: null,
    tool_calls: [call("a", { extra_content: google }), call("b")],
  }];
  const extras = (dialect: DialectName, from = messages) =>
    (fit(dialect, from)[0]!.tool_calls as Record<string, unknown>[]).map((one) => one.extra_content);
  expect(extras("openai")).toEqual([undefined, undefined]);
  expect(extras("gemini")).toEqual([google, undefined]);
  expect(extras("gemini", round("a", "b"))).toEqual([
    { google: { thought_signature: "skip_thought_signature_validator" } },
    undefined,
  ]);
});

test("OpenRouter gets reasoning of the model's own vendor only", () => {
  const details = ["anthropic-claude-v1", "openai-responses-v1", undefined].map((format) => ({ format }));
  const messages: ChatMessage[] = [{
    role: "assistant",
    content: null,
    tool_calls: [call("a")],
    reasoning_details: details,
  }];
  expect(fit("openrouter", messages, "anthropic/claude-x")[0]!.reasoning_details).toEqual([details[0], details[2]]);
  expect(fit("openrouter", messages, "meta/llama")[0]!.reasoning_details).toEqual([details[2]]);
});

test("names that a server refuses are replaced", () => {
  const messages: ChatMessage[] = [{ role: "assistant", content: null, tool_calls: [call("a", {}, "files.list:all")] }];
  expect(fit("openai", messages)[0]!.tool_calls).toMatchObject([{ function: { name: "files_list_all" } }]);
});

test("pictures of a reply go back with the next user message, or as a note", () => {
  const image = { type: "image_url", image_url: { url: "data:image/jpeg;base64,eA==" } };
  const messages: ChatMessage[] = [
    { role: "assistant", content: [{ type: "text", text: "Here." }, image] },
    { role: "user", content: "Bluer." },
  ];
  expect(fit("openai", messages)).toEqual([
    { role: "assistant", content: "Here.\n[a picture]" },
    { role: "user", content: [expect.objectContaining({ type: "text" }), image, { type: "text", text: "Bluer." }] },
  ]);
  expect(fit("deepseek", messages)).toEqual([{ role: "assistant", content: "Here.\n[a picture]" }, messages[1]]);
});

test("Mistral gets its order of roles", () => {
  const messages: ChatMessage[] = [
    { role: "developer", content: "Be brief." },
    { role: "user", content: "hi" },
    { role: "system", content: "It is night." },
    ...round("a"),
    { role: "assistant", content: "" },
    { role: "user", content: "and?" },
  ];
  expect(fit("mistral", messages).map(({ role }) => role)).toEqual([
    ...["system", "user", "user", "assistant", "tool", "assistant", "user"],
  ]);
});

test("a name is in the text for servers whose messages have none, and names of tools stay", () => {
  const messages: ChatMessage[] = [
    { role: "system", content: "Be kind.", name: "rules" },
    { role: "user", content: "Hi", name: "Ann" },
    { role: "user", content: [{ type: "image_url" }, { type: "text", text: "Look" }], name: "Ann" },
    { role: "assistant", content: "Hello", name: "Fox" },
    { role: "tool", content: "5", name: "count", tool_call_id: "a" },
  ];
  for (const dialect of ["openai", "openrouter", "llama.cpp", "generic"] as const) {
    expect(fit(dialect, messages)).toEqual(messages);
  }
  const { name: _, ...rules } = messages[0]!;
  for (const dialect of ["anthropic", "gemini", "ollama"] as const) {
    expect(fit(dialect, messages)).toEqual([
      rules,
      { role: "user", content: "Ann: Hi" },
      { role: "user", content: [{ type: "image_url" }, { type: "text", text: "Ann: Look" }] },
      { role: "assistant", content: "Fox: Hello" },
      messages[4],
    ]);
  }
  expect(fit("mistral", messages)[1]).toEqual({ role: "user", content: "Ann: Hi" });
  expect(fitMessages(getDialect("openai"), messages, { takesNames: false })[1]).toEqual({
    role: "user",
    content: "Ann: Hi",
  });
});
