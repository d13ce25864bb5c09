import { expect, test } from "vitest";
import { createAnthropicTranslator } from "../../../../services/llm/anthropic/anthropic_provider.ts";
import type { ChatEvent } from "../../../../services/llm/chat_event.ts";
import { ModelCall } from "../../../../services/llm/model_call.ts";
import { never, target } from "../model_calls.ts";

/** Translates frames of a stream, or a complete response. */
function translated(frames: unknown[], whole?: unknown): ChatEvent[] {
  const call = new ModelCall(target("http://127.0.0.1:9"), never());
  const translator = createAnthropicTranslator(call);
  const out: ChatEvent[] = [];
  for (const frame of frames) translator.translateEvent(undefined, JSON.stringify(frame), out);
  if (whole !== undefined) translator.translateResponse(whole, out);
  call.timer.end();
  return out;
}

const delta = (delta: unknown) => ({ type: "content_block_delta", index: 0, delta });

test("text that isn't a string is omitted", () => {
  const texts = [5, {}, true, null].flatMap((text) => [
    delta({ type: "text_delta", text }),
    delta({ type: "thinking_delta", thinking: text }),
    { type: "content_block_start", index: 0, content_block: { type: "text", text } },
  ]);
  expect(translated([...texts, delta({ type: "text_delta", text: "Hi" })])).toEqual([{ type: "text", text: "Hi" }]);
});

test("a stop reason with the name of an object member is plain text", () => {
  const frames = ["constructor", "__proto__"].map((stop_reason) => ({ type: "message_delta", delta: { stop_reason } }));
  expect(translated(frames)).toEqual([
    { type: "finish", reason: "constructor" },
    { type: "finish", reason: "__proto__" },
  ]);
  expect(translated([{ type: "message_delta", delta: { stop_reason: 5 } }])).toEqual([]);
});

test("blocks of a whole response that aren't objects are omitted, and counts that aren't numbers are 0", () => {
  const answer = { content: [null, 5, { type: "text", text: "Hi" }], usage: { input_tokens: "7", output_tokens: 2 } };
  expect(translated([], answer)).toEqual([
    { type: "text", text: "Hi" },
    { type: "finish", reason: "stop" },
    { type: "usage", usage: { prompt_tokens: 0, completion_tokens: 2, total_tokens: 2 } },
  ]);
});
