/** Streams of replies: what a model server sends to Parlor, and what Parlor sends to its page. However a stream is cut, it means the same. */
import { parseReplyFrame, placeDelta } from "../../../static/src/api/reply_frames.ts";
import { readEvents } from "../../../static/src/api/client.ts";
import { createAnthropicTranslator } from "../../../services/llm/anthropic/anthropic_provider.ts";
import type { ChatEvent } from "../../../services/llm/chat_event.ts";
import { createOpenAiTranslator } from "../../../services/llm/openai/openai_events.ts";
import { readReply } from "../../../services/llm/streaming/reply_reader.ts";
import { ModelCall } from "../../../services/llm/model_call.ts";
import { target as upstream } from "../../services/llm/model_calls.ts";
import { jsonText, MAX_INPUT_CHARS, mutateBytes, mutateJson } from "../mutations.ts";
import { Random } from "../random.ts";
import { claim, claimSame, target, unlessRefusedLater } from "../target.ts";

/** A stream, and a seed for where to cut it. */
interface Stream {
  bytes: Uint8Array<ArrayBuffer>;
  cuts: string;
  type: string;
}

const OPENAI = [
  { choices: [{ index: 0, delta: { role: "assistant", content: "Grüße 🦊" } }] },
  { choices: [{ index: 0, delta: { reasoning_content: "Hm." } }] },
  { choices: [{ index: 0, delta: { content: [{ type: "text", text: "part" }] } }] },
  { choices: [{ index: 0, delta: { reasoning_details: [{ text: "a" }, { summary: "b" }] } }] },
  { choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id: "t", function: { name: "", arguments: "{" } }] } }] },
  { choices: [{ index: 1, text: "second" }, { index: 0, text: "first" }] },
  { choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage: { prompt_tokens: 1, completion_tokens: 2 } },
  { choices: [], usage: null, timings: { prompt_n: 1, predicted_n: 2 } },
  { error: { message: "out of memory", code: 500 } },
  { object: "error", message: "flat" },
];
const ANTHROPIC = [
  { type: "message_start", message: { usage: { input_tokens: 3 } } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_start", index: 1, content_block: { type: "tool_use", id: "t", name: "f", input: {} } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Grüße 🦊" } },
  { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Hm." } },
  { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: "{" } },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
  { type: "message_stop" },
  { type: "error", error: { type: "overloaded_error", message: "busy" } },
  {
    type: "message",
    content: [{ type: "text", text: "whole" }, { type: "tool_use", input: {} }],
    stop_reason: "end_turn",
  },
];

function someLine(random: Random): string {
  const way = random.next();
  if (way < 0.7) return `data: ${jsonText(random, mutateJson(random, random.pick([...OPENAI, ...ANTHROPIC])))}`;
  return random.pick([
    ...["data: [DONE]", "data:", "data", ": ping", ":", "event: error", "event: content_block_delta", "id: g.1.2.3"],
    ...["error: boom", 'error:{"message":"boom"}', "err", "retry: 5", "\ufeffdata: null", "data: null", "data: 5"],
    ...['data: "text"', "data: []", "<html>", '{"choices":[]}', "x".repeat(random.size(MAX_INPUT_CHARS)), "id: \0"],
  ]);
}

/** The stream in chunks as a network might cut it, through the middle of letters, too. */
function chunks({ bytes, cuts }: Stream): Uint8Array<ArrayBuffer>[] {
  const random = new Random(cuts);
  const longest = random.pick([1, 3, 100, 5_000]);
  const found: Uint8Array<ArrayBuffer>[] = [];
  // At most so many: a stream of single bytes would only test how fast streams are.
  for (let at = 0; at < bytes.length;) {
    const size = found.length < 500 ? 1 + random.below(longest) : bytes.length - at;
    found.push(bytes.slice(at, at + size));
    at += size;
  }
  return found;
}

function response(pieces: Uint8Array<ArrayBuffer>[], type: string): Response {
  let at = 0;
  const pull = (controller: ReadableByteStreamController) => {
    if (pieces[at]?.length) controller.enqueue(pieces[at++]!.slice());
    else {
      controller.close();
      controller.byobRequest?.respond(0);
    }
  };
  return new Response(new ReadableStream({ type: "bytes", pull }), { headers: { "content-type": type } });
}

/** What a reply comes to: texts joined, and the error at its end. */
async function upstreamMeaning(pieces: Uint8Array<ArrayBuffer>[], type: string, kind: "openai" | "anthropic") {
  const call = new ModelCall(upstream("http://127.0.0.1:9"), new AbortController().signal);
  const translator = kind === "openai" ? createOpenAiTranslator(call) : createAnthropicTranslator(call);
  const events: ChatEvent[] = [];
  let failure = "none";
  await unlessRefusedLater(async () => {
    try {
      for await (const batch of readReply({ response: response(pieces, type) }, call, translator).batches()) {
        events.push(...batch);
      }
    } catch (error) {
      failure = error instanceof Error ? error.message : String(error);
      throw error;
    } finally {
      call.timer.end();
    }
  });
  for (const event of events) assertTyped(event);
  return { events, failure };
}

function assertTyped(event: ChatEvent): void {
  const { type } = event;
  if (type === "text" || type === "reasoning") claim(typeof event.text === "string", () => `${type} is no text`);
  if (type === "finish") claim(typeof event.reason === "string", () => "A finish reason is no text");
  if (type === "tool_calls") claim(Array.isArray(event.delta), () => "Tool calls are no list");
  if (type === "usage") claim(typeof event.usage === "object" && event.usage !== null, () => "Usage is no object");
}

async function pageMeaning(pieces: Uint8Array<ArrayBuffer>[]) {
  const frames = [];
  let text = "";
  for await (const batch of readEvents(response(pieces, "text/event-stream"))) {
    for (const event of batch) {
      const frame = parseReplyFrame(event);
      if (frame === undefined) continue;
      frames.push(frame.kind === "error" ? frame.error.message : frame);
      if (frame.kind !== "delta") continue;
      for (const part of [frame.text, frame.reasoning]) claim(typeof part === "string", () => "A delta is no text");
      text = placeDelta(text, frame.text, frame.position?.textLength) ?? text;
    }
  }
  return { frames, text };
}

const encode = (text: string) => new TextEncoder().encode(text);
const stream = (text: string, type = "text/event-stream"): Stream => ({ bytes: encode(text), cuts: "case", type });

export const SSE = target<Stream>({
  name: "sse",
  generate(random) {
    const end = () => random.pick(["\n\n", "\r\n\r\n", "\r\r", "\n", "\r\n", ""]);
    const text = random.list(random.size(20), () => someLine(random) + end()).join("").slice(0, MAX_INPUT_CHARS);
    const whole = random.chance(0.1);
    const value = () => jsonText(random, mutateJson(random, random.pick([...OPENAI, ...ANTHROPIC])));
    const sent = whole ? value().slice(0, MAX_INPUT_CHARS) : text;
    const bytes = random.chance(0.3) ? mutateBytes(random, encode(sent)) : encode(sent);
    return { bytes, cuts: `${random.next()}`, type: random.pick(["text/event-stream", "application/json", ""]) };
  },
  async run(input) {
    const [one, many] = [[input.bytes], chunks(input)];
    for (const kind of ["openai", "anthropic"] as const) {
      const whole = await upstreamMeaning(one, input.type, kind);
      claimSame(await upstreamMeaning(many, input.type, kind), whole, `Cuts change what a stream of ${kind} says`);
    }
    claimSame(await pageMeaning(many), await pageMeaning(one), "Cuts change what the page reads");
  },
  cases: {
    "null as an event": () => stream("data: null\n\n"),
    "a whole answer with null in its content": () => stream('{"content":[null]}', "application/json"),
    "a stop reason named like a member of every object": () =>
      stream('data: {"type":"message_delta","delta":{"stop_reason":"constructor"}}\n\n'),
    "text that is a number": () =>
      stream('data: {"type":"content_block_delta","delta":{"type":"text_delta","text":5}}\n\n'),
    "byte order marks inside a text, also at the begin of a read": () => ({
      ...stream('{"choices":[{"message":{"content":"\ufeff\ufeff\ufeff"}}]}', "application/json"),
      cuts: "case",
    }),
    "8 MB without the end of a line": () => stream(`data: ${"x".repeat(9_000_000)}`),
    "100,000 levels of JSON": () => stream(`data: ${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}\n\n`),
    "500,000 empty lines": () => stream("\n".repeat(500_000)),
    "an error line that never ends": () => stream(`error: ${"x".repeat(500_000)}`),
  },
});
