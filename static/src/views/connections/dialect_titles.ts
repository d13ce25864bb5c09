/** The kinds of model servers by product name, which is the same in every language. */
import type { ServerName } from "./connection_fields.ts";

/** Those that speak OpenAI's protocol, in the order of the list. `generic` has a text. */
export const DIALECT_TITLES: readonly [name: ServerName, title: string][] = [
  ["llama.cpp", "llama.cpp"],
  ["koboldcpp", "KoboldCpp"],
  ["lmstudio", "LM Studio"],
  ["mlx", "mlx_lm"],
  ["ollama", "Ollama"],
  ["tabbyapi", "TabbyAPI"],
  ["vllm", "vLLM"],
  ["azure", "Azure OpenAI"],
  ["deepseek", "DeepSeek"],
  ["gemini", "Gemini"],
  ["groq", "Groq"],
  ["mistral", "Mistral"],
  ["openai", "OpenAI"],
  ["openrouter", "OpenRouter"],
];

/** Returns the product name; the name itself for one that this page doesn't know. */
export function getDialectTitle(name: string): string {
  return DIALECT_TITLES.find(([known]) => known === name)?.[1] ?? name;
}
