/** Dialects of hosted services, of servers that people run themselves, and of unknown servers. */
import {
  COMMON_IMAGE_TYPES,
  CONTINUE_LAST_MESSAGE,
  type Dialect,
  findNearestEffort,
  mapToSameNames,
  OPENAI_SAMPLERS,
  sendEffort,
  sendTemplateSwitch,
  SHOW_PROGRESS,
} from "./dialect.ts";

/** Common properties of most servers with an OpenAI-compatible API. */
const COMMON = {
  needsOutputLimit: false,
  asksForUsage: true,
  keyHeader: "authorization",
  trimsContext: "client",
  continues: false,
  imageTypes: COMMON_IMAGE_TYPES,
  documents: false,
  tools: true,
  callIds: { pattern: /^[\x21-\x7e]+$/, length: 24 },
  cacheMarks: "none",
  returnsReasoningWithTools: [],
} as const satisfies Partial<Dialect>;

/** @see https://platform.openai.com/docs/api-reference/chat/create */
const openai: Dialect = {
  ...COMMON,
  name: "openai",
  title: "OpenAI",
  outputLimit: "max_completion_tokens",
  callIds: { pattern: /^[\x21-\x7e]{1,40}$/, length: 24 },
  samplers: OPENAI_SAMPLERS,
  thinking: sendEffort("none", "minimal", "low", "medium", "high"),
};

/** @see https://learn.microsoft.com/azure/ai-foundry/openai/reference */
const azure: Dialect = { ...openai, name: "azure", title: "Azure OpenAI", keyHeader: "api-key" };

/**
 * Thinking budgets in tokens. Anthropic's minimum is 1,024.
 *
 * @see https://docs.claude.com/en/docs/build-with-claude/extended-thinking
 */
export const ANTHROPIC_BUDGETS = { minimal: 1_024, low: 2_048, medium: 8_192, high: 16_384 } as const;

/** The provider converts the effort to its budget. */
const anthropic: Dialect = {
  ...COMMON,
  name: "anthropic",
  title: "Anthropic",
  callIds: { pattern: /^[a-zA-Z0-9_-]{1,64}$/, length: 24 },
  outputLimit: "max_tokens",
  needsOutputLimit: true,
  samplers: { ...mapToSameNames("temperature", "top_p", "top_k"), stop: "stop_sequences" },
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
  ...COMMON,
  name: "gemini",
  title: "Gemini",
  outputLimit: "max_tokens",
  samplers: mapToSameNames("temperature", "top_p", "stop"),
  thinking: sendEffort("none", "minimal", "low", "medium", "high"),
};

/** @see https://docs.mistral.ai/api/endpoint/chat */
const mistral: Dialect = {
  ...COMMON,
  name: "mistral",
  title: "Mistral",
  callIds: { pattern: /^[a-zA-Z0-9]{9}$/, length: 9 },
  outputLimit: "max_tokens",
  samplers: {
    ...mapToSameNames("temperature", "top_p", "frequency_penalty", "presence_penalty", "stop"),
    seed: "random_seed",
  },
  thinking: sendEffort("none", "high"),
  // The last chunk always has the usage.
  asksForUsage: false,
};

/** @see https://api-docs.deepseek.com/api/create-chat-completion */
const deepseek: Dialect = {
  ...COMMON,
  name: "deepseek",
  title: "DeepSeek",
  outputLimit: "max_tokens",
  samplers: mapToSameNames("temperature", "top_p", "frequency_penalty", "presence_penalty", "stop"),
  thinking: {
    hasSwitch: true,
    efforts: ["none", "high"],
    toFields: (effort) => ({ thinking: { type: effort === "none" ? "disabled" : "enabled" } }),
  },
  imageTypes: [],
  // Without it, the server rejects the request: https://api-docs.deepseek.com/guides/thinking_mode#tool-calls
  returnsReasoningWithTools: ["reasoning_content"],
};

/** @see https://openrouter.ai/docs/api-reference/parameters */
const openrouter: Dialect = {
  ...COMMON,
  name: "openrouter",
  title: "OpenRouter",
  // It passes on what its providers refuse.
  callIds: { pattern: /^[a-zA-Z0-9_-]{1,40}$/, length: 24 },
  outputLimit: "max_tokens",
  samplers: { ...OPENAI_SAMPLERS, ...mapToSameNames("top_k", "min_p", "top_a", "repetition_penalty") },
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
  ...COMMON,
  name: "groq",
  title: "Groq",
  outputLimit: "max_completion_tokens",
  samplers: mapToSameNames("temperature", "top_p", "seed", "stop"),
  thinking: {
    hasSwitch: true,
    efforts: ["none", "low", "medium", "high"],
    toFields: (effort) => ({ reasoning_effort: findNearestEffort(effort, ["none", "low", "medium", "high"]) }),
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

const LOCAL = { ...COMMON, outputLimit: "max_tokens" } as const satisfies Partial<Dialect>;

/** @see https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md */
const llamaCpp: Dialect = {
  ...LOCAL,
  name: "llama.cpp",
  title: "llama.cpp",
  samplers: {
    ...OPENAI_SAMPLERS,
    ...mapToSameNames("top_k", "min_p", "dry_multiplier", "dry_base", "dry_allowed_length", "mirostat", "mirostat_tau"),
    ...mapToSameNames(
      "mirostat_eta",
      "xtc_probability",
      "xtc_threshold",
      "dynatemp_range",
      "dynatemp_exponent",
      "top_n_sigma",
    ),
    typical_p: "typical_p",
    repetition_penalty: "repeat_penalty",
    repetition_penalty_range: "repeat_last_n",
    rep_pen_range: "repeat_last_n",
  },
  // Templates of models that think between calls require it.
  returnsReasoningWithTools: ["reasoning_content"],
  thinking: sendTemplateSwitch("chat_template_kwargs"),
  continues: true,
  keepsStreams: true,
  progressFields: SHOW_PROGRESS,
  continuationFields: CONTINUE_LAST_MESSAGE,
  imageTypes: ["image/png", "image/jpeg", "image/gif", "image/bmp"],
};

/** @see https://github.com/LostRuins/koboldcpp/wiki */
const koboldcpp: Dialect = {
  ...LOCAL,
  name: "koboldcpp",
  title: "KoboldCpp",
  // Without a limit it stops after 400 tokens (docs/protocols/llm.md, "Chat request").
  needsOutputLimit: true,
  samplers: {
    ...mapToSameNames("temperature", "top_p", "top_k", "top_a", "min_p", "presence_penalty", "stop"),
    typical_p: "typical",
    repetition_penalty: "rep_pen",
    repetition_penalty_range: "rep_pen_range",
    seed: "seed",
  },
  thinking: sendTemplateSwitch("chat_template_kwargs"),
  trimsContext: "server",
  continues: true,
};

/** @see https://github.com/theroyallab/tabbyAPI/wiki */
const tabbyapi: Dialect = {
  ...LOCAL,
  name: "tabbyapi",
  title: "TabbyAPI",
  samplers: {
    ...OPENAI_SAMPLERS,
    ...mapToSameNames(
      "top_k",
      "min_p",
      "top_a",
      "repetition_penalty",
      "dry_multiplier",
      "dry_base",
      "dry_allowed_length",
    ),
    ...mapToSameNames("xtc_probability", "xtc_threshold"),
    typical_p: "typical",
    repetition_penalty_range: "penalty_range",
  },
  thinking: sendTemplateSwitch("template_vars"),
  continues: true,
};

/** @see https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html */
const vllm: Dialect = {
  ...LOCAL,
  name: "vllm",
  title: "vLLM",
  samplers: { ...OPENAI_SAMPLERS, ...mapToSameNames("top_k", "min_p", "repetition_penalty") },
  returnsReasoningWithTools: ["reasoning_content"],
  thinking: sendTemplateSwitch("chat_template_kwargs"),
  continues: true,
  continuationFields: CONTINUE_LAST_MESSAGE,
};

/** @see https://lmstudio.ai/docs/developer/openai-compat/chat-completions */
const lmstudio: Dialect = {
  ...LOCAL,
  name: "lmstudio",
  title: "LM Studio",
  samplers: {
    ...OPENAI_SAMPLERS,
    top_k: "top_k",
    min_p: "min_p",
    repetition_penalty: "repeat_penalty",
  },
  thinking: sendEffort("low", "medium", "high"),
  continues: true,
};

/** @see https://docs.ollama.com/api */
const ollama: Dialect = {
  ...LOCAL,
  name: "ollama",
  title: "Ollama",
  samplers: {
    ...mapToSameNames(
      "temperature",
      "top_p",
      "frequency_penalty",
      "presence_penalty",
      "seed",
      "stop",
      "top_k",
      "min_p",
    ),
    repetition_penalty: "repeat_penalty",
    typical_p: "typical_p",
  },
  thinking: sendEffort("none", "low", "medium", "high"),
  trimsContext: "server",
  continues: true,
  imageTypes: ["image/png", "image/jpeg", "image/webp"],
};

/** @see https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/SERVER.md */
const mlx: Dialect = {
  ...LOCAL,
  name: "mlx",
  title: "mlx_lm",
  // Without a limit it stops after 512 tokens.
  needsOutputLimit: true,
  samplers: mapToSameNames(
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "seed",
    "stop",
    "logit_bias",
  ),
  thinking: sendTemplateSwitch("chat_template_kwargs"),
  imageTypes: [],
};

/** A server with OpenAI's protocol that can't be identified. */
const generic: Dialect = {
  ...LOCAL,
  name: "generic",
  title: "OpenAI-compatible",
  samplers: {
    ...OPENAI_SAMPLERS,
    ...mapToSameNames("top_k", "min_p", "top_a", "typical_p", "repetition_penalty", "repeat_penalty"),
  },
  returnsReasoningWithTools: ["reasoning_content"],
  thinking: sendEffort("none", "minimal", "low", "medium", "high"),
  continues: true,
};

/** The servers that people run themselves. */
export const LOCAL_DIALECTS: readonly Dialect[] = [
  llamaCpp,
  koboldcpp,
  tabbyapi,
  vllm,
  lmstudio,
  ollama,
  mlx,
  generic,
];
