import { expect, test } from "vitest";
import { suggestContextSize } from "../../../../static/src/state/connections/known_context_sizes.ts";

test.each([
  ["Qwen2.5-7B-Instruct-Q4_K_M.gguf", 32_768],
  ["Qwen/Qwen3-30B-A3B-Instruct-2507", 262_144],
  ["qwen3:8b", 40_960],
  ["meta-llama/llama-3.1-8b-instruct", 131_072],
  ["Meta-Llama-3-8B-Instruct", 8192],
  ["llama3.2", 131_072],
  ["mistral-nemo:12b", 131_072],
  ["Mixtral-8x7B-Instruct-v0.1", 32_768],
  ["gemma-2-9b-it", 8192],
  ["gemma3:27b", 131_072],
  ["phi-3-mini-128k-instruct", 131_072],
  ["Phi-3-mini-4k-instruct-q4", 4096],
  ["gpt-4-32k", 32_768],
  ["gpt-4o-mini", 128_000],
  ["openai/o3-mini", 200_000],
  ["gpt-oss:20b", 131_072],
  ["claude-sonnet-4-5", 200_000],
  ["deepseek-r1-distill-llama-8b", 131_072],
])("suggests the context size of %s", (model, tokens) => {
  expect(suggestContextSize(model)).toBe(tokens);
});

test.each(["my-model", "", "model-7b", "fake-model", "photo3", "2048-k"])("suggests nothing for %j", (model) => {
  expect(suggestContextSize(model)).toBeUndefined();
});
