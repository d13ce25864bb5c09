import { expect, test } from "vitest";
import type { Connection, Job } from "../../../../static/src/api/types.ts";
import {
  findModelPull,
  findThinking,
  getEffortLabel,
  isSameModelName,
} from "../../../../static/src/state/connections/connection_state.ts";

const TIME = "2026-01-02T03:04:05Z";

function connect(dialect: Partial<NonNullable<Connection["dialect"]>>, fields: Partial<Connection> = {}): Connection {
  return {
    id: "c",
    name: "C",
    kind: "openai",
    base_url: "http://h/v1",
    has_key: false,
    active: true,
    created_at: TIME,
    updated_at: TIME,
    header_names: [],
    server: {},
    refused: [],
    dialect: {
      name: "generic",
      title: "Server",
      output_limit: "max_tokens",
      samplers: [],
      thinking: { switch: true, efforts: ["none", "low", "high"] },
      trims_context: "client",
      continues: true,
      images: true,
      documents: false,
      tools: true,
      ...dialect,
    },
    ...fields,
  };
}

function ollama(models?: Record<string, { thinking?: boolean }>): Connection {
  return connect({ name: "ollama", models }, { kind: "ollama" });
}

function job(fields: Partial<Job>): Job {
  return {
    id: "j",
    kind: "model_pull",
    title: "qwen3",
    state: "running",
    progress: null,
    detail: { connection_id: "c", model: "qwen3" },
    created_at: TIME,
    updated_at: TIME,
    ...fields,
  };
}

test("the switch for thinking of Ollama's models shows only where the model is known to think", () => {
  const models = { "thinker:latest": { thinking: true }, "plain:latest": { thinking: false } };
  expect(findThinking(ollama(models), "thinker")?.isKnown).toBe(true);
  expect(findThinking(ollama(models), "thinker:latest")?.isKnown).toBe(true);
  expect(findThinking(ollama(models), "plain")).toBeUndefined();
  expect(findThinking(ollama(models), "unknown")?.isKnown).toBe(false);
  expect(findThinking(ollama(), "unknown")?.isKnown).toBe(false);
});

test("names of other servers are compared as they are", () => {
  const models = { "big:latest": { thinking: false } };
  expect(findThinking(connect({ models }), "big")).toBeDefined();
  expect(isSameModelName("big", "big:latest", "openai")).toBe(false);
  expect(isSameModelName("hf.co:443/me/big", "hf.co:443/me/big:latest", "ollama")).toBe(true);
});

test("efforts name the tokens that they allow, unless the model chooses them itself", () => {
  const thinking = { switch: true, efforts: ["none", "low", "high"] as const, budgets: { low: 2048, high: 16384 } };
  const dialect = { name: "anthropic" as const, thinking: { ...thinking, efforts: [...thinking.efforts] } };
  const known = findThinking(connect(dialect), "m")!;
  expect(getEffortLabel(known, "high")).toBe("High · up to 16,384 tokens");
  expect(getEffortLabel(known, "none")).toBe("Off");
  const adaptive = findThinking(connect({ ...dialect, models: { m: { thinking: true, adaptive: true } } }), "m")!;
  expect(getEffortLabel(adaptive, "high")).toBe("High");
});

test("finds the download of a model that is under way", () => {
  const connection = ollama();
  expect(findModelPull([job({ state: "failed" }), job({ id: "k" })], connection, "qwen3:latest")?.id).toBe("k");
  expect(findModelPull([job({ detail: { connection_id: "other" } })], connection, "qwen3")).toBeUndefined();
  expect(findModelPull([job({ kind: "model_download" })], connection, "qwen3")).toBeUndefined();
  expect(findModelPull([job({})], connection, "qwen3:8b")).toBeUndefined();
});
