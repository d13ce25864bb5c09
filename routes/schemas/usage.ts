/** Usage of models in the API. */
import { createRoute, z } from "@hono/zod-openapi";
import type { UsageReport } from "../../services/usage/usage.ts";
import { addSums, getCost, type Price, type UsageSums } from "../../services/usage/usage_sums.ts";
import { ERRORS, IdParams, json, jsonBody } from "./common.ts";

const Sums = z.object({
  replies: z.number().int().openapi({ description: "A reply that called tools counts once" }),
  uncounted_calls: z.number().int().openapi({ description: "Calls for which the server reported no tokens" }),
  prompt_tokens: z.number().int(),
  cached_tokens: z.number().int().openapi({ description: "Those of the prompt that the server had in its cache" }),
  completion_tokens: z.number().int(),
  first_word_ms: z.number().nullable().openapi({
    description: "Mean time from the request to the first output, in milliseconds; null if it wasn't measured",
  }),
  tokens_per_second: z.number().nullable().openapi({ description: "null if it wasn't measured" }),
  cost: z.number().nullable().openapi({
    description: "US dollars: what servers said, and the owner's prices for the rest; null if neither is known",
  }),
});

const ModelUsage = Sums.extend({
  connection_id: z.string(),
  connection_name: z.string().openapi({ description: "Its name at the last call" }),
  model: z.string(),
  kind: z.enum(["reply", "background", "api"]).openapi({
    description:
      "reply: in chats; background: titles, summaries and other questions of Parlor's own; api: requests to /api/v1",
  }),
}).openapi("ModelUsage");

const Total = Sums.extend({
  replies: z.number().int().openapi({ description: "Without background calls" }),
  background_calls: z.number().int(),
});

const UsageResponse = z.object({
  days: z.array(z.object({ date: z.iso.date(), models: z.array(ModelUsage), total: Total })).openapi({
    description: "All days in the range, oldest first",
  }),
  models: z.array(ModelUsage).openapi({ description: "Sums of all days" }),
  total: Total,
}).openapi("Usage");

const ChatUsageResponse = z.object({ models: z.array(ModelUsage), total: Total }).openapi("ChatUsage");

const Name = z.string().max(200);
const Amount = z.number().min(0).max(1_000_000);
const PriceFields = {
  prompt: Amount.openapi({ description: "US dollars per million tokens" }),
  completion: Amount.openapi({ description: "US dollars per million tokens" }),
  cached: Amount.optional().openapi({ description: "For cached tokens of the prompt; by default the same as prompt" }),
};
const PriceResponse = z.object({ connection_id: Name, model: Name, ...PriceFields }).openapi("ModelPrice");
const Prices = json(z.array(PriceResponse), "All prices");

/** Parses the name of a time zone, which the runtime must know. */
const TimeZone = z.string().max(100).refine((name) => {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}, "this time zone is unknown").default("UTC").openapi({
  description: "IANA name: where days start. An hour counts for the day in which it starts",
  example: "Europe/Berlin",
});

/** Converts the usage of some days to its JSON form. */
export function toUsageJson({ days, models }: UsageReport, prices: readonly Price[]): z.infer<typeof UsageResponse> {
  return {
    days: days.map(({ date, models }) => ({ date, ...toChatUsageJson(models, prices) })),
    ...toChatUsageJson(models, prices),
  };
}

/** Converts sums of models to their JSON form. */
export function toChatUsageJson(
  models: readonly UsageSums[],
  prices: readonly Price[],
): z.infer<typeof ChatUsageResponse> {
  const costs = models.map((one) => getCost(one, prices)).filter((cost) => cost !== undefined);
  const all: UsageSums[] = [];
  for (const one of models) addSums(all, { ...one, connection_id: "", model: "", kind: "reply" });
  const cost = costs.length === 0 ? null : costs.reduce((sum, one) => sum + one, 0);
  const background = models.reduce((sum, { kind, replies }) => sum + (kind === "background" ? replies : 0), 0);
  const total = toSumsJson(all[0] ?? NOTHING, cost);
  return {
    models: models.map((one) => ({
      connection_id: one.connection_id,
      connection_name: one.connection_name,
      model: one.model,
      kind: one.kind,
      ...toSumsJson(one, getCost(one, prices) ?? null),
    })),
    total: { ...total, replies: total.replies - background, background_calls: background },
  };
}

function toSumsJson(
  sums: Omit<UsageSums, "connection_id" | "connection_name" | "model" | "kind" | "unpriced">,
  cost: number | null,
): UsageSumsJson {
  const { replies, uncounted_calls, prompt_tokens, cached_tokens, completion_tokens } = sums;
  const { first_word_ms, first_word_count, timed_tokens, timed_ms } = sums;
  return {
    ...{ replies, uncounted_calls, prompt_tokens, cached_tokens, completion_tokens },
    first_word_ms: first_word_count === 0 ? null : Math.round(first_word_ms / first_word_count),
    tokens_per_second: timed_ms === 0 ? null : Math.round(timed_tokens / timed_ms * 100_000) / 100,
    cost,
  };
}

const NOTHING = {
  ...{ replies: 0, uncounted_calls: 0, prompt_tokens: 0, cached_tokens: 0, completion_tokens: 0 },
  ...{ first_word_ms: 0, first_word_count: 0, timed_tokens: 0, timed_ms: 0, cost: 0, cost_count: 0 },
};

export const getRoute = createRoute({
  method: "get",
  path: "/api/usage",
  tags: ["usage"],
  summary: "Replies, tokens, speed and cost per day and model",
  description: "Counts are kept for a year.",
  request: {
    query: z.object({
      days: z.coerce.number().int().min(1).max(366).default(30).openapi({ description: "Including today" }),
      time_zone: TimeZone,
    }),
  },
  responses: { 200: json(UsageResponse, "The usage"), ...ERRORS },
});

export const clearRoute = createRoute({
  method: "delete",
  path: "/api/usage",
  tags: ["usage"],
  summary: "Delete all counts, those of chats too",
  description: "Prices stay.",
  responses: { 204: { description: "Deleted" }, ...ERRORS },
});

export const pricesRoute = createRoute({
  method: "get",
  path: "/api/usage/prices",
  tags: ["usage"],
  summary: "The owner's prices of models",
  responses: { 200: Prices, ...ERRORS },
});

export const setPriceRoute = createRoute({
  method: "put",
  path: "/api/usage/prices",
  tags: ["usage"],
  summary: "Set the price of a model",
  description: "It applies to all calls, earlier ones too, for which the server didn't say what they cost.",
  request: {
    body: jsonBody(z.object({
      connection_id: Name,
      model: Name,
      price: z.object(PriceFields).nullable().openapi({ description: "null removes the price" }),
    })),
  },
  responses: { 200: Prices, ...ERRORS },
});

export const chatRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/usage",
  tags: ["usage"],
  summary: "Replies, tokens, speed and cost of a chat",
  description: "All replies count, also regenerated and deleted ones.",
  request: { params: IdParams },
  responses: { 200: json(ChatUsageResponse, "The usage"), ...ERRORS },
});

/** Sums of one or several models. */
export type UsageSumsJson = z.infer<typeof Sums>;
/** Sums of all models. */
export type UsageTotalJson = z.infer<typeof Total>;
/** The usage of one model. */
export type ModelUsageJson = z.infer<typeof ModelUsage>;
/** The usage of some days. */
export type UsageJson = z.infer<typeof UsageResponse>;
/** The usage of a chat. */
export type ChatUsageJson = z.infer<typeof ChatUsageResponse>;
/** What a model costs. */
export type ModelPriceJson = z.infer<typeof PriceResponse>;
