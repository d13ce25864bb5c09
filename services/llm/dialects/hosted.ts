/** Dialects of hosted services. */
import { COMMON_IMAGE_TYPES, type Dialect, nearestEffort, OPENAI_SAMPLERS, sameNames, sendEffort } from "./dialect.ts";

const HOSTED = {
  needsOutputLimit: false,
  asksForUsage: true,
  keyHeader: "authorization",
  trimsContext: "client",
  continues: false,
  imageTypes: COMMON_IMAGE_TYPES,
  documents: false,
  tools: true,
  cacheMarks: "none",
  returnsReasoningWithTools: [],
} as const satisfies Partial<Dialect>;

/** @see https://platform.openai.com/docs/api-reference/chat/create */
const openai: Dialect = {
  ...HOSTED,
  name: "openai",
  title: "OpenAI",
  outputLimit: "max_completion_tokens",
  samplers: OPENAI_SAMPLERS,
  thinking: sendEffort("none", "minimal", "low", "medium", "high"),
};

/** @see https://learn.microsoft.com/azure/ai-foundry/openai/reference */
const azure: Dialect = { ...openai, name: "azure", title: "Azure OpenAI", keyHeader: "api-key" };

/**
 * Tokens to think with. The least that Anthropic accepts is 1,024.
 *
 * @see https://docs.claude.com/en/docs/build-with-claude/extended-thinking
 */
export const ANTHROPIC_BUDGETS = { minimal: 1_024, low: 2_048, medium: 8_192, high: 16_384 } as const;

/** @see https://docs.claude.com/en/api/messages */
const anthropic: Dialect = {
  ...HOSTED,
  name: "anthropic",
  title: "Anthropic",
  outputLimit: "max_tokens",
  needsOutputLimit: true,
  samplers: { ...sameNames("temperature", "top_p", "top_k"), stop: "stop_sequences" },
  // The provider turns the effort into its budget.
  thinking: {
    hasSwitch: true,
    efforts: ["none", "low", "medium", "high"],
    budgets: ANTHROPIC_BUDGETS,
    toFields: () => ({}),
  },
  asksForUsage: false,
  keyHeader: "x-api-key",
  continues: true,
  documents: true,
  cacheMarks: "cache_control",
  returnsReasoningWithTools: ["reasoning_details"],
};

/** @see https://ai.google.dev/gemini-api/docs/openai */
const gemini: Dialect = {
  ...HOSTED,
  name: "gemini",
  title: "Gemini",
  outputLimit: "max_tokens",
  samplers: sameNames("temperature", "top_p", "stop"),
  thinking: sendEffort("none", "minimal", "low", "medium", "high"),
};

/** @see https://docs.mistral.ai/api/endpoint/chat */
const mistral: Dialect = {
  ...HOSTED,
  name: "mistral",
  title: "Mistral",
  outputLimit: "max_tokens",
  samplers: {
    ...sameNames("temperature", "top_p", "frequency_penalty", "presence_penalty", "stop"),
    seed: "random_seed",
  },
  thinking: sendEffort("none", "high"),
  // The last chunk has the usage anyway.
  asksForUsage: false,
};

/** @see https://api-docs.deepseek.com/api/create-chat-completion */
const deepseek: Dialect = {
  ...HOSTED,
  name: "deepseek",
  title: "DeepSeek",
  outputLimit: "max_tokens",
  samplers: sameNames("temperature", "top_p", "frequency_penalty", "presence_penalty", "stop"),
  thinking: {
    hasSwitch: true,
    efforts: ["none", "high"],
    toFields: (effort) => ({ thinking: { type: effort === "none" ? "disabled" : "enabled" } }),
  },
  imageTypes: [],
  // Without it, the server refuses the request: https://api-docs.deepseek.com/guides/thinking_mode#tool-calls
  returnsReasoningWithTools: ["reasoning_content"],
};

/** @see https://openrouter.ai/docs/api-reference/parameters */
const openrouter: Dialect = {
  ...HOSTED,
  name: "openrouter",
  title: "OpenRouter",
  outputLimit: "max_tokens",
  samplers: { ...OPENAI_SAMPLERS, ...sameNames("top_k", "min_p", "top_a", "repetition_penalty") },
  thinking: {
    hasSwitch: true,
    efforts: ["none", "minimal", "low", "medium", "high"],
    toFields: (effort) => ({ reasoning: effort === "none" ? { enabled: false } : { effort } }),
  },
  continues: true,
  // https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks
  returnsReasoningWithTools: ["reasoning_details", "reasoning"],
};

/** @see https://console.groq.com/docs/api-reference#chat-create */
const groq: Dialect = {
  ...HOSTED,
  name: "groq",
  title: "Groq",
  outputLimit: "max_completion_tokens",
  samplers: sameNames("temperature", "top_p", "seed", "stop"),
  thinking: {
    hasSwitch: true,
    efforts: ["none", "low", "medium", "high"],
    toFields: (effort) => ({ reasoning_effort: nearestEffort(effort, ["none", "low", "medium", "high"]) }),
  },
};

/** The hosted services. */
export const HOSTED_DIALECTS: readonly Dialect[] = [
  openai,
  azure,
  anthropic,
  gemini,
  mistral,
  deepseek,
  openrouter,
  groq,
];
