/** Reads the sizes in errors about prompts that are longer than the context (docs/protocols/llm.md, "Errors"). */
import type { OverflowFacts } from "../http/upstream_error.ts";

const NUMBER = String.raw`([\d][\d,_]*)`;

/** Where servers name the size of their context. The first group is the number. */
const CONTEXT_TEXTS = [
  // OpenAI, vLLM, DeepSeek, OpenRouter: "maximum context length is 4096 tokens". xAI: "maximum prompt length is".
  `maximum (?:context|prompt|model) length (?:is|of) (?:only )?${NUMBER}`,
  // Mistral: "too large for model with 32768 maximum context length".
  `${NUMBER} (?:tokens? )?maximum context length`,
  // Gemini: "exceeds the maximum number of tokens allowed (1048576)".
  String.raw`maximum number of tokens allowed \(?${NUMBER}`,
  // Anthropic: "prompt is too long: 208310 tokens > 200000 maximum".
  `> ${NUMBER} (?:tokens? )?maximum`,
  // LM Studio: "loaded with context length of only 4096 tokens". llama.cpp: "available context size (1024 tokens)".
  String.raw`context (?:length|size|window)(?: is| of)?:? ?(?:only )?\(?${NUMBER}`,
  `${NUMBER}[- ]token context`,
].map((text) => new RegExp(text, "i"));

/** Where they name the size of the prompt. */
const PROMPT_TEXTS = [
  `prompt is too long: ${NUMBER} tokens`,
  String.raw`(?:request|prompt) \(?(?:has |contains |of )?${NUMBER} (?:input |prompt )?tokens`,
  `messages resulted in ${NUMBER} tokens`,
  String.raw`input token count \(?${NUMBER}`,
  String.raw`\(${NUMBER} (?:in the messages|of text input|in the prompt)`,
].map((text) => new RegExp(text, "i"));

/** Smaller numbers are something else, such as a code. In tokens. */
const SMALLEST_CONTEXT = 64;

/**
 * Reads the sizes that an error names.
 *
 * @param source The error's object: llama.cpp has `n_ctx` and `n_prompt_tokens`.
 * @param message The error's text.
 */
export function readOverflow(source: Record<string, unknown>, message: string): OverflowFacts | undefined {
  const contextSize = toCount(source.n_ctx) ?? findNumber(CONTEXT_TEXTS, message);
  const promptTokens = toCount(source.n_prompt_tokens) ?? findNumber(PROMPT_TEXTS, message);
  if (contextSize === undefined && promptTokens === undefined) return undefined;
  return {
    ...(contextSize !== undefined && contextSize >= SMALLEST_CONTEXT && { contextSize }),
    ...(promptTokens !== undefined && { promptTokens }),
  };
}

function findNumber(patterns: readonly RegExp[], text: string): number | undefined {
  for (const pattern of patterns) {
    const found = pattern.exec(text)?.[1];
    if (found !== undefined) return toCount(Number(found.replaceAll(/[,_]/g, "")));
  }
  return undefined;
}

function toCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}
