import { afterEach, beforeEach, expect, test } from "vitest";
import { createSealer } from "../../../services/crypto/sealer.ts";
import { createEventHub } from "../../../services/events/event_hub.ts";
import type { CallSample } from "../../../services/llm/upstream_client.ts";
import { createLog } from "../../../services/log.ts";
import { type Database, openDatabase } from "../../../services/storage/database/database.ts";
import { UsageCounter } from "../../../services/usage/usage.ts";
import { parseUsage } from "../../../services/usage/usage.ts";
import { addSample, MAX_MODELS, type UsageSums } from "../../../services/usage/usage_sums.ts";

let folder: string;
let db: Database;
let lines: string[];
let isBroken: boolean;
let counter: UsageCounter;

beforeEach(async () => {
  folder = await Deno.makeTempDir({ prefix: "parlor-usage-" });
  db = await openDatabase({ path: `${folder}/app.db` });
  lines = [];
  isBroken = false;
  const log = createLog({ level: "debug", asJson: false, write: (line) => void lines.push(line), now: Date.now });
  counter = new UsageCounter({
    db: {
      ...db,
      write: (...args) => isBroken ? Promise.reject(new Error("disk full")) : db.write(...args),
    },
    sealer: createSealer(new Uint8Array(32).fill(7)).forPurpose("usage"),
    events: createEventHub(log),
    log,
    isExpired: () => false,
    now: () => Date.parse("2026-05-01T22:30:00Z"),
    collectMs: 600_000,
  });
});
afterEach(async () => {
  await counter.close();
  await db.close();
  await Deno.remove(folder, { recursive: true });
});

const sample = (fields: Partial<CallSample> = {}): CallSample => ({
  connection: { id: "c", name: "C" },
  model: "m",
  origin: { kind: "reply" },
  usage: { prompt_tokens: 10, completion_tokens: 5 },
  ...fields,
});
const countReplies = async () => {
  const { models } = await counter.report({ days: 1, timeZone: "UTC" });
  return models.reduce((sum, { replies }) => sum + replies, 0);
};

test("keeps what can't be written, and writes it later", async () => {
  isBroken = true;
  counter.record(sample());
  await counter.flush();
  expect(lines.some((line) => line.includes("Can't save the usage of models"))).toBe(true);
  counter.record(sample());
  expect(await countReplies()).toBe(0);
  isBroken = false;
  expect(await countReplies()).toBe(2);
});

test("writes all counts since the last write as one document per hour", async () => {
  for (let n = 0; n < 50; n++) counter.record(sample({ origin: { kind: "reply", conversationId: "none" } }));
  await counter.flush();
  // A chat that doesn't exist gets no counts.
  expect(db.all("SELECT kind, id, version FROM document")).toEqual([{
    kind: "usage",
    id: "2026-05-01T22",
    version: 1,
  }]);
  expect(await countReplies()).toBe(50);
});

test("leaves out an hour that can't be read, and doesn't overwrite it", async () => {
  counter.record(sample());
  await counter.flush();
  const sealed = new Uint8Array(64).fill(1);
  await db.write([{ sql: "UPDATE document SET sealed = ?", params: [sealed] }]);
  counter.record(sample());
  expect(await countReplies()).toBe(0);
  expect(db.get<{ sealed: Uint8Array }>("SELECT sealed FROM document")!.sealed).toEqual(new Uint8Array(64).fill(1));
  expect(lines.some((line) => line.includes("Can't add to the usage of models"))).toBe(true);
});

test("sums models beyond the limit of an hour together", () => {
  const sums: UsageSums[] = [];
  for (let n = 0; n < MAX_MODELS + 20; n++) addSample(sums, sample({ model: `model ${n}` }));
  expect(sums).toHaveLength(MAX_MODELS + 1);
  expect(sums.at(-1)).toMatchObject({ model: "", connection_id: "", replies: 20, prompt_tokens: 200 });
});

test.each<[Partial<CallSample>, Partial<UsageSums>]>([
  [{ usage: undefined }, { uncounted_calls: 1, prompt_tokens: 0 }],
  [{ usage: { prompt_tokens: NaN, completion_tokens: -1 } }, { uncounted_calls: 1 }],
  [{ usage: { prompt_tokens: 10, completion_tokens: 5, prompt_cache_hit_tokens: 8 } }, { cached_tokens: 8 }],
  [{ usage: { prompt_tokens: 10, prompt_tokens_details: { cached_tokens: 99 } } }, { cached_tokens: 10 }],
  [{ usage: { prompt_tokens: 10, prompt_tokens_details: "odd" } }, { cached_tokens: 0 }],
  [{ usage: { prompt_tokens: 10, completion_tokens: 5, cost: "0.5" } }, { cost_count: 0, cost: 0 }],
  [{ firstWordMs: 12.4, writingMs: 500 }, { first_word_ms: 12, first_word_count: 1, timed_tokens: 5, timed_ms: 500 }],
  [{ firstWordMs: 12 }, { timed_tokens: 0, timed_ms: 0 }],
  [{ writingMs: 500, timings: { predicted_n: 7, predicted_ms: 70 } }, { timed_tokens: 7, timed_ms: 70 }],
  [{ origin: undefined }, { kind: "background", replies: 1 }],
  [{ origin: { kind: "reply", isFurtherRound: true } }, { replies: 0 }],
  [{ model: "\ud800" }, { model: "\ufffd" }],
])("adds up what servers report: %j", (fields, expected) => {
  const sums: UsageSums[] = [];
  addSample(sums, sample(fields));
  expect(sums).toMatchObject([expected]);
});

test("ignores what isn't usage in an export", () => {
  const sums: UsageSums[] = [];
  addSample(sums, sample());
  const hours = { "2026-05-01T22": [...sums, 1, { kind: "odd" }], "2026-13-01T99": sums, "../x": sums, odd: 1 };
  const price = { connection_id: "c", model: "m", prompt: 1, completion: 2 };
  expect(parseUsage({ hours, prices: [price, { ...price, prompt: -1 }, null] })).toEqual({
    hours: { "2026-05-01T22": sums },
    prices: [price],
  });
  expect(parseUsage({ hours: 1, prices: "x" })).toEqual({ hours: {}, prices: [] });
});
