/**
 * The stored form of presets (sampler parameters under API names, prompts and their order in SillyTavern's format), and
 * the built-in, read-only preset (docs/protocols/cards.md#prompt-order).
 */

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
  /** Fields that are added to each chat request, as the server calls them. */
  extra_body?: Record<string, unknown>;
  /** Format of the imported file. */
  dialect: PresetDialect;
}

/** SillyTavern's preset formats: chat completion, and text completion (sampler only). */
export type PresetDialect = "chat_completion" | "text_completion";

/** Id of the built-in preset. */
export const BUILTIN_PRESET_ID = "default";
/** Name of the built-in preset. */
export const BUILTIN_PRESET_NAME = "Parlor";
/** SillyTavern's number for the prompt order of all characters. */
export const COMMON_ORDER = 100001;

/** Parts of the chat that a prompt order refers to by name. */
export const MARKERS = {
  worldInfoBefore: "Lorebooks, before the character",
  personaDescription: "Persona",
  charDescription: "Character",
  charPersonality: "Personality",
  scenario: "Scenario",
  worldInfoAfter: "Lorebooks, after the character",
  dialogueExamples: "Example dialogue",
  chatHistory: "History",
} as const;

const MAIN =
  "This is a conversation between {{char}} and {{user}}. Write what {{char}} says and does next, true to who " +
  "{{char}} is, and leave {{user}}'s words and actions to {{user}}.";

const PROMPTS: PresetPrompt[] = [
  { identifier: "main", name: "Main prompt", role: "system", content: MAIN, system_prompt: true },
  { identifier: "nsfw", name: "Auxiliary prompt", role: "system", content: "", system_prompt: true },
  { identifier: "jailbreak", name: "After the history", role: "system", content: "", system_prompt: true },
  ...Object.entries(MARKERS).map(([identifier, name]): PresetPrompt => ({
    identifier,
    name,
    system_prompt: true,
    marker: true,
  })),
];

const ORDER = [
  ...["main", "worldInfoBefore", "personaDescription", "charDescription", "charPersonality", "scenario", "nsfw"],
  ...["worldInfoAfter", "dialogueExamples", "chatHistory", "jailbreak"],
];

/** The built-in preset. Its sampler is the server's default. */
export const BUILTIN_PRESET: Readonly<PresetDocument> = Object.freeze({
  sampler: {},
  prompts: PROMPTS,
  prompt_order: [{
    character_id: COMMON_ORDER,
    order: ORDER.map((identifier) => ({ identifier, enabled: true })),
  }],
  rest: {
    impersonation_prompt:
      "[Write {{user}}'s next message as {{user}} would, from what {{user}} has said so far. Leave " +
      "{{char}}'s words and actions to {{char}}.]",
    new_chat_prompt: "[A new chat begins]",
    new_group_chat_prompt: "[A new chat begins between {{group}} and {{user}}]",
    new_example_chat_prompt: "[An example of how they talk]",
    continue_nudge_prompt: "[Go on with the last message from where it stops, without repeating any of it]",
    group_nudge_prompt: "[Write {{char}}'s next message, and nobody else's]",
    wi_format: "{0}",
    scenario_format: "[The scene: {{scenario}}]",
    personality_format: "[{{char}}'s personality: {{personality}}]",
    assistant_prefill: "",
    assistant_impersonation: "",
    send_if_empty: "",
    squash_system_messages: false,
    // Separates the reply from what the model appends.
    continue_prefill: true,
    continue_postfix: " ",
    names_behavior: 0,
  },
  dialect: "chat_completion",
});
