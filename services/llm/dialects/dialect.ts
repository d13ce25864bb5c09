/** What is different between model servers that speak the same protocol (docs/protocols/llm.md, "Dialects"). */

/** Every dialect. `generic` is a server that says nothing of itself. */
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

/** Name of a dialect, as the API shows it. */
export type DialectName = (typeof DIALECT_NAMES)[number];

/** How much a model thinks before it answers. `none` switches thinking off. */
export const REASONING_EFFORTS = ["none", "minimal", "low", "medium", "high"] as const;

/** One of the efforts. */
export type ReasoningEffort = (typeof REASONING_EFFORTS)[number];

/** Name of the field that limits the length of a reply. */
export type OutputLimitName = "max_tokens" | "max_completion_tokens" | "num_predict";

/** Fields of a message that hold reasoning. */
export const REASONING_FIELDS = ["reasoning_content", "reasoning", "reasoning_details"] as const;

/** One of the fields. */
export type ReasoningField = (typeof REASONING_FIELDS)[number];

/** How thinking is switched. */
export interface ThinkingSwitch {
  /** Thinking can be switched off. */
  hasSwitch: boolean;
  /** The efforts that make a difference, in order. */
  efforts: readonly ReasoningEffort[];
  /** Tokens that an effort lets the model think with, where the server takes a number. */
  budgets?: Readonly<Partial<Record<ReasoningEffort, number>>>;
  /** Returns the fields of the request that ask for an effort; an empty object if the server has no such field. */
  toFields(effort: ReasoningEffort): Record<string, unknown>;
}

/** The facts of one kind of server. */
export interface Dialect {
  name: DialectName;
  /** Product name for people: `"llama.cpp"`, `"OpenAI"`. */
  title: string;
  outputLimit: OutputLimitName;
  /** The server stops after a few hundred tokens, or refuses the request, if it gets no limit. */
  needsOutputLimit: boolean;
  /**
   * The samplers that the server documents, under our names, with the server's names. A sampler that isn't listed is sent
   * under our name: models differ, and a refusal is learned.
   */
  samplers: Readonly<Record<string, string>>;
  thinking: ThinkingSwitch;
  /** The server reports usage at the end of a stream only if `stream_options` asks for it. */
  asksForUsage: boolean;
  /** Header that carries the key. */
  keyHeader: "authorization" | "api-key" | "x-api-key";
  /** Who shortens a conversation that is longer than the context: the server silently, or nobody but us. */
  trimsContext: "server" | "client";
  /** A trailing assistant message is continued. */
  continues: boolean;
  /** Content types of images that the server reads; empty if it reads none. */
  imageTypes: readonly string[];
  /** Documents are content blocks of their own. */
  documents: boolean;
  tools: boolean;
  /** Where the prompt says what may be cached: nowhere, or as `cache_control` of content blocks. */
  cacheMarks: "none" | "cache_control";
  /** Fields of assistant messages that go back to the server in turns that call tools. All other reasoning stays here. */
  returnsReasoningWithTools: readonly ReasoningField[];
}

/** Lists samplers that the server knows under our names. */
export function sameNames(...names: string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, name]));
}

/** The samplers of OpenAI's API. */
export const OPENAI_SAMPLERS = sameNames(
  "temperature",
  "top_p",
  "frequency_penalty",
  "presence_penalty",
  "seed",
  "stop",
  "logit_bias",
);

/** Images that hosted models read. */
export const COMMON_IMAGE_TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"] as const;

/** `reasoning_effort` as it is, with the efforts that the server knows. */
export function sendEffort(...efforts: ReasoningEffort[]): ThinkingSwitch {
  return {
    hasSwitch: efforts.includes("none"),
    efforts,
    toFields: (effort) => ({ reasoning_effort: nearestEffort(effort, efforts) }),
  };
}

/** A variable of the chat template that switches thinking, with the effort beside it. */
export function sendTemplateSwitch(field: "chat_template_kwargs" | "template_vars"): ThinkingSwitch {
  return {
    hasSwitch: true,
    efforts: ["none", "low", "medium", "high"],
    toFields: (effort) =>
      effort === "none"
        ? { [field]: { enable_thinking: false } }
        : { [field]: { enable_thinking: true, reasoning_effort: nearestEffort(effort, ["low", "medium", "high"]) } },
  };
}

/** Returns the effort itself if it is known, otherwise the next higher one, otherwise the highest. */
export function nearestEffort(effort: ReasoningEffort, known: readonly ReasoningEffort[]): ReasoningEffort {
  if (known.length === 0 || known.includes(effort)) return effort;
  const rank = REASONING_EFFORTS.indexOf(effort);
  return known.find((one) => REASONING_EFFORTS.indexOf(one) >= rank) ?? known.at(-1)!;
}
