import { expect, test } from "vitest";
import type { Message } from "../../../../static/src/api/types.ts";
import {
  findToolMessages,
  readRounds,
  splitAtCalls,
  writeRounds,
} from "../../../../static/src/state/chat/tool_messages.ts";

const message = (id: string, fields: Partial<Message> = {}): Message => ({
  id,
  role: "assistant",
  content: "",
  status: "complete",
  created_at: "2026-05-01T10:00:00.000Z",
  ...fields,
});
const calls = (...ids: string[]) =>
  ids.map((id) => ({ id, type: "function", function: { name: "look", arguments: `{"q":"${id}"}` } }));

test("gives the messages of a reply with tools to its last one", () => {
  const items = [
    message("u", { role: "user" }),
    message("r", { reply_id: "a", tool_calls: calls("x") }),
    message("t", { reply_id: "a", role: "tool", tool_call_id: "x" }),
    message("a"),
  ];
  const { hidden, rounds, results } = findToolMessages(items);
  expect([...hidden]).toEqual(["r", "t"]);
  expect([...rounds]).toEqual([["a", [items[1], items[2]]]]);
  expect(results.size).toBe(0);
  // The last message isn't loaded, or gone: its rounds are shown by themselves.
  expect([...findToolMessages(items.slice(0, 2)).hidden]).toEqual([]);
});

test("gives results of a client to the message with the calls, and shows stray ones by themselves", () => {
  const items = [
    message("c", { tool_calls: calls("x", "y") }),
    message("ty", { role: "tool", tool_call_id: "y" }),
    message("tx", { role: "tool", tool_call_id: "x" }),
    message("stray", { role: "tool", tool_call_id: "z" }),
    message("late", { role: "user" }),
    message("after", { role: "tool", tool_call_id: "x" }),
  ];
  const { hidden, results } = findToolMessages(items);
  expect([...hidden]).toEqual(["ty", "tx"]);
  expect(results.get("c")!.map(({ id }) => id)).toEqual(["ty", "tx"]);
});

test("returns the same value for chats without tools, so that nothing is rendered again", () => {
  expect(findToolMessages([message("a")])).toBe(findToolMessages([message("b"), message("c")]));
});

test("reads calls of any shape with their results", () => {
  const odd = [{ function: { name: null, arguments: { q: 1 } } }, { id: "n" }] as Message["tool_calls"];
  const rounds = readRounds([
    message("r", { content: "Wait.", reasoning: "Hm", tool_calls: [...calls("x"), ...odd!] }),
    message("t", { role: "tool", tool_call_id: "x", content: "found", attachments: ["a.png"] }),
    message("s", { role: "tool", tool_call_id: "lost", content: "stray" }),
  ]);
  expect(rounds).toMatchObject([
    {
      text: "Wait.",
      reasoning: "Hm",
      calls: [
        { id: "x", name: "look", arguments: '{"q":"x"}', result: "found", images: ["/api/attachments/a.png"] },
        { id: "", name: "", arguments: '{"q":1}' },
        { id: "n", name: "", arguments: "{}" },
      ],
    },
    { text: "", calls: [{ id: "lost", name: "", result: "stray" }] },
  ]);
});

test("splits a running reply at its calls, and writes it as the messages that it reads again", () => {
  const call = (id: string, result?: string) => ({ id, name: "look", arguments: "{}", state: "done" as const, result });
  const rounds = splitAtCalls(
    [
      { call: call("x", "one"), textLength: 6, reasoningLength: 2 },
      { call: call("y"), textLength: 6, reasoningLength: 2 },
      { call: call("z", ""), textLength: 11, reasoningLength: 2 },
    ],
    "First.Next. Last",
    "Hm",
  );
  expect(rounds.map(({ text, reasoning, calls }) => [text, reasoning, calls.map(({ id }) => id)])).toEqual([
    ["First.", "Hm", ["x", "y"]],
    ["Next.", "", ["z"]],
  ]);
  const written = writeRounds(message("a"), rounds);
  expect(written.every(({ reply_id }) => reply_id === "a")).toBe(true);
  expect(readRounds(written)).toEqual(rounds.map((round) => ({
    ...round,
    calls: round.calls.map(({ result, ...fields }) => ({
      ...fields,
      ...(result !== undefined && { result, images: [] }),
    })),
  })));
});

test("takes calls without text between them as one round, also at the start", () => {
  const call = { id: "x", name: "look", arguments: "{}" };
  const at = { textLength: 0, reasoningLength: 0 };
  expect(splitAtCalls([{ call, ...at }, { call: { ...call, id: "y" }, ...at }], "text", "")).toMatchObject([
    { text: "", calls: [{ id: "x" }, { id: "y" }] },
  ]);
});
