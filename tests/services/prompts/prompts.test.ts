import { expect, test } from "vitest";
import type { ChatMessage } from "../../../services/llm/chat_event.ts";
import type { Provider } from "../../../services/llm/provider.ts";
import { ContextSizes } from "../../../services/llm/context_sizes.ts";
import { TokenCounter, type TokenRatios } from "../../../services/prompts/token_counter.ts";
import type {
  PromptBlock,
  PromptBlocks,
  PromptLimits,
  PromptMessage,
  PromptSource,
} from "../../../services/prompts/prompt.ts";
import { Prompts } from "../../../services/prompts/prompts.ts";
import { MESSAGE_TOKENS } from "../../../services/llm/token_count.ts";
import { never, target } from "../llm/model_calls.ts";

/** The server's tokenizer counts one token per character, four times the estimate. */
function openPrompts() {
  const given: string[] = [];
  const provider: Pick<Provider, "countTokens"> = {
    countTokens(_target, _model, texts) {
      given.push(...texts);
      return Promise.resolve(texts.map((text) => text.length));
    },
  };
  const ratios = { get: () => 4 } as Pick<TokenRatios, "get"> as TokenRatios;
  const sizes = new ContextSizes({ readContextSize: () => Promise.resolve(undefined) });
  return { prompts: new Prompts(new TokenCounter(provider, ratios), sizes), given };
}

/** Space for the messages: the context without the reply and the margin. */
const limits = (room: number): PromptLimits => ({
  target: { ...target("http://127.0.0.1:9"), contextSize: room + 16 + 100 },
  model: "m",
  replyTokens: 100,
});
/** Texts of 96 characters: 100 tokens each with the template. */
const turn = (n: number): PromptMessage => ({
  id: `m${n}`,
  message: { role: n % 2 === 0 ? "user" : "assistant", content: `${n} `.padEnd(100 - MESSAGE_TOKENS, "x") },
});

/** Pieces around the history. */
interface Pieces {
  systemPrompt?: string;
  examples?: string;
  summary?: string;
  note?: { text: string; depth: number; role?: string };
}

function blocksOf({ systemPrompt, examples, summary, note }: Pieces): PromptBlocks {
  const system = (part: PromptBlock["part"], text: string | undefined): PromptBlock[] =>
    text === undefined ? [] : [{ part, role: "system", text }];
  return {
    leading: [
      ...system("main", systemPrompt),
      ...system("examples", examples),
      ...system("summary", summary).map((block) => ({ ...block, replacesHistory: true })),
    ],
    inserted: note === undefined ? [] : [{ part: "note", role: "system", order: 0, ...note }],
    trailing: [],
  };
}

/** A conversation with a number of messages, newest first, and how many of them were read. */
function chat(count: number, pieces: Pieces = {}) {
  const read = { count: 0 };
  function* history() {
    for (let n = count - 1; n >= 0; n--) {
      read.count++;
      yield turn(n);
    }
  }
  const compose = () => Promise.resolve({ blocks: blocksOf(pieces) });
  return { source: { conversationId: "c1", history: history(), compose } as PromptSource, read };
}

const numbers = (messages: ChatMessage[]) => messages.map(({ content }) => Number.parseInt(content as string));

test("sends everything that fits in order, the system prompt first and the note at its depth", async () => {
  const { prompts, given } = openPrompts();
  const { source } = chat(4, { systemPrompt: "Be kind", note: { text: "Rain falls", depth: 1 } });
  const prompt = await prompts.assemble(source, limits(4000), never());
  expect(prompt.messages).toEqual([
    { role: "system", content: "Be kind" },
    turn(0).message,
    turn(1).message,
    turn(2).message,
    { role: "system", content: "Rain falls" },
    turn(3).message,
  ]);
  expect(prompt.parts.map(({ part, messageId }) => messageId ?? part)).toEqual([
    ...["system_prompt", "m0", "m1", "m2", "note", "m3"],
  ]);
  expect(prompt).toMatchObject({ isTrimmed: false, isExact: false, budget: 4000, replyTokens: 100 });
  expect(given, "an estimate shows that there is room enough").toEqual([]);
});

test.each([[0, 4], [1, 3], [4, 0], [99, 0]])("places a note of depth %d at index %d of four", async (depth, place) => {
  const { prompts } = openPrompts();
  const { source } = chat(4, { note: { text: "Rain falls", depth, role: "user" } });
  const { messages } = await prompts.assemble(source, limits(4000), never());
  expect(messages.findIndex(({ content }) => content === "Rain falls")).toBe(place);
  expect(messages).toHaveLength(5);
});

test("drops the oldest messages that don't fit, by the server's count, and starts with a user message", async () => {
  const { prompts, given } = openPrompts();
  const { source, read } = chat(1_000, { systemPrompt: "x".repeat(96) });
  const prompt = await prompts.assemble(source, limits(1100), never());
  expect(prompt).toMatchObject({ isTrimmed: true, isExact: true });
  expect(prompt.messages[0]).toMatchObject({ role: "system" });
  const kept = numbers(prompt.messages.slice(1));
  expect(kept[0]! % 2).toBe(0);
  expect(kept.at(-1)).toBe(999);
  expect(prompt.tokens).toBeLessThanOrEqual(1100);
  expect(prompt.tokens).toBe(100 + kept.length * 100);
  expect(given.length).toBeLessThan(30);
  expect(read.count, "a long history is not read to its begin").toBeLessThan(30);
});

test("never separates the calls of tools from their results when it drops messages", async () => {
  const { prompts } = openPrompts();
  const fill = (text: string) => text.padEnd(100 - MESSAGE_TOKENS, "x");
  // A question, two calls in one message, their results and the answer.
  const round = (n: number): PromptMessage[] => {
    const calls = [`${n}a`, `${n}b`].map((id) => ({ id, type: "function", function: { name: "f", arguments: "{}" } }));
    return [
      { id: `q${n}`, message: { role: "user", content: fill(`q${n}`) } },
      { id: `c${n}`, message: { role: "assistant", content: null, tool_calls: calls } },
      ...calls.map(({ id }) => ({ id, message: { role: "tool", tool_call_id: id, content: fill(id) } })),
      { id: `r${n}`, message: { role: "assistant", content: fill(`r${n}`) } },
    ];
  };
  const all = Array.from({ length: 8 }, (_, n) => round(n)).flat();
  for (let end = all.length - 10; end <= all.length; end++) {
    for (let room = 450; room < 1500; room += 50) {
      const history = all.slice(0, end).toReversed();
      const { messages } = await prompts.assemble({ conversationId: `${end} ${room}`, history }, limits(room), never());
      const called = messages.flatMap(({ tool_calls: calls }) => (calls as { id: string }[] | undefined) ?? []);
      const answered = messages.flatMap(({ tool_call_id: id }) => id === undefined ? [] : [id]);
      expect(answered, `${end} messages in ${room} tokens`).toEqual(
        called.map(({ id }) => id).slice(0, answered.length),
      );
    }
  }
});

test("keeps the start of the prompt unchanged until it has to move", async () => {
  const { prompts } = openPrompts();
  const begins: number[] = [];
  for (let count = 10; count < 60; count++) {
    const { messages, tokens } = await prompts.assemble(chat(count).source, limits(2000), never());
    expect(tokens).toBeLessThanOrEqual(2000);
    expect(numbers(messages).at(-1)).toBe(count - 1);
    begins.push(numbers(messages)[0]!);
  }
  const moves = begins.filter((begin, n) => n > 0 && begin !== begins[n - 1]).length;
  expect(moves).toBeGreaterThan(3);
  expect(moves, "every move costs the server its cache").toBeLessThan(12);
});

test("a preview moves nothing and shows the next prompt; a larger context shows more again", async () => {
  const { prompts } = openPrompts();
  const look = async (count: number, room: number) =>
    numbers((await prompts.assemble(chat(count).source, { ...limits(room), isExact: true }, never(), false)).messages);
  const send = async (count: number, room: number) =>
    numbers((await prompts.assemble(chat(count).source, limits(room), never())).messages);
  for (const count of [30, 31, 40, 55]) {
    const seen = await look(count, 2000);
    await look(count + 20, 2000);
    expect(await send(count, 2000)).toEqual(seen);
  }
  expect((await send(56, 5_000)).length).toBeGreaterThan(30);
  expect(await send(56, 60_000)).toHaveLength(56);
});

test("sends the newest message even if it's too long by itself", async () => {
  const { prompts } = openPrompts();
  const { messages, tokens } = await prompts.assemble(chat(5).source, limits(20), never());
  expect(numbers(messages)).toEqual([4]);
  expect(tokens).toBe(100);
  const nothing = { conversationId: "c2", history: [] };
  expect((await prompts.assemble(nothing, limits(20), never())).messages).toEqual([]);
});

test("drops all examples first, and sends a summary only in place of dropped messages", async () => {
  const { prompts } = openPrompts();
  const pieces = { systemPrompt: "x".repeat(96), examples: "e".repeat(296), summary: "s".repeat(96) };
  const sent = async (count: number) => {
    const { parts, leftOut, isTrimmed, tokens } = await prompts.assemble(
      chat(count, pieces).source,
      limits(2000),
      never(),
    );
    expect(tokens).toBeLessThanOrEqual(2000);
    const begin = parts[0]!.pieces!.map(({ part }) => part);
    return { begin, leftOut: leftOut.map(({ part }) => part), turns: parts.length - 1, isTrimmed };
  };
  const whole = { begin: ["main", "examples"], leftOut: ["summary"], isTrimmed: false };
  expect(await sent(16)).toEqual({ ...whole, turns: 16 });
  const tight = { begin: ["main"], leftOut: ["examples", "summary"], isTrimmed: false };
  expect(await sent(17)).toEqual({ ...tight, turns: 17 });
  expect(await sent(19)).toEqual({ ...tight, turns: 19 });
  const trimmed = { begin: ["main", "summary"], leftOut: ["examples"], isTrimmed: true };
  expect(await sent(20)).toEqual({ ...trimmed, turns: 12 });
  expect(await sent(21)).toEqual({ ...trimmed, turns: 13 });
});

test("puts a continued reply last, after notes at any depth", async () => {
  const { prompts } = openPrompts();
  const { source } = chat(4, { note: { text: "Rain falls", depth: 0 } });
  const { messages } = await prompts.assemble({ ...source, continuesLast: true }, limits(4000), never());
  expect(messages.map(({ content }) => String(content).slice(0, 2).trim())).toEqual(["0", "1", "2", "Ra", "3"]);
});

test("reserves at most half of the context for the reply, and assumes 8192 tokens by default", async () => {
  const { prompts } = openPrompts();
  const greedy = { ...limits(900), replyTokens: 100_000 };
  expect(await prompts.assemble(chat(1).source, greedy, never())).toMatchObject({ replyTokens: 508 });
  const unknown: PromptLimits = { target: target("http://127.0.0.1:9"), model: "m" };
  expect(await prompts.assemble(chat(1).source, unknown, never())).toMatchObject({
    contextSize: { tokens: 8192, isAssumed: true },
    replyTokens: 2048,
    budget: 8192 - 2048 - 16,
  });
});
