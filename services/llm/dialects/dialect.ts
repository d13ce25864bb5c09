/** Differences between model servers with the same protocol (docs/protocols/llm.md, "Dialects"). */

/** All dialects. `generic` is for unknown servers. */
export const DIALECT_NAMES = [
  "openai",
  "azure",
  "anthropic",
  "gemini",
  "mistral",
  "deepseek",
  "openrouter",
  "llama.cpp",
  "koboldcpp",
  "tabbyapi",
  "vllm",
  "lmstudio",
  "groq",
  "ollama",
  "mlx",
  "generic",
] as const;

/** Name of a dialect in the API. */
export type DialectName = (typeof DIALECT_NAMES)[number];

/** How much a model thinks before it answers. `none` turns thinking off. */
export const REASONING_EFFORTS = ["none", "minimal", "low", "medium", "high"] as const;

/** One of the efforts. */
export type ReasoningEffort = (typeof REASONING_EFFORTS)[number];

/** Name of the field that limits the length of a reply. */
export type OutputLimitName = "max_tokens" | "max_completion_tokens" | "num_predict";

/** Fields of a message that may contain reasoning. */
export const REASONING_FIELDS = ["reasoning_content", "reasoning", "reasoning_details"] as const;

/** One of the fields. */
export type ReasoningField = (typeof REASONING_FIELDS)[number];

/** How thinking is controlled. */
export interface ThinkingSwitch {
  /** Whether thinking can be turned off. */
  hasSwitch: boolean;
  /** The efforts that make a difference, in ascending order. */
  efforts: readonly ReasoningEffort[];
  /** Number of thinking tokens per effort, if the server expects a number. */
  budgets?: Readonly<Partial<Record<ReasoningEffort, number>>>;
  /** Returns the request fields for an effort; an empty object if the server has no such field. */
  toFields(effort: ReasoningEffort): Record<string, unknown>;
}

/** IDs of tool calls that a server accepts. */
export interface CallIdRule {
  pattern: RegExp;
  /** Length of IDs that replace others. */
  length: number;
}

/** Properties of one kind of server. */
export interface Dialect {
  name: DialectName;
  /** Product name: `"llama.cpp"`, `"OpenAI"`. */
  title: string;
  outputLimit: OutputLimitName;
  /** True if the server stops after a few hundred tokens, or rejects the request, without a limit. */
  needsOutputLimit: boolean;
  /**
   * The server's names of documented samplers, by Parlor's names. Other samplers are sent under Parlor's names: models
   * differ, and rejections are learned.
   */
  samplers: Readonly<Record<string, string>>;
  thinking: ThinkingSwitch;
  /** True if the server only reports usage at the end of a stream if `stream_options` requests it. */
  asksForUsage: boolean;
  /** Header for the key. */
  keyHeader: "authorization" | "api-key" | "x-api-key";
  /** Who trims a conversation that exceeds the context: the server, without an error, or only Parlor. */
  trimsContext: "server" | "client";
  /** Whether the server continues a trailing assistant message. */
  continues: boolean;
  /** Fields without which the server repeats that message, or begins a new one. */
  continuationFields?: Readonly<Record<string, unknown>>;
  /** Whether the server keeps streams under an ID of the caller, so that a reply outlives the connection. */
  keepsStreams?: boolean;
  /** Fields that request the progress of the prompt in a stream. */
  progressFields?: Readonly<Record<string, unknown>>;
  /** False if a system message is refused: its text is sent with the user's first message. */
  hasSystemMessages?: boolean;
  /** Content types of supported images; empty if images aren't supported. */
  imageTypes: readonly string[];
  /** Whether documents are separate content blocks. */
  documents: boolean;
  tools: boolean;
  /** Other IDs are replaced when they're sent. */
  callIds: CallIdRule;
  /** How the prompt marks what may be cached: not at all, or with `cache_control` in content blocks. */
  cacheMarks: "none" | "cache_control";
  /**
   * Fields of assistant messages that are sent back to the server together with tool calls. All other reasoning isn't
   * sent.
   */
  returnsReasoningWithTools: readonly ReasoningField[];
}

/** Returns samplers that have the same names at the server. */
export function mapToSameNames(...names: string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, name]));
}

/** The samplers of OpenAI's API. */
export const OPENAI_SAMPLERS = mapToSameNames(
  "temperature",
  "top_p",
  "frequency_penalty",
  "presence_penalty",
  "seed",
  "stop",
  "logit_bias",
);

/** Content types of images that hosted models support. */
export const COMMON_IMAGE_TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"] as const;

/** Asks to continue the last message exactly, instead of writing it again (docs/protocols/llm.md). */
export const CONTINUE_LAST_MESSAGE = { continue_final_message: true, add_generation_prompt: false } as const;

/** Asks llama.cpp for the progress of the prompt. */
export const SHOW_PROGRESS = { return_progress: true } as const;

/** Sends `reasoning_effort` unchanged, with the efforts that the server supports. */
export function sendEffort(...efforts: ReasoningEffort[]): ThinkingSwitch {
  return {
    hasSwitch: efforts.includes("none"),
    efforts,
    toFields: (effort) => ({ reasoning_effort: findNearestEffort(effort, efforts) }),
  };
}

/** Sends a variable of the chat template that turns thinking on or off, together with the effort. */
export function sendTemplateSwitch(field: "chat_template_kwargs" | "template_vars"): ThinkingSwitch {
  return {
    hasSwitch: true,
    efforts: ["none", "low", "medium", "high"],
    toFields: (effort) =>
      effort === "none" ? { [field]: { enable_thinking: false } } : {
        [field]: { enable_thinking: true, reasoning_effort: findNearestEffort(effort, ["low", "medium", "high"]) },
      },
  };
}

/** Returns the effort itself if it's supported, otherwise the next higher one, otherwise the highest. */
export function findNearestEffort(effort: ReasoningEffort, known: readonly ReasoningEffort[]): ReasoningEffort {
  if (known.length === 0 || known.includes(effort)) return effort;
  const rank = REASONING_EFFORTS.indexOf(effort);
  return known.find((one) => REASONING_EFFORTS.indexOf(one) >= rank) ?? known.at(-1)!;
}
