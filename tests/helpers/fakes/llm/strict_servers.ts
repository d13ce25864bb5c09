/**
 * Fakes of nine model servers that refuse what the real ones refuse (strict_rules.ts), and that call tools in two rounds,
 * each with the IDs, signatures and events of the real one. All run in one HTTP server.
 */
import { asObject, type JsonObject } from "../../../../services/json/type_guards.ts";
import type { ProviderKind } from "../../../../services/llm/provider.ts";
import { createStrictRules, type StrictName } from "./strict_rules.ts";

/** A call of a tool. */
interface Call {
  id: string;
  name: string;
  args: JsonObject;
}

/** What a model writes in one request. */
interface Turn {
  text: string;
  calls: Call[];
  /** Number of the reply among all of the server, from 0. */
  n: number;
}

/** A request that a server refused. */
interface Refusal {
  server: StrictName;
  /** With the URL of the rule. */
  reason: string;
}

/** Running servers. */
export interface StrictServers extends AsyncDisposable {
  refusals: Refusal[];
  /** Chat requests, by server. */
  requests: { server: StrictName; url: string; body: JsonObject }[];
  /** A server that breaks off after its first results. */
  failing?: StrictName;
  /** Returns the fields of a connection to a server. */
  connect(name: StrictName): { base_url: string; kind: ProviderKind; model: string; server?: { override: string } };
}

/** The protocol of each server. Others have OpenAI's. */
const KINDS: Partial<Record<StrictName, ProviderKind>> = {
  "openai-responses": "openai-responses",
  anthropic: "anthropic",
  ollama: "ollama",
};

/** IDs of calls in the form of each server. */
const IDS: Record<StrictName, (n: number) => string> = {
  openai: (n) => `call_${String(n).padStart(24, "a")}`,
  "openai-responses": (n) => `call_${String(n).padStart(59, "b")}`,
  anthropic: (n) => `toolu_01${String(n).padStart(22, "C")}`,
  gemini: (n) => `function-call-${String(n).padStart(19, "1")}`,
  mistral: (n) => String(n).padStart(9, "d"),
  deepseek: (n) => `call_00_${String(n).padStart(24, "e")}`,
  // Kimi's.
  openrouter: (n) => `functions.look:${n}`,
  // Before 0.12: none. Parlor makes its own.
  ollama: () => "",
  "llama.cpp": (n) => String(n).padStart(32, "f"),
};

/** Starts all servers. @param tools Names of the tools to call, in turn. */
export function openStrictServers(tools: readonly string[]): StrictServers {
  const signatures = new Map<string, string>();
  const rules = createStrictRules(signatures);
  const counts = new Map<StrictName, number>();

  function sign(vendor: string): string {
    const signature = btoa(`${vendor} ${signatures.size}`);
    signatures.set(signature, vendor);
    return signature;
  }

  const servers: StrictServers = {
    refusals: [],
    requests: [],
    connect: (name) => ({
      base_url: `http://127.0.0.1:${server.addr.port}/${encodeURIComponent(name)}${
        name === "ollama" || name === "anthropic" ? "" : "/v1"
      }`,
      kind: KINDS[name] ?? "openai",
      model: name === "openrouter" ? "anthropic/claude-fake" : `${name}-model`,
      ...(KINDS[name] === undefined && { server: { override: name } }),
    }),
    [Symbol.asyncDispose]: () => server.shutdown(),
  };

  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
    const [, first = "", ...rest] = new URL(request.url).pathname.split("/");
    const name = decodeURIComponent(first) as StrictName;
    const path = rest.join("/");
    const { model } = servers.connect(name);
    if (path.endsWith("models")) return Response.json({ object: "list", data: [{ id: model }] });
    if (path === "api/show") return Response.json({ capabilities: ["completion", "tools", "thinking", "vision"] });
    if (path === "api/ps" || path === "api/tags") return Response.json({ models: [{ name: model, model }] });
    if (!/(chat\/completions|responses|messages|api\/chat)$/.test(path)) return new Response("", { status: 404 });
    const body = asObject(await request.json());
    servers.requests.push({ server: name, url: request.url, body });
    for (const { url, check } of rules[name]) {
      for (const reason of check(body)) {
        servers.refusals.push({ server: name, reason: `${reason} (${url})` });
        return refuse(name, reason);
      }
    }
    const called = countCalls(name, body);
    if (servers.failing === name && called > 0) return new Response("", { status: 500 });
    const turn = write(name, called);
    return ENCODERS[name](turn, sign);
  });

  /** Two calls with a text, then one without, then the answer. */
  function write(name: StrictName, called: number): Turn {
    const n = counts.get(name) ?? 0;
    counts.set(name, n + 1);
    const call = (at: number): Call => ({
      id: IDS[name](n * 2 + at),
      name: tools[(called + at) % tools.length]!,
      args: { q: `${name} ${called + at}` },
    });
    if (called === 0) return { text: "I look.", calls: [call(0), call(1)], n };
    return called === 2 ? { text: "", calls: [call(0)], n } : { text: "Done.", calls: [], n };
  }

  return servers;
}

/** Counts the calls since the last question. */
function countCalls(name: StrictName, body: JsonObject): number {
  const list = (value: unknown): JsonObject[] => Array.isArray(value) ? value.map(asObject) : [];
  if (name === "openai-responses") {
    const items = list(body.input);
    const question = items.findLastIndex(({ role }) => role === "user");
    return items.slice(question).filter(({ type }) => type === "function_call").length;
  }
  const messages = list(body.messages);
  const question = messages.findLastIndex(({ role, content }) =>
    role === "user" && !(Array.isArray(content) && content.every((block) => asObject(block).type === "tool_result"))
  );
  return messages.slice(question).reduce(
    (count, { tool_calls: calls, content }) =>
      count + list(calls).length + list(content).filter(({ type }) => type === "tool_use").length,
    0,
  );
}

function refuse(name: StrictName, reason: string): Response {
  const error = { message: reason, type: "invalid_request_error", param: null, code: null };
  if (name === "anthropic") return Response.json({ type: "error", error }, { status: 400 });
  if (name === "gemini") return Response.json([{ error: { ...error, code: 400 } }], { status: 400 });
  if (name === "ollama") return Response.json({ error: reason }, { status: 400 });
  return Response.json({ error }, { status: 400 });
}

type Encode = (turn: Turn, sign: (vendor: string) => string) => Response;

function toStream(events: unknown[], isNamed = false): Response {
  const lines = events.map((event) =>
    `${isNamed ? `event: ${asObject(event).type}\n` : ""}data: ${JSON.stringify(event)}\n\n`
  );
  const body = lines.join("") + (isNamed ? "" : "data: [DONE]\n\n");
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/** Creates the stream of chunks. @param deltas Those before the calls. */
function toChunks(
  { text, calls }: Turn,
  deltas: JsonObject[],
  toDeltas: (call: Call, n: number) => unknown[],
): Response {
  const all = [
    { role: "assistant", content: "" },
    ...deltas,
    ...(text === "" ? [] : [{ content: text }]),
    ...calls.flatMap(toDeltas).map((fragment) => ({ tool_calls: [fragment] })),
  ];
  const finish = calls.length > 0 ? "tool_calls" : "stop";
  return toStream([
    ...all.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] })),
    { choices: [{ index: 0, delta: {}, finish_reason: finish }] },
  ]);
}

const toWhole = ({ id, name, args }: Call, index: number) => [
  { index, id, type: "function", function: { name, arguments: JSON.stringify(args) } },
];

function toFragments({ id, name, args }: Call, index: number): unknown[] {
  const text = JSON.stringify(args);
  return [
    { index, id, type: "function", function: { name, arguments: "" } },
    { index, function: { arguments: text.slice(0, 4) } },
    { index, function: { arguments: text.slice(4) } },
  ];
}

const ENCODERS: Record<StrictName, Encode> = {
  openai: (turn) => toChunks(turn, [], toFragments),
  deepseek: (turn) => toChunks(turn, [{ reasoning_content: "Hm." }], toFragments),
  "llama.cpp": (turn) => toChunks(turn, [{ reasoning_content: "Hm." }], toFragments),
  // https://docs.mistral.ai/capabilities/reasoning
  mistral: (turn) =>
    toChunks(turn, [{ content: [{ type: "thinking", thinking: [{ type: "text", text: "Hm." }] }] }], toWhole),
  // All calls have the index 0: https://github.com/vercel/ai/issues/14277
  gemini: (turn, sign) =>
    toChunks(turn, [], (call, n) => [
      {
        ...toWhole(call, 0)[0],
        ...(n === 0 && { extra_content: { google: { thought_signature: sign("gemini") } } }),
      },
    ]),
  openrouter: (turn, sign) => {
    const detail = { type: "reasoning.text", format: "anthropic-claude-v1", index: 0, text: "Hm." };
    const details = [{ ...detail, signature: sign("anthropic") }];
    return toChunks(turn, [{ reasoning: "Hm.", reasoning_details: details }], toFragments);
  },
  ollama: ({ text, calls }) => {
    const values = [
      { message: { role: "assistant", content: "", thinking: "Hm." }, done: false },
      { message: { role: "assistant", content: text }, done: false },
      ...calls.map(({ name, args }) => ({
        message: { role: "assistant", content: "", tool_calls: [{ function: { name, arguments: args } }] },
        done: false,
      })),
      { message: { role: "assistant", content: "" }, done: true, done_reason: "stop" },
    ];
    const body = values.map((value) => `${JSON.stringify(value)}\n`).join("");
    return new Response(body, { headers: { "content-type": "application/x-ndjson" } });
  },
  anthropic: ({ text, calls }, sign) => {
    const blocks: [JsonObject, JsonObject[]][] = [
      [{ type: "thinking", thinking: "", signature: "" }, [
        { type: "thinking_delta", thinking: "Hm." },
        { type: "signature_delta", signature: sign("anthropic") },
      ]],
      ...(text === ""
        ? []
        : [[{ type: "text", text: "" }, [{ type: "text_delta", text }]]] as [JsonObject, JsonObject[]][]),
      ...calls.map(({ id, name, args }): [JsonObject, JsonObject[]] => [
        { type: "tool_use", id, name, input: {} },
        [{ type: "input_json_delta", partial_json: JSON.stringify(args) }],
      ]),
    ];
    return toStream([
      { type: "message_start", message: { role: "assistant", content: [], usage: { input_tokens: 9 } } },
      ...blocks.flatMap(([content_block, deltas], index) => [
        { type: "content_block_start", index, content_block },
        ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
        { type: "content_block_stop", index },
      ]),
      { type: "message_delta", delta: { stop_reason: calls.length > 0 ? "tool_use" : "end_turn" }, usage: {} },
      { type: "message_stop" },
    ], true);
  },
  "openai-responses": ({ text, calls, n }, sign) => {
    const output: JsonObject[] = [
      { type: "reasoning", id: `rs_${n}`, summary: [], encrypted_content: sign("openai") },
      ...(text === "" ? [] : [{
        type: "message",
        id: `msg_${n}`,
        role: "assistant",
        content: [{ type: "output_text", text, annotations: [] }],
      }]),
      ...calls.map(({ id, name, args }, at) => ({
        type: "function_call",
        id: `fc_${n}_${at}`,
        call_id: id,
        name,
        arguments: JSON.stringify(args),
      })),
    ];
    return toStream([
      ...output.flatMap((item, output_index) => [
        { type: "response.output_item.added", output_index, item },
        { type: "response.output_item.done", output_index, item },
      ]),
      { type: "response.completed", response: { status: "completed", output } },
    ], true);
  },
};
