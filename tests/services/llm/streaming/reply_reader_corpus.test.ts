import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { UpstreamError } from "../../../../services/http/upstream_error.ts";
import { createAnthropicTranslator } from "../../../../services/llm/anthropic/anthropic_provider.ts";
import { ModelCall } from "../../../../services/llm/model_call.ts";
import { createOllamaTranslator } from "../../../../services/llm/ollama/ollama_provider.ts";
import { createOpenAiTranslator } from "../../../../services/llm/openai/openai_events.ts";
import { splitStream } from "../../../../services/llm/reasoning.ts";
import { type Source, SourceList } from "../../../../services/llm/sources.ts";
import { readReply } from "../../../../services/llm/streaming/reply_reader.ts";
import { acceptResponse } from "../../../../services/llm/streaming/response_body.ts";
import { ToolCalls } from "../../../../services/llm/streaming/tool_calls.ts";
import { gather, never, target } from "../model_calls.ts";

// tests/corpus/streams: HTTP responses as they arrive, each with the reply that it must become.

const FOLDER = "tests/corpus/streams";
const TRANSLATORS = {
  openai: createOpenAiTranslator,
  anthropic: createAnthropicTranslator,
  ollama: createOllamaTranslator,
};

/** What a stream must become. */
interface ExpectedReply {
  kind: keyof typeof TRANSLATORS;
  text?: string;
  reasoning?: string;
  tool_calls?: { id?: string; name: string; arguments: string }[];
  images?: string[];
  sources?: Source[];
  finish?: string;
  /** Kind of the error, and a part of its message. */
  error?: [kind: string, message: string];
}

const names = readdirSync(FOLDER, { recursive: true, encoding: "utf-8" })
  .filter((name) => name.endsWith(".http"))
  .map((name) => name.slice(0, -".http".length))
  .sort();

/** Splits a response into its headers and its body. */
function parseResponse(bytes: Uint8Array): { headers: Headers; body: Uint8Array } {
  const text = new TextDecoder("latin1").decode(bytes);
  const end = text.indexOf("\r\n\r\n");
  const lines = text.slice(0, end).split("\r\n").slice(1);
  const headers = new Headers(lines.map((line) => line.split(": ", 2) as [string, string]));
  return { headers, body: bytes.subarray(end + 4) };
}

/** Streams a body in pieces. */
function stream(body: Uint8Array, size: number): ReadableStream<Uint8Array<ArrayBuffer>> {
  let at = 0;
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      if (at >= body.length) {
        controller.close();
        controller.byobRequest?.respond(0);
        return;
      }
      controller.enqueue(body.slice(at, at += size));
    },
  });
}

async function read(name: string, kind: ExpectedReply["kind"], size: number): Promise<Omit<ExpectedReply, "kind">> {
  const { headers, body } = parseResponse(new Uint8Array(readFileSync(`${FOLDER}/${name}.http`)));
  const call = new ModelCall(target("http://127.0.0.1:1"), never());
  const response = call.decode(new Response(stream(body, size), { headers }));
  const calls = new ToolCalls();
  try {
    const translate = TRANSLATORS[kind];
    const accepted = await acceptResponse(call, response, true, translate(call));
    const reply = readReply(accepted, call, translate(call));
    const { text, reasoning, events, error } = await gather(kind === "anthropic" ? reply : splitStream(reply));
    for (const event of events) if (event.type === "tool_calls") calls.add(event.delta);
    const images = events.flatMap((event) => event.type === "images" ? event.urls : []);
    const sources = new SourceList();
    for (const event of events) if (event.type === "sources") sources.add(event.sources);
    const finish = events.find((event) => event.type === "finish")?.reason;
    const toolCalls = calls.all().map(({ id, function: named }) => ({ ...(id !== undefined && { id }), ...named }));
    return {
      ...(text !== "" && { text }),
      ...(reasoning !== "" && { reasoning }),
      ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
      ...(images.length > 0 && { images }),
      ...(sources.all().length > 0 && { sources: sources.all() }),
      ...(finish !== undefined && { finish }),
      ...toError(error),
    };
  } catch (error) {
    return toError(error);
  } finally {
    call.timer.end();
  }
}

function toError(error: unknown): Pick<ExpectedReply, "error"> {
  if (error === undefined) return {};
  if (!(error instanceof UpstreamError)) throw error;
  return { error: [error.kind, error.message] };
}

describe.each([Infinity, 1_000, 7, 1])("in pieces of %s bytes", (size) => {
  test.each(names)("%s becomes its reply", async (name) => {
    const { kind, ...expected }: ExpectedReply = JSON.parse(readFileSync(`${FOLDER}/${name}.json`, "utf-8"));
    const reply = await read(name, kind, size);
    const message = expected.error?.[1];
    expect(reply).toEqual({
      ...expected,
      ...(message !== undefined && { error: [expected.error![0], expect.stringContaining(message)] }),
    });
  });
});

test("has at least 150 streams", () => {
  expect(names.length).toBeGreaterThanOrEqual(150);
});
