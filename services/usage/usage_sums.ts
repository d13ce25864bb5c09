/** Sums of calls to one model, and their cost. Field names are those of the stored format and of the API. */
import type { Usage } from "../llm/chat_event.ts";
import type { CallSample } from "../llm/upstream_client.ts";

/** Sums of the calls to one model for one purpose. */
export interface UsageSums {
  connection_id: string;
  /** Its name at the last call, for connections that are gone. */
  connection_name: string;
  /** Empty for the sum of models beyond the limit of an hour. */
  model: string;
  kind: "reply" | "background" | "api";
  /** A reply that called tools counts once. */
  replies: number;
  /** Calls for which the server reported no tokens. */
  uncounted_calls: number;
  prompt_tokens: number;
  /** Those of the prompt that the server had from an earlier call. */
  cached_tokens: number;
  completion_tokens: number;
  /** Sum of the times to the first word, in milliseconds, and how many were measured. */
  first_word_ms: number;
  first_word_count: number;
  /** Tokens whose writing was measured, and how long it took, in milliseconds. */
  timed_tokens: number;
  timed_ms: number;
  /** What servers said that calls cost, in US dollars, and for how many calls. */
  cost: number;
  cost_count: number;
  /** Tokens of calls without such a cost. The owner's price applies to them. */
  unpriced: { prompt_tokens: number; cached_tokens: number; completion_tokens: number };
}

/** What a model costs, in US dollars per million tokens. */
export interface Price {
  connection_id: string;
  model: string;
  prompt: number;
  completion: number;
  /** For tokens of the prompt from the server's cache. The same as `prompt` if absent. */
  cached?: number;
}

/** Maximum number of models with sums of their own in one hour or chat: names may come from other programs. */
export const MAX_MODELS = 100;
const MAX_NAME_CHARS = 200;

/** Adds a call to the sums of its model. */
export function addSample(all: UsageSums[], sample: CallSample): void {
  const { connection, origin, usage, timings, firstWordMs, writingMs } = sample;
  const kind = origin?.kind ?? "background";
  const model = sample.model.slice(0, MAX_NAME_CHARS).toWellFormed();
  const name = (connection?.name ?? "").slice(0, MAX_NAME_CHARS).toWellFormed();
  const tokens = readTokens(usage, timings);
  const cost = readCount(usage?.cost);
  const timed = readCount(timings?.predicted_ms) === undefined
    ? { tokens: tokens?.completion_tokens, ms: writingMs }
    : { tokens: readCount(timings?.predicted_n), ms: readCount(timings?.predicted_ms) };
  const isTimed = (timed.tokens ?? 0) > 0 && (timed.ms ?? 0) > 0;
  addSums(all, {
    connection_id: connection?.id ?? "",
    connection_name: name,
    model,
    kind,
    replies: origin?.isFurtherRound ? 0 : 1,
    uncounted_calls: tokens === undefined ? 1 : 0,
    ...tokens ?? NO_TOKENS,
    first_word_ms: Math.round(firstWordMs ?? 0),
    first_word_count: firstWordMs === undefined ? 0 : 1,
    timed_tokens: isTimed ? timed.tokens! : 0,
    timed_ms: isTimed ? Math.round(timed.ms!) : 0,
    cost: cost ?? 0,
    cost_count: cost === undefined ? 0 : 1,
    unpriced: cost === undefined && tokens !== undefined ? tokens : NO_TOKENS,
  });
}

/** Adds sums to those of the same model and purpose. */
export function addSums(all: UsageSums[], added: UsageSums): void {
  const isSame = (other: UsageSums) => other.kind === added.kind && isSameModel(other, added);
  let own = all.find(isSame);
  if (own === undefined && all.length >= MAX_MODELS) {
    added = { ...added, connection_id: "", connection_name: "", model: "" };
    own = all.find(isSame);
  }
  if (own === undefined) {
    all.push({ ...added, unpriced: { ...added.unpriced } });
    return;
  }
  own.connection_name = added.connection_name;
  for (const name of NUMBERS) own[name] += added[name];
  for (const name of TOKENS) own.unpriced[name] += added.unpriced[name];
}

/** Returns the cost of calls in US dollars: what servers said, and the owner's price for the rest; else `undefined`. */
export function getCost(sums: UsageSums, prices: readonly Price[]): number | undefined {
  const price = prices.find((one) => isSameModel(one, sums));
  if (price === undefined) return sums.cost_count > 0 ? sums.cost : undefined;
  const { prompt_tokens, cached_tokens, completion_tokens } = sums.unpriced;
  const read = (prompt_tokens - cached_tokens) * price.prompt + cached_tokens * (price.cached ?? price.prompt);
  return sums.cost + (read + completion_tokens * price.completion) / 1_000_000;
}

/** Returns whether two entries are for the same model of the same connection. */
export function isSameModel(
  one: Pick<Price, "connection_id" | "model">,
  other: Pick<Price, "connection_id" | "model">,
): boolean {
  return one.connection_id === other.connection_id && one.model === other.model;
}

/** Reads sums of an export. Returns `undefined` if they aren't any. */
export function parseSums(value: Record<string, unknown>): UsageSums | undefined {
  const { connection_id, connection_name, model, kind, unpriced } = value;
  if (typeof connection_id !== "string" || typeof model !== "string") return undefined;
  if (kind !== "reply" && kind !== "background" && kind !== "api") return undefined;
  const tokens = (typeof unpriced === "object" && unpriced !== null ? unpriced : {}) as Record<string, unknown>;
  const numbers = NUMBERS.map((name) => [name, readCount(value[name]) ?? 0]);
  return {
    connection_id: connection_id.slice(0, MAX_NAME_CHARS),
    connection_name: typeof connection_name === "string" ? connection_name.slice(0, MAX_NAME_CHARS) : "",
    model: model.slice(0, MAX_NAME_CHARS),
    kind,
    ...Object.fromEntries(numbers) as Record<typeof NUMBERS[number], number>,
    unpriced: Object.fromEntries(TOKENS.map((name) => [name, readCount(tokens[name]) ?? 0])) as UsageSums["unpriced"],
  };
}

/** Reads a price of an export. Returns `undefined` if it isn't one. */
export function parsePrice(value: Record<string, unknown>): Price | undefined {
  const { connection_id, model } = value;
  const [prompt, completion, cached] = [value.prompt, value.completion, value.cached].map(readCount);
  if (typeof connection_id !== "string" || typeof model !== "string") return undefined;
  if (prompt === undefined || completion === undefined) return undefined;
  return { connection_id, model, prompt, completion, ...(cached !== undefined && { cached }) };
}

const TOKENS = ["prompt_tokens", "cached_tokens", "completion_tokens"] as const;
const NUMBERS = [
  ...TOKENS,
  ...["replies", "uncounted_calls", "first_word_ms", "first_word_count"] as const,
  ...["timed_tokens", "timed_ms", "cost", "cost_count"] as const,
];
const NO_TOKENS = { prompt_tokens: 0, cached_tokens: 0, completion_tokens: 0 };

/** Returns the tokens of a call; `undefined` if the server reported none. */
function readTokens(usage: Usage | undefined, timings: Record<string, unknown> | undefined) {
  const prompt = readCount(usage?.prompt_tokens);
  const completion = readCount(usage?.completion_tokens);
  if (prompt === undefined && completion === undefined) return undefined;
  const { cached_tokens } = (usage?.prompt_tokens_details ?? {}) as { cached_tokens?: unknown };
  // DeepSeek has a field of its own: https://api-docs.deepseek.com/api/create-chat-completion
  const cached = readCount(cached_tokens) ?? readCount(timings?.cache_n) ?? readCount(usage?.prompt_cache_hit_tokens);
  return {
    prompt_tokens: prompt ?? 0,
    cached_tokens: Math.min(cached ?? 0, prompt ?? 0),
    completion_tokens: completion ?? 0,
  };
}

function readCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}
