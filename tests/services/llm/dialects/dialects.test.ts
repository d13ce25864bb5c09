import { expect, test } from "vitest";
import { DIALECT_NAMES, type DialectName } from "../../../../services/llm/dialects/dialect.ts";
import { chooseDialect, getDialect, getDialectOfSoftware } from "../../../../services/llm/dialects/dialects.ts";

test.each([...DIALECT_NAMES])("the table has %s, complete", (name) => {
  const dialect = getDialect(name);
  expect(dialect).toMatchObject({ name, title: expect.stringMatching(/\S/) });
  expect(Object.values(dialect.samplers).every((wire) => wire !== "")).toBe(true);
});

test.each<[string, DialectName]>([
  ["https://api.openai.com/v1", "openai"],
  ["https://eu.api.openai.com/v1", "openai"],
  ["https://me.openai.azure.com/openai/deployments/gpt", "azure"],
  ["https://me.services.ai.azure.com/openai/v1", "azure"],
  ["http://127.0.0.1:9000/openai/deployments/gpt", "azure"],
  ["https://generativelanguage.googleapis.com/v1beta/openai", "gemini"],
  ["https://api.mistral.ai/v1", "mistral"],
  ["https://api.deepseek.com", "deepseek"],
  ["https://openrouter.ai/api/v1", "openrouter"],
  ["https://api.groq.com/openai/v1", "groq"],
  ["https://notopenai.com/v1", "generic"],
  ["http://127.0.0.1:8080/v1", "generic"],
])("the address %s has the dialect %s", (baseUrl, name) => {
  expect(chooseDialect({ kind: "openai", baseUrl }).name).toBe(name);
});

test("the owner's choice takes precedence over the address, the address over the server's own words, and the protocol over all", () => {
  const baseUrl = "https://api.mistral.ai/v1";
  expect(chooseDialect({ kind: "openai", baseUrl, override: "vllm", detected: "ollama" }).name).toBe("vllm");
  expect(chooseDialect({ kind: "openai", baseUrl, detected: "ollama" }).name).toBe("mistral");
  expect(chooseDialect({ kind: "openai", baseUrl: "http://h/v1", detected: "ollama" }).name).toBe("ollama");
  expect(chooseDialect({ kind: "anthropic", baseUrl, override: "vllm" }).name).toBe("anthropic");
});

test("a product without its own dialect is generic", () => {
  expect(getDialectOfSoftware("LocalAI")).toBe("generic");
  expect(getDialectOfSoftware("vLLM")).toBe("vllm");
});
