/** The stored form of presets: sampler parameters under API names, prompts and their order in SillyTavern's format. */

/** Sampler parameters under API names. Absent ones aren't sent. */
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
  /** Maximum tokens of the reply. */
  max_tokens?: number;
  /** Maximum tokens of prompt and reply. */
  context_size?: number;
  /** Negative for a random seed. */
  seed?: number;
  [name: string]: number | undefined;
}

/** One prompt. Unknown fields are kept. */
export interface PresetPrompt {
  /** Name in the prompt order; some names stand for parts of the chat. */
  identifier: string;
  name?: string;
  role?: string;
  content?: string;
  /** Has no text: it stands for a part of the chat. */
  marker?: boolean;
  /** 1 inserts it into the history at `injection_depth`. */
  injection_position?: number;
  injection_depth?: number;
  /** Order among prompts of the same depth; 100 by default. */
  injection_order?: number;
  /** Generation types it applies to; empty for all. */
  injection_trigger?: string[];
  /** Cards can't override it. */
  forbid_overrides?: boolean;
  [field: string]: unknown;
}

/** One prompt order. SillyTavern stores several by number. */
export interface PresetOrder {
  character_id?: number | string;
  order: { identifier: string; enabled: boolean; [field: string]: unknown }[];
  [field: string]: unknown;
}

/** A preset document. */
export interface PresetDocument {
  sampler: Sampler;
  prompts: PresetPrompt[];
  prompt_order: PresetOrder[];
  /** All other fields of the imported file, under their original names. */
  rest: Record<string, unknown>;
  /** Format of the imported file. */
  dialect: PresetDialect;
}

/** SillyTavern's preset formats: chat completion, and text completion (sampler only). */
export type PresetDialect = "chat_completion" | "text_completion";
