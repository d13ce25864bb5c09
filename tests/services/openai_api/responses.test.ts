/** Requests of the Responses API as chat messages, and what is kept of responses. */
import { expect, test } from "vitest";
import { createSealer } from "../../../services/crypto/sealer.ts";
import type { ChatEvent } from "../../../services/llm/chat_event.ts";
import { ResponseStore } from "../../../services/openai_api/response_store.ts";
import { type ResponseRequest, Responses } from "../../../services/openai_api/responses.ts";
import type { ResponseItem } from "../../../services/openai_api/response_input.ts";
import { openDatabase } from "../../../services/storage/database/database.ts";

const NO_CHATS = { readMessages: () => Promise.resolve(undefined) };

const HOUR_MS = 60 * 60 * 1000;
const details = [{
  type: "reasoning.text",
  text: "I think",
  signature: "sig",
  format: "anthropic-claude-v1",
  index: 0,
}];
const extra = { google: { thought_signature: "abc" } };
const thinksAndCalls: ChatEvent[][] = [
  [{ type: "reasoning", text: "I think" }, { type: "reasoning_details", details }],
  [{
    type: "tool_calls",
    delta: [{ index: 0, id: "call_1", function: { name: "look", arguments: "{}" }, extra_content: extra }],
  }],
  [{ type: "finish", reason: "tool_calls" }],
];
const result = { type: "function_call_output", call_id: "call_1", output: "8" };
const tools = [{ type: "function", name: "look" }];

async function openResponses(options: { maxCallerBytes?: number; maxContextBytes?: number } = {}) {
  const folder = await Deno.makeTempDir({ prefix: "parlor-responses-" });
  const db = await openDatabase({ path: `${folder}/app.db` });
  const clock = { nowMs: 1_800_000_000_000 };
  const sealer = createSealer(new Uint8Array(32).fill(7)).forPurpose("responses");
  const store = new ResponseStore({ db, sealer, now: () => clock.nowMs, maxCallerBytes: options.maxCallerBytes });
  const open = () => new Responses({ ...NO_CHATS, store, sealer, maxContextBytes: options.maxContextBytes ?? 1e6 });
  let responses = open();
  return {
    db,
    clock,
    get responses() {
      return responses;
    },
    /** Forgets which responses are being written, like a restart. */
    restart: () => void (responses = open()),
    /** Runs a request and returns the response. */
    async reply(request: Partial<ResponseRequest>, batches: ChatEvent[][], tokenId?: string) {
      const opened = responses.open({ model: "default", input: "Hi", tools, ...request }, { tokenId });
      const events = responses.run(opened, {
        batches: ReadableStream.from(batches),
        estimateUsage: () => ({ prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, estimated: true }),
        describeError: (error) => ({ code: "failed", message: String(error) }),
        isCancelled: () => false,
      });
      for await (const _ of events);
      return opened.writer.response;
    },
    /** Returns the messages of a request. */
    read: (request: Partial<ResponseRequest>, tokenId?: string) =>
      responses.open({ model: "default", tools, ...request }, { tokenId }).messages,
    async [Symbol.asyncDispose]() {
      await db.close();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

test("reasoning that a server needs back travels encrypted, by its ID, by reference and with the previous response", async () => {
  await using at = await openResponses();
  const expected = {
    role: "assistant",
    content: null,
    reasoning_content: "I think",
    reasoning_details: details,
    tool_calls: [{ id: "call_1", type: "function", function: { name: "look", arguments: "{}" }, extra_content: extra }],
  };
  const question = { role: "user", content: "Hi" };
  const read = (items: unknown[], more: Partial<ResponseRequest> = {}) =>
    at.read({ input: [...items, result] as ResponseItem[], ...more })[1];
  // Clients know neither fields that OpenAI doesn't send, nor always the IDs.
  const strip = (output: ResponseItem[]) => output.map(({ extra_content: _, ...item }) => item);

  const unstored = await at.reply({ store: false, include: ["reasoning.encrypted_content"] }, thinksAndCalls);
  expect(JSON.stringify(unstored.output)).not.toContain('"sig"');
  expect(at.db.all("SELECT id FROM stored_response")).toEqual([]);
  const withoutIds = strip(unstored.output).map(({ id: _, ...item }) => item);
  expect(read([question, ...withoutIds], { store: false })).toEqual(expected);

  const stored = await at.reply({}, thinksAndCalls);
  expect(stored.output.every((item) => !("encrypted_content" in item))).toBe(true);
  expect(read([question, ...strip(stored.output)])).toEqual(expected);
  expect(read([question, ...stored.output.map(({ id }) => ({ type: "item_reference", id }))])).toEqual(expected);
  expect(read([], { previous_response_id: stored.id })).toEqual(expected);

  const foreign = [{ type: "reasoning", summary: [{ type: "summary_text", text: "hm" }], encrypted_content: "gAAAAA" }];
  expect(read([question, ...foreign, ...withoutIds.filter(({ type }) => type === "function_call")])).toEqual({
    ...expected,
    reasoning_content: "hm",
    reasoning_details: undefined,
    tool_calls: [{ id: "call_1", type: "function", function: { name: "look", arguments: "{}" } }],
  });
});

test("a response and its items are kept for 24 hours, those of its context as long as itself", async () => {
  await using at = await openResponses();
  const says = (text: string): ChatEvent[][] => [[{ type: "text", text }], [{ type: "finish", reason: "stop" }]];
  const first = await at.reply({ input: "One" }, says("Two"));
  at.clock.nowMs += 20 * HOUR_MS;
  const second = await at.reply({ input: "Three", previous_response_id: first.id }, says("Four"));
  at.clock.nowMs += 5 * HOUR_MS;
  expect(() => at.responses.get(first.id, {})).toThrow(/not found/);
  expect(() => at.read({ input: "Five", previous_response_id: first.id })).toThrow(/24 hours/);
  const contents = at.read({ input: "Five", previous_response_id: second.id }).map(({ content }) => content);
  expect(contents).toEqual(["One", "Two", "Three", "Four", "Five"]);
  at.clock.nowMs += 20 * HOUR_MS;
  const reference = { type: "item_reference", id: second.output[0]!.id! };
  expect(() => at.read({ input: [reference] })).toThrow(/24 hours/);
  await at.responses.sweep();
  expect(at.db.all("SELECT id FROM stored_response")).toEqual([]);
});

test("items resolve as soon as they were sent, and nothing is readable in the database", async () => {
  await using at = await openResponses();
  const opened = at.responses.open({ model: "default", input: "A secret question", tools }, {});
  const events = at.responses.run(opened, {
    batches: ReadableStream.from(thinksAndCalls),
    estimateUsage: () => ({ prompt_tokens: 1, completion_tokens: 1 }),
    describeError: () => ({ code: "failed", message: "" }),
    isCancelled: () => false,
  });
  let seen = 0;
  for await (const batch of events) {
    for (const { type, item } of batch) {
      if (type !== "response.output_item.done") continue;
      seen++;
      const input = [{ type: "item_reference", id: (item as ResponseItem).id }, result];
      expect(at.read({ input })).toBeDefined();
      expect(at.read({ input: [result], previous_response_id: opened.writer.response.id }).length).toBeGreaterThan(1);
    }
  }
  expect(seen).toBe(3);
  const rows = at.db.all<{ id: string; sealed: Uint8Array }>("SELECT id, sealed FROM stored_response");
  const bytes = rows.map(({ id, sealed }) => id + new TextDecoder("latin1").decode(sealed)).join("");
  for (const text of ["secret", "I think", "look"]) expect(bytes).not.toContain(text);
});

test("a limited token reads only its own responses; others read all", async () => {
  await using at = await openResponses();
  const says: ChatEvent[][] = [[{ type: "text", text: "Mine" }], [{ type: "finish", reason: "stop" }]];
  const mine = await at.reply({}, says, "t1");
  const owners = await at.reply({}, says);
  for (const { id, output } of [mine, owners]) {
    expect(() => at.responses.get(id, { tokenId: "t2" })).toThrow(/not found/);
    expect(() => at.read({ input: "x", previous_response_id: id }, "t2")).toThrow(/not found/);
    expect(() => at.read({ input: [{ type: "item_reference", id: output[0]!.id }] }, "t2")).toThrow(/not found/);
    await expect(at.responses.delete(id, { tokenId: "t2" })).rejects.toThrow(/not found/);
    expect(at.responses.get(id, {}).id).toBe(id);
  }
  // The same input of another caller is stored apart.
  const other = await at.reply({}, says, "t2");
  expect(at.read({ input: "x", previous_response_id: other.id }, "t2")).toHaveLength(3);
  await at.responses.delete(mine.id, { tokenId: "t1" });
  expect(() => at.responses.get(mine.id, {})).toThrow(/not found/);
});

test("repeated items are stored once; beyond the limit of a caller its oldest responses go", async () => {
  await using at = await openResponses({ maxCallerBytes: 9_000, maxContextBytes: 4_000 });
  const says: ChatEvent[][] = [[{ type: "text", text: "Yes" }], [{ type: "finish", reason: "stop" }]];
  const long = { role: "user", content: "x".repeat(3_000) };
  const first = await at.reply({ input: [long] }, says, "t1");
  const count = () => at.db.all("SELECT id FROM stored_response WHERE id LIKE 'in_%'").length;
  await at.reply({ input: [long, ...first.output, { role: "user", content: "And?" }] }, says, "t2");
  const before = count();
  await at.reply({ input: [long, ...first.output, { role: "user", content: "And?" }] }, says, "t2");
  expect(count()).toBe(before);
  at.clock.nowMs += HOUR_MS;
  await at.reply({ input: [{ role: "user", content: "y".repeat(7_000) }] }, says, "t1");
  expect(() => at.responses.get(first.id, { tokenId: "t1" })).toThrow(/not found/);
  const large = await at.reply({ input: [{ role: "user", content: "z".repeat(4_100) }] }, says);
  expect(() => at.read({ input: "x", previous_response_id: large.id })).toThrow(/larger than 4000 bytes/);
});

test("a response that a restart interrupted has failed, one whose client left is cancelled", async () => {
  await using at = await openResponses();
  const open = () => {
    const opened = at.responses.open({ model: "default", input: "Hi", tools }, {});
    const events = at.responses.run(opened, {
      batches: ReadableStream.from(thinksAndCalls),
      estimateUsage: () => ({}),
      describeError: () => ({ code: "failed", message: "" }),
      isCancelled: () => false,
    });
    return { id: opened.writer.response.id, events };
  };
  const killed = open();
  for (let n = 0; n < 3; n++) await killed.events.next();
  expect(at.responses.get(killed.id, {}).status).toBe("in_progress");
  at.restart();
  expect(at.responses.get(killed.id, {})).toMatchObject({ status: "failed", error: { code: "interrupted" } });
  const left = open();
  for (let n = 0; n < 3; n++) await left.events.next();
  await left.events.return(undefined);
  expect(at.responses.get(left.id, {}).status).toBe("cancelled");
});
