/** A preset as Parlor keeps it: samplers under the names requests have, prompts and their order as SillyTavern writes them. */

/** Samplers, lengths and seed, by the names that a chat request uses. What is absent is not sent. */
export interface Sampler {
  temperature?: number;
  top_p?: number;
  top_k?: number;
  top_a?: number;
  min_p?: number;
  typical_p?: number;
  frequency_penalty?: number;
  presence_penalty?: number;
  repetition_penalty?: number;
  /** Tokens of the answer. */
  max_tokens?: number;
  /** Tokens that prompt and answer may take together. */
  context_size?: number;
  /** Below zero: another one each time. */
  seed?: number;
  [name: string]: number | undefined;
}

/** One prompt; fields that SillyTavern or another program adds are kept. */
export interface PresetPrompt {
  /** Names it in the order; some names stand for parts of the chat. */
  identifier: string;
  name?: string;
  role?: string;
  content?: string;
  /** It has no text of its own: the part of the chat goes there. */
  marker?: boolean;
  /** 1: among the messages, at `injection_depth`. */
  injection_position?: number;
  injection_depth?: number;
  /** Among those of one depth; 100 unless said. */
  injection_order?: number;
  /** Kinds of generation it is for; empty for all. */
  injection_trigger?: string[];
  /** A card's own prompt does not take its place. */
  forbid_overrides?: boolean;
  [field: string]: unknown;
}

/** One order of prompts; SillyTavern keeps several by a number. */
export interface PresetOrder {
  character_id?: number | string;
  order: { identifier: string; enabled: boolean; [field: string]: unknown }[];
  [field: string]: unknown;
}

/** A whole preset. */
export interface PresetDocument {
  sampler: Sampler;
  prompts: PresetPrompt[];
  prompt_order: PresetOrder[];
  /** Everything else of the file it came from, by the file's own names. */
  rest: Record<string, unknown>;
  /** Whose names the samplers of the file had. */
  dialect: PresetDialect;
}

/** Kinds of SillyTavern's preset files: for chat completion, and for text completion (samplers alone). */
export type PresetDialect = "chat_completion" | "text_completion";
