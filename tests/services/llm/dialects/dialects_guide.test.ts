/** The table of docs/guide/connections.md, compared with the requests of each dialect and the fake servers. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ChatCall, ChatMessage } from "../../../../services/llm/chat_event.ts";
import { createAnthropicBody } from "../../../../services/llm/anthropic/anthropic_request.ts";
import { DIALECT_NAMES, type DialectName, REASONING_EFFORTS } from "../../../../services/llm/dialects/dialect.ts";
import { getDialect } from "../../../../services/llm/dialects/dialects.ts";
import { createOllamaBody, toThink } from "../../../../services/llm/ollama/ollama_request.ts";
import { createOpenAiBody } from "../../../../services/llm/openai/openai_request.ts";
import { createUpstreamClient, type UpstreamClient } from "../../../../services/llm/upstream_client.ts";
import { ask as askApp, gather as gatherReply, useModel } from "../../../helpers/app/chat_client.ts";
import { openTestApp, type TestApp } from "../../../helpers/app/test_app.ts";
import { openFakeAnthropic } from "../../../helpers/fakes/llm/fake_llm_anthropic.ts";
import { openFakeLlm, type RecordedRequest } from "../../../helpers/fakes/llm/fake_llm.ts";
import type { PersonalityName } from "../../../helpers/fakes/llm/fake_llm_servers.ts";
import { openFakeOllama } from "../../../helpers/fakes/llm/fake_ollama.ts";
import { ask, gather, kindOf, never, target } from "../model_calls.ts";

const GUIDE = new URL("../../../../docs/guide/connections.md", import.meta.url);
/** Names of fakes that differ from the dialect. */
const DOUBLES: Partial<Record<DialectName, PersonalityName>> = { lmstudio: "lm-studio", mlx: "mlx_lm" };
const IMAGE = "data:image/png;base64,iVBORw0KGgo=";
const TOOL = { type: "function", function: { name: "look_around", parameters: { type: "object" } } };

let client: UpstreamClient;
let app: TestApp;
beforeAll(async () => {
  client = createUpstreamClient({ log: () => {} });
  app = await openTestApp();
});
afterAll(async () => {
  client.close();
  await app[Symbol.asyncDispose]();
});

/** A fake server of a dialect. */
interface Double extends AsyncDisposable {
  url: string;
  requests: RecordedRequest[];
}

/** Opens a fake server. @param isFull Its context is too small for every prompt. */
function openDouble(name: DialectName, isFull = false): Promise<Double> {
  if (name === "anthropic") return openFakeAnthropic({ fail: isFull ? "overflow" : "none" });
  if (name === "ollama") {
    const model = { capabilities: ["completion", "tools", "vision"], ...(isFull && { maxContextSize: 3 }) };
    // It drops messages unless a call forbids that, as versions before 0.12 always did.
    return openFakeOllama({ models: { "fake-model": model }, alwaysTruncates: isFull });
  }
  return openFakeLlm({ personality: DOUBLES[name] ?? name as PersonalityName });
}

function kindOfDialect(name: DialectName) {
  return name === "anthropic" || name === "ollama" ? name : "openai" as const;
}

async function send(name: DialectName, double: Double, call: ChatCall) {
  const dialect = getDialect(name);
  const query = name === "azure" ? "api-version=2024-10-21" : undefined;
  const upstream = target(double.url, { dialect, query, kind: kindOfDialect(name) });
  try {
    const answer = await gather(await client.openChatStream(upstream, call, never()));
    return { text: answer.text, error: answer.error, body: double.requests.at(-1)!.body };
  } catch (error) {
    return { text: "", error, body: double.requests.at(-1)!.body };
  }
}

/** The fields that a request has in a dialect, without those of every request. */
function fieldsIn(name: DialectName, params: Record<string, unknown>): Record<string, unknown> {
  const upstream = target("http://h/v1", { dialect: getDialect(name) });
  const call = ask("hi", params);
  if (name === "anthropic") {
    const { model: _, messages: __, stream: ___, ...own } = createAnthropicBody(upstream, call, { stream: false }).body;
    return own;
  }
  if (name === "ollama") {
    // gpt-oss takes levels, all other models on and off.
    const bodies = [true, false].map((hasThinkingLevels) =>
      createOllamaBody(call, { stream: false, think: toThink(params, { hasThinkingLevels }) })
    );
    const think = bodies.flatMap((body) => body.think ?? []);
    return { ...bodies[0]!.options, ...(think.length > 0 && { think }) };
  }
  const { model: _, messages: __, stream: ___, ...own } = createOpenAiBody(upstream, call, { stream: false }).fields;
  return own;
}

/** The name under which a value is sent. */
function nameOf(name: DialectName, param: string, value: number): string | undefined {
  return Object.entries(fieldsIn(name, { [param]: value })).find(([, sent]) => sent === value)?.[0];
}

/** Efforts that change the request. */
function effortsOf(name: DialectName): string[] {
  const { efforts } = getDialect(name).thinking;
  const sent = new Map(efforts.map((effort) => [JSON.stringify(fieldsIn(name, { reasoning_effort: effort })), effort]));
  return REASONING_EFFORTS.filter((effort) => [...sent.values()].includes(effort));
}

/** Whether a reply that is continued is the last message of the request. */
async function continues(name: DialectName): Promise<boolean> {
  await using double = await openDouble(name);
  const url = name === "azure" ? `${double.url}?api-version=2024-10-21` : double.url;
  const server = kindOfDialect(name) === "openai" ? { override: name } : undefined;
  await useModel(app, { url }, { kind: kindOfDialect(name), server });
  const conversation = { conversation_id: `guide-${name.replace(".", "")}` };
  expect((await gatherReply(await askApp(app, 1, conversation))).text, name).toBe("Hello");
  const more = { ...conversation, action: "continue", context: "server", messages: [], user_message_id: undefined };
  await gatherReply(await askApp(app, 1, more));
  const chats = double.requests.filter(({ json }) => json?.messages !== undefined && json.stream === true);
  expect(chats.length, name).toBe(2);
  return (chats[1]!.json!.messages as ChatMessage[]).at(-1)!.role === "assistant";
}

/** Whether the server drops what is too long. Otherwise it refuses, and Parlor has to. */
async function dropsSilently(name: DialectName): Promise<boolean> {
  // It has no limit but the memory: https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/SERVER.md
  if (name === "mlx") return false;
  await using double = await openDouble(name, true);
  const messages = ["OVERFLOW a b c", "d e f"].map((content) => ({ role: "user", content }));
  const { text, error } = await send(name, double, { ...ask(), messages: [messages[1]!, messages[0]!] });
  if (error !== undefined) expect(kindOf(error), name).toBe("overflow");
  return text !== "";
}

async function readsImages(name: DialectName): Promise<boolean> {
  await using double = await openDouble(name);
  const content = [{ type: "text", text: "What is it?" }, { type: "image_url", image_url: { url: IMAGE } }];
  const { text, body } = await send(name, double, { ...ask(), messages: [{ role: "user", content }] });
  expect(body, name).toContain(IMAGE.split(",")[1]);
  return text === "Hello";
}

async function takesTools(name: DialectName): Promise<boolean> {
  await using double = await openDouble(name);
  const { text, body } = await send(name, double, ask("hi", { tools: [TOOL] }));
  return text === "Hello" && body.includes("look_around");
}

async function rowOf(name: DialectName): Promise<(string | boolean)[]> {
  const limit = nameOf(name, "max_tokens", 77);
  const needsLimit = Object.keys(fieldsIn(name, {})).length > 0;
  const penalty = nameOf(name, "repetition_penalty", 1.37);
  const isDocumented = Object.hasOwn(getDialect(name).samplers, "repetition_penalty");
  const efforts = effortsOf(name).map((effort) => effort === "none" ? "off" : effort);
  return [
    getDialect(name).title,
    `\`${limit}\`${needsLimit ? " \\*" : ""}`,
    isDocumented ? `\`${penalty}\`` : "–",
    efforts.length === 0 ? "–" : efforts.join(", "),
    await continues(name),
    await dropsSilently(name),
    await readsImages(name),
    await takesTools(name),
  ];
}

/** The last cells of the table, as the page receives them. */
function factsOf(name: DialectName): boolean[] {
  const { continues, trimsContext, imageTypes, tools } = getDialect(name);
  return [continues, trimsContext === "server", imageTypes.length > 0, tools];
}

const HEAD = [
  "Server",
  "Limit of a reply",
  "Repetition penalty",
  "Switch thinking",
  "Continue",
  "Long chats",
  "Images",
  "Tools",
];

/** Reads the rows of the table between the marks. */
function rowsOf(markdown: string): string[][] {
  const table = markdown.split("<!-- dialects:begin -->")[1]!.split("<!-- dialects:end -->")[0]!;
  return table.trim().split("\n").map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()));
}

test.each([...DIALECT_NAMES])("the guide's row of %s matches what is sent", async (name) => {
  const rows = rowsOf(await Deno.readTextFile(GUIDE));
  const cells = rows.find(([title]) => title === getDialect(name).title)!;
  const found = await rowOf(name);
  expect(cells.map((cell, index) => index < 4 ? cell : ["yes", "server"].includes(cell))).toEqual(found);
  expect(factsOf(name)).toEqual(found.slice(4));
});

test("the guide's table has a row for each server", async () => {
  const rows = rowsOf(await Deno.readTextFile(GUIDE)).filter(([first]) => !/^-+$/.test(first!));
  expect(rows[0]).toEqual(HEAD);
  expect(rows.slice(1).map(([title]) => title)).toEqual(DIALECT_NAMES.map((name) => getDialect(name).title));
});
