import { expect, test } from "vitest";
import type { ChatEvent, OpenAiCompletion } from "../../../services/llm/chat_event.ts";
import { ReasoningSplitter, splitCompletion, splitStream } from "../../../services/llm/reasoning.ts";

/** Splits a text that arrives in chunks of a number of characters. */
function split(text: string, chars: number, after: ChatEvent[] = [{ type: "finish", reason: "stop" }]) {
  const splitter = new ReasoningSplitter();
  const events: ChatEvent[] = [];
  for (let start = 0; start < text.length; start += chars) {
    events.push(...splitter.push([{ type: "text", text: text.slice(start, start + chars) }]));
  }
  events.push(...splitter.push(after), ...splitter.end());
  const join = (type: string) =>
    events.map((event) => event.type === type && "text" in event ? event.text : "").join("");
  return { reasoning: join("reasoning"), text: join("text"), events };
}

test.each([
  ["<think>I look.</think>It is up.", "I look.", "It is up."],
  ["\n<think>\nI look.\n\nTwice.\n</think>\n\nIt is up.\n", "I look.\n\nTwice.", "It is up.\n"],
  ["<thought>hm</thought>Yes", "hm", "Yes"],
  ["<THINK>hm</THINK>Yes", "hm", "Yes"],
  ["[THINK]hm[/THINK]Yes", "hm", "Yes"],
  ["<think>\n\n</think>\n\nYes", "", "Yes"],
  ["<think>a < b, </thin and </b></think>Yes", "a < b, </thin and </b>", "Yes"],
  ["<think>cut off while", "cut off while", ""],
  ["<think>cut off</thi", "cut off</thi", ""],
  ["<thin air", "", "<thin air"],
  ["<", "", "<"],
  ["  plain", "", "  plain"],
  ["Say <think>this</think> later", "", "Say <think>this</think> later"],
  ["Only the end</think>Yes", "", "Only the end</think>Yes"],
])("splits %j the same way however it arrives", (input, reasoning, text) => {
  for (const chars of [1, 2, 3, 5, 8, 1000]) {
    expect({ chars, ...split(input, chars) }).toMatchObject({ chars, reasoning, text });
  }
});

test("text that can't be a tag isn't held back", () => {
  const splitter = new ReasoningSplitter();
  expect(splitter.push([{ type: "text", text: "He" }])).toEqual([{ type: "text", text: "He" }]);
  const reasoning = new ReasoningSplitter();
  expect(reasoning.push([{ type: "text", text: "<think>Let me" }])).toEqual([{ type: "reasoning", text: "Let me" }]);
});

test("held back text comes before the finish reason and tool calls", () => {
  for (const event of [{ type: "finish", reason: "length" }, { type: "tool_calls", delta: [{}] }] as ChatEvent[]) {
    const { events } = split("<th", 3, [event]);
    expect(events).toEqual([{ type: "text", text: "<th" }, event]);
  }
});

test("a stream that fails yields held back text first", async () => {
  const failure = new Error("cut");
  async function* batches(): AsyncGenerator<ChatEvent[]> {
    yield [{ type: "text", text: "<think>so far</th" }];
    await Promise.resolve();
    throw failure;
  }
  const events: ChatEvent[] = [];
  const read = async () => {
    for await (const batch of splitStream({ batches, cancel: () => {} }).batches()) events.push(...batch);
  };
  await expect(read()).rejects.toBe(failure);
  expect(events).toEqual([{ type: "reasoning", text: "so far" }, { type: "reasoning", text: "</th" }]);
});

test.each([
  ["<think>hm</think>\n\nYes", "Yes", "hm"],
  ["hm</think>\n\nYes", "Yes", "hm"],
  ["Write `</think>` at the end", "Write `</think>` at the end", undefined],
  ["Plain", "Plain", undefined],
])("a completion with the content %j", (content, text, reasoning) => {
  const completion: OpenAiCompletion = {
    id: "c",
    object: "chat.completion",
    created: 0,
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
  };
  const { message } = splitCompletion(completion).choices[0]!;
  expect(message.content).toBe(text);
  expect(message.reasoning_content).toBe(reasoning);
});
