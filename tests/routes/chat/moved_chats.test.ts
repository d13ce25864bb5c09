/** Chats with tools that move between servers, each of which refuses what the real one refuses. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ask, gather, useModel } from "../../helpers/app/chat_client.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { answerText, FakeTools } from "../../helpers/fakes/fake_tools.ts";
import { STRICT_NAMES, type StrictName } from "../../helpers/fakes/llm/strict_rules.ts";
import { openStrictServers, type StrictServers } from "../../helpers/fakes/llm/strict_servers.ts";
import type { JsonObject } from "../../../services/json/type_guards.ts";

/** Schemas that are legal in MCP, and that some server refuses. */
const SCHEMAS: Record<string, JsonObject> = {
  look: { type: "object" },
  list: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    additionalProperties: false,
    properties: {
      place: { $ref: "#/$defs/place" },
      kind: { const: "den" },
      level: { enum: [1, 2, 3] },
      depth: { type: "integer", exclusiveMinimum: 0, multipleOf: 2 },
      name: { type: ["string", "null"], pattern: "[a-z]", format: "uri" },
      names: { type: "array" },
      more: { type: "object" },
      any: true,
      none: {},
      pair: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }] },
      some: { oneOf: [{ type: "string", enum: ["", "a"] }, { type: "null" }] },
    },
    required: ["place", "missing"],
    $defs: { place: { type: "object", properties: { next: { $ref: "#/$defs/place" } } } },
  },
  mark: {
    type: "object",
    properties: { a: { type: "string" } },
    anyOf: [{ required: ["a"] }, { properties: { b: { type: "string" } }, required: ["b"] }],
  },
};
const TOOLS = Object.keys(SCHEMAS);
/** The ID of a server's connection. */
const idOf = (name: StrictName) => name.replace(".", "_");

let app: TestApp;
let servers: StrictServers;
const tools = new FakeTools();
for (const [name, inputSchema] of Object.entries(SCHEMAS)) {
  tools.set(name, () => answerText(name === "mark" ? "" : "a fox"), { permission: "allow", inputSchema });
}

beforeAll(async () => {
  servers = openStrictServers(TOOLS);
  app = await openTestApp({ toolSources: [() => Promise.resolve(tools)] });
  for (const name of STRICT_NAMES) await useModel(app, { url: "" }, { id: idOf(name), name, ...servers.connect(name) });
});
afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await servers[Symbol.asyncDispose]();
});
beforeEach(() => Object.assign(servers, { refusals: [], requests: [], failing: undefined }));

/** Sends a message to a server and returns the text of the reply. */
async function askAt(name: StrictName, chat: string, n: number): Promise<string> {
  const { model } = servers.connect(name);
  const fields = {
    conversation_id: chat,
    context: "server",
    connection_id: idOf(name),
    model,
    reasoning_effort: "low",
  };
  const { text, error } = await gather(await ask(app, n, fields));
  return error === undefined ? text : `Error: ${error.message}`;
}

/** Why servers refused requests so far. */
const listRefusals = () => servers.refusals.map(({ server, reason }) => `${server}: ${reason}`);

test.each(STRICT_NAMES)("a chat with two rounds of tools goes from %s to every server and back", async (from) => {
  const chats = await Promise.all(STRICT_NAMES.map(async (to) => {
    const chat = `${idOf(from)}-${idOf(to)}`;
    const texts = [];
    for (const [n, name] of [from, to, from].entries()) texts.push(await askAt(name, chat, n + 1));
    const { messages } = await (await app.get(`/api/conversations/${chat}`)).json();
    return { to, texts, leftOut: messages.flatMap((message: JsonObject) => message.left_out ?? []) };
  }));
  expect(listRefusals()).toEqual([]);
  expect(chats).toEqual(STRICT_NAMES.map((to) => ({ to, texts: Array(3).fill("I look.Done."), leftOut: [] })));
});

test.each(STRICT_NAMES)("a chat whose reply broke off after a result goes to %s", async (to) => {
  const from = to === "gemini" ? "openrouter" : "gemini";
  servers.failing = from;
  expect(await askAt(from, `broken-${idOf(to)}`, 1)).toContain("Error");
  servers.failing = undefined;
  expect(await askAt(to, `broken-${idOf(to)}`, 2)).toBe("I look.Done.");
  expect(listRefusals()).toEqual([]);
});

type Change = (body: JsonObject, messages: JsonObject[], tools: JsonObject[]) => void;

/** Messages with calls and with results, in OpenAI's form. */
const callsOf = (messages: JsonObject[]) => messages.find(({ tool_calls: calls }) => calls !== undefined)!;
const resultOf = (messages: JsonObject[]) => messages.find(({ role }) => role === "tool")!;
const firstCall = (messages: JsonObject[]) => (callsOf(messages).tool_calls as JsonObject[])[0]!;
const parametersOf = (tool: JsonObject) => (tool.function as JsonObject).parameters as JsonObject;
/** Blocks of the first message that has one of a type. */
const blocksOf = (messages: JsonObject[], type: string) =>
  messages.map(({ content }) => content as JsonObject[]).find((blocks) => blocks.some((block) => block.type === type))!;
const removeResult: Change = (_, messages) => messages.splice(messages.indexOf(resultOf(messages)), 1);

test.each<[StrictName, string, Change, RegExp]>([
  ["openai", "a long ID", (_, all) => firstCall(all).id = "x".repeat(41), /not/],
  ["openai", "a call without its result", removeResult, /must be followed/],
  ["openai", "a result without its call", (_, all) => resultOf(all).tool_call_id = "x", /must be a response/],
  ["openai", "no content", (_, all) => all.push({ role: "assistant", content: null }), /expected a string, got null/],
  ["openai", "a field of another server", (_, all) => callsOf(all).reasoning_content = "", /unknown field/],
  ["openai", "no properties", (_, __, tools) => delete parametersOf(tools[0]!).properties, /missing properties/],
  ["openai", "alternatives", (_, __, tools) => parametersOf(tools[0]!).anyOf = [], /top level/],
  ["openai-responses", "a long ID", (_, items) => items.find(({ call_id }) => call_id)!.call_id = "x".repeat(65), /64/],
  ["openai-responses", "foreign reasoning", (_, items) => {
    items.find(({ type }) => type === "reasoning")!.encrypted_content = "x";
  }, /could not be verified/],
  ["openai-responses", "a call without its result", (_, items) => {
    items.splice(items.findIndex(({ type }) => type === "function_call_output"), 1);
  }, /No tool output/],
  ["anthropic", "an ID with a colon", (_, all) => {
    blocksOf(all, "tool_use").find(({ type }) => type === "tool_use")!.id = "a:0";
  }, /should match pattern|immediately after/],
  ["anthropic", "an empty text", (_, all) => blocksOf(all, "tool_use").push({ type: "text", text: "" }), /non-empty/],
  ["anthropic", "no result", (_, all) => blocksOf(all, "tool_result").shift(), /immediately after|must have content/],
  ["anthropic", "a foreign signature", (_, all) => {
    blocksOf(all, "thinking").find(({ type }) => type === "thinking")!.signature = "x";
  }, /Invalid signature/],
  [
    "anthropic",
    "no thinking before calls",
    (_, all) => (all.at(-2)!.content as JsonObject[]).shift(),
    /Expected thinking/,
  ],
  ["gemini", "no signature", (_, all) => {
    for (const { tool_calls: calls } of all) if (calls) delete (calls as JsonObject[])[0]!.extra_content;
  }, /missing a thought_signature/],
  ["gemini", "a foreign signature", (_, all) => {
    firstCall(all).extra_content = { google: { thought_signature: "x" } };
  }, /not valid/],
  ["gemini", "a keyword", (_, __, tools) => parametersOf(tools[1]!).$schema = "x", /Unknown name/],
  ["gemini", "numbers to choose from", (_, __, tools) => {
    (parametersOf(tools[1]!).properties as JsonObject).level = { type: "integer", enum: [1] };
  }, /only allowed for STRING/],
  ["gemini", "calls after a reply", (_, all) => {
    all.splice(all.indexOf(callsOf(all)), 0, { role: "assistant", content: "So." });
  }, /immediately after a user turn/],
  ["mistral", "a long ID", (_, all) => firstCall(all).id = "x".repeat(10), /not/],
  ["mistral", "a question after a result", (_, all) => all.push({ role: "user", content: "hi" }), /after role/],
  ["mistral", "a late system message", (_, all) => all.push({ role: "system", content: "hi" }), /after role/],
  ["mistral", "an empty reply", (_, all) => all.splice(1, 0, { role: "assistant", content: "" }), /either content/],
  ["deepseek", "no reasoning", (_, all) => delete callsOf(all).reasoning_content, /must be passed back/],
  ["deepseek", "the role developer", (_, all) => all[0]!.role = "developer", /unknown variant/],
  ["openrouter", "an ID with a colon", (_, all) => firstCall(all).id = "a:0", /not/],
  ["openrouter", "foreign reasoning", (_, all) => {
    callsOf(all).reasoning_details = [{ type: "reasoning.text", signature: "x" }];
  }, /Invalid signature/],
  ["ollama", "arguments as text", (_, all) => (firstCall(all).function as JsonObject).arguments = "{}", /unmarshal/],
  ["ollama", "content in parts", (_, all) => all[0]!.content = [], /unmarshal/],
  ["ollama", "a Boolean schema", (_, __, tools) => {
    (parametersOf(tools[1]!).properties as JsonObject).any = true;
  }, /unmarshal/],
  ["llama.cpp", "a part of a pattern", (_, __, tools) => {
    (parametersOf(tools[1]!).properties as JsonObject).name = { pattern: "a" };
  }, /must start with/],
  ["llama.cpp", "a result without its call", (_, all) => resultOf(all).tool_call_id = "x", /must be a response/],
])("the double of %s refuses %s", async (name, what, change, reason) => {
  const chat = `refused-${what.replaceAll(" ", "-")}-${idOf(name)}`;
  expect(await askAt(name, chat, 1)).toBe("I look.Done.");
  const { body, url } = servers.requests.findLast(({ server }) => server === name)!;
  const again = () => fetch(url, { method: "POST", body: JSON.stringify(body) });
  const accepted = await again();
  await accepted.body?.cancel();
  change(body, (body.messages ?? body.input) as JsonObject[], body.tools as JsonObject[]);
  const refused = await again();
  expect([accepted.status, refused.status]).toEqual([200, 400]);
  expect(await refused.text()).toMatch(reason);
});
