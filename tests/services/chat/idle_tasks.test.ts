import { expect, test } from "vitest";
import { createTitleCall, parseTitle } from "../../../services/chat/idle_tasks.ts";
import type { OpenAiCompletion } from "../../../services/llm/chat_event.ts";

function answered(content: string | null): OpenAiCompletion {
  const message = { role: "assistant", content };
  return {
    id: "x",
    object: "chat.completion",
    created: 0,
    model: "m",
    choices: [{ index: 0, message, finish_reason: "stop" }],
  };
}

test.each([
  ["Harbour at dusk", "Harbour at dusk"],
  ['  "Harbour at dusk."\n', "Harbour at dusk"],
  ["**Title:** Harbour at dusk", "Harbour at dusk"],
  ["# „Der Hafen am Abend“", "Der Hafen am Abend"],
  ["Here is a title:\n\n- Harbour at dusk", "Harbour at dusk"],
  ["<think>The user wants… “Boats”?</think>\n\nHarbour at dusk", "Harbour at dusk"],
  ["The template opened my thoughts.\n</think>Harbour at dusk", "Harbour at dusk"],
  ["タイトル：「夕方の港」", "夕方の港"],
  ["And so on ...", "And so on ..."],
  [`A ${"very ".repeat(40)}long one`, /^A very very.{20,60}…$/],
])("finds in %j the title %s", (content, title) => {
  expect(parseTitle(answered(content))).toEqual(title instanceof RegExp ? expect.stringMatching(title) : title);
});

test.each([[null], [""], ["  \n "], ["<think>I ran out of room"], ["Here is a title:"], ['""']])(
  "finds no title in %j",
  (content) => {
    expect(parseTitle(answered(content))).toBeUndefined();
  },
);

test("asks for a title after the reply's own prompt, with its template and no sampling parameters", () => {
  const asked = [{ role: "system", content: "s" }, { role: "user", content: "u" }];
  const params = { temperature: 2, tools: [{}], stop: ["."], reasoning_effort: "low" };
  const call = createTitleCall({ model: "m", messages: asked, params }, "answer");
  expect(call.messages.slice(0, 3)).toEqual([...asked, { role: "assistant", content: "answer" }]);
  expect(call.messages).toHaveLength(4);
  expect(call.params).toEqual({ reasoning_effort: "low", max_tokens: expect.any(Number) });
  const continued = createTitleCall(
    { model: "m", messages: [...asked, { role: "assistant", content: "ans" }], params },
    "answer",
  );
  expect(continued).toEqual(call);
});
