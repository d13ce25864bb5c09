/** A preset as used for prompts, with all defaults filled in. */
import { asObject, getOwn, isJsonObject, type JsonObject } from "../json/type_guards.ts";
import { isNeutral } from "./sillytavern.ts";

// The stored form of presets (sampler parameters under API names, prompts and their order in SillyTavern's format), and
// the built-in, read-only preset (docs/protocols/cards.md#prompt-order).

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

/** One prompt. Unknown fields are preserved. */
export interface PresetPrompt {
  /** Name in the prompt order; some names represent parts of the chat. */
  identifier: string;
  name?: string;
  role?: string;
  content?: string;
  /** Has no text, because it represents a part of the chat. */
  marker?: boolean;
  /** 1 inserts it into the history at `injection_depth`. */
  injection_position?: number;
  injection_depth?: number;
  /** Order among prompts of the same depth; 100 by default. */
  injection_order?: number;
  /** Generation types that it applies to; empty for all. */
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
  /** Fields that are added to each chat request, with the server's names. */
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
const COMMON_ORDER = 100001;

/** Parts of the chat that a prompt order refers to by name. */
const MARKERS = {
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

/** Fields of `rest` that prompts use. */
export const USED_FIELDS: readonly string[] = Object.keys(BUILTIN_PRESET.rest);

/** How likely a text is in replies. */
export interface LogitBias {
  /** Text, or a JSON array of token IDs. */
  text: string;
  /** From -100 (never) to 100 (always). */
  value: number;
}

const MAX_BIASES = 1_000;
const MAX_BIAS_CHARS = 10_000;
const MOST_BIAS = 100;

/** Reads `logit_bias` of a preset, or the list that SillyTavern has chosen from those in the same file. */
export function readLogitBias({ logit_bias: own, bias_presets: lists, bias_preset_selected: chosen }: JsonObject) {
  const list = Array.isArray(own) ? own : typeof chosen === "string" ? getOwn(asObject(lists), chosen) : undefined;
  return (Array.isArray(list) ? list : []).slice(0, MAX_BIASES).flatMap((entry): LogitBias[] => {
    const { text, value } = asObject(entry);
    if (typeof text !== "string" || text === "" || text.length > MAX_BIAS_CHARS) return [];
    if (typeof value !== "number") return [];
    return [{ text, value: Math.min(MOST_BIAS, Math.max(-MOST_BIAS, value)) }];
  });
}

/** Parts of the chat that a block can represent. */
export type PromptMarker = keyof typeof MARKERS;

/** Reports whether the name of a prompt stands for a part of the chat. */
export function isPromptMarker(identifier: string): identifier is PromptMarker {
  return Object.hasOwn(MARKERS, identifier);
}

/** One block of a prompt. */
export interface PresetBlock {
  /** `main`, `nsfw` (auxiliary prompt), `jailbreak` (after the history), a custom name, or a marker. */
  identifier: string;
  name: string;
  role: "system" | "user" | "assistant";
  /** With unexpanded macros; empty for a marker. */
  content: string;
  /** The part of the chat that goes here. */
  marker?: PromptMarker;
  /** Number of messages after it, for blocks inserted into the history. */
  depth?: number;
  /** Order among blocks of the same depth. */
  depthOrder: number;
  /** SillyTavern generation types that it applies to; empty for all. */
  triggers: string[];
  /** Cards can't override `main` or `jailbreak`. */
  forbidsOverrides: boolean;
}

/** Texts around the parts of a prompt, with unexpanded macros. */
export interface PresetTexts {
  impersonation: string;
  newChat: string;
  newGroupChat: string;
  newExampleChat: string;
  continueNudge: string;
  groupNudge: string;
  /** `{0}` is the lorebook text. */
  lorebookFormat: string;
  /** `{{scenario}}` is the scenario. */
  scenarioFormat: string;
  /** `{{personality}}` is the personality. */
  personalityFormat: string;
  /** Start of the reply. */
  assistantPrefill: string;
  /** Start of a message written for the user. */
  impersonationPrefill: string;
  /** Sent instead of an empty user message. */
  sendIfEmpty: string;
  /** Separates a reply from its continuation, if an instruction asks for that. */
  continuePostfix: string;
}

/** A preset in use. */
export interface Preset {
  id: string;
  name: string;
  isBuiltin: boolean;
  /** Under API names, without neutral values, `max_tokens` and `context_size`. */
  sampler: Record<string, number>;
  /** Absent for none. */
  logitBias?: LogitBias[];
  /** Fields that are added to each chat request. */
  extraBody?: Record<string, unknown>;
  /** Maximum tokens of the reply, if set. */
  maxTokens?: number;
  /** Maximum tokens of prompt and reply, if set. */
  contextSize?: number;
  /** Enabled blocks in order. Always contains the history. */
  blocks: PresetBlock[];
  texts: PresetTexts;
  /** Merges consecutive system messages. */
  squashesSystemMessages: boolean;
  /** Continues replies by prefill instead of an instruction. */
  continuesByPrefill: boolean;
  /** SillyTavern's number: -1 none, 0 in groups, 1 as field `name` of each message, 2 as its prefix. */
  namesBehavior: number;
  /** Its regex scripts in SillyTavern's form, if it has any. */
  regexScripts?: unknown;
}

const LEGACY_ORDER = 100000;
const DEFAULT_DEPTH = 4;
const DEFAULT_DEPTH_ORDER = 100;
const AT_DEPTH = 1;

/** Reads a preset document. */
export function readPreset(
  { id, name, isBuiltin }: Pick<Preset, "id" | "name" | "isBuiltin">,
  document: PresetDocument,
): Preset {
  const { max_tokens: maxTokens, context_size: contextSize, ...sampler } = document.sampler;
  const { rest, extra_body: extraBody } = document;
  const logitBias = readLogitBias(asObject(rest));
  return {
    id,
    name,
    isBuiltin,
    sampler: dropNeutralValues(sampler),
    ...(logitBias.length > 0 && { logitBias }),
    ...(isJsonObject(extraBody) && Object.keys(extraBody).length > 0 && { extraBody }),
    ...(isCount(maxTokens) && { maxTokens }),
    ...(isCount(contextSize) && { contextSize }),
    blocks: readBlocks(document),
    texts: readTexts(rest),
    squashesSystemMessages: readFlag(rest, "squash_system_messages"),
    continuesByPrefill: readFlag(rest, "continue_prefill"),
    namesBehavior: typeof rest.names_behavior === "number" ? rest.names_behavior : 0,
    ...(isJsonObject(rest.extensions) && { regexScripts: rest.extensions.regex_scripts }),
  };
}

/** Defaults to the built-in preset. */
function readFlag(rest: Record<string, unknown>, field: string): boolean {
  return typeof rest[field] === "boolean" ? rest[field] : BUILTIN_PRESET.rest[field] === true;
}

function dropNeutralValues(sampler: Sampler): Record<string, number> {
  return Object.fromEntries(
    Object.entries(sampler).filter((entry): entry is [string, number] =>
      typeof entry[1] === "number" && !isNeutral(entry[0], entry[1])
    ),
  );
}

function isCount(value: number | undefined): value is number {
  return value !== undefined && Number.isInteger(value) && value > 0;
}

/** A preset without prompts uses the built-in ones. */
function readBlocks(document: PresetDocument): PresetBlock[] {
  const isOwn = document.prompts.length > 0;
  const { prompts, prompt_order } = isOwn ? document : BUILTIN_PRESET;
  const known = new Map([...BUILTIN_PRESET.prompts, ...prompts].map((prompt) => [prompt.identifier, prompt]));
  const order = chooseOrder(prompt_order) ?? chooseOrder(BUILTIN_PRESET.prompt_order)!;
  const seen = new Set<string>();
  const blocks = order.flatMap(({ identifier, enabled }) => {
    const prompt = known.get(identifier);
    // A chat needs its history, so it's enabled in any case.
    if (prompt === undefined || seen.has(identifier) || (!enabled && identifier !== "chatHistory")) return [];
    seen.add(identifier);
    return [toBlock(prompt)];
  });
  if (seen.has("chatHistory")) return blocks;
  const after = blocks.findIndex(({ identifier }) => identifier === "jailbreak");
  return blocks.toSpliced(after < 0 ? blocks.length : after, 0, toBlock(known.get("chatHistory")!));
}

function chooseOrder(
  orders: PresetDocument["prompt_order"],
): PresetDocument["prompt_order"][number]["order"] | undefined {
  const byNumber = (number: number) => orders.find(({ character_id }) => Number(character_id) === number);
  return (byNumber(COMMON_ORDER) ?? byNumber(LEGACY_ORDER) ?? orders[0])?.order;
}

function toBlock(prompt: PresetPrompt): PresetBlock {
  const { identifier, role, content } = prompt;
  const marker = isPromptMarker(identifier) ? identifier : undefined;
  const depth = typeof prompt.injection_depth === "number" ? prompt.injection_depth : DEFAULT_DEPTH;
  return {
    identifier,
    name: typeof prompt.name === "string" && prompt.name !== "" ? prompt.name : identifier,
    role: role === "user" || role === "assistant" ? role : "system",
    content: marker === undefined && typeof content === "string" ? content : "",
    ...(marker !== undefined && { marker }),
    ...(prompt.injection_position === AT_DEPTH && marker === undefined && { depth: Math.max(0, Math.floor(depth)) }),
    depthOrder: typeof prompt.injection_order === "number" ? prompt.injection_order : DEFAULT_DEPTH_ORDER,
    triggers: Array.isArray(prompt.injection_trigger)
      ? prompt.injection_trigger.filter((trigger) => typeof trigger === "string")
      : [],
    forbidsOverrides: prompt.forbid_overrides === true,
  };
}

function readTexts(rest: Record<string, unknown>): PresetTexts {
  const toText = (field: string): string => {
    const own = isJsonObject(rest) ? rest[field] : undefined;
    return typeof own === "string" ? own : String(BUILTIN_PRESET.rest[field] ?? "");
  };
  return {
    impersonation: toText("impersonation_prompt"),
    newChat: toText("new_chat_prompt"),
    newGroupChat: toText("new_group_chat_prompt"),
    newExampleChat: toText("new_example_chat_prompt"),
    continueNudge: toText("continue_nudge_prompt"),
    groupNudge: toText("group_nudge_prompt"),
    lorebookFormat: toText("wi_format"),
    scenarioFormat: toText("scenario_format"),
    personalityFormat: toText("personality_format"),
    assistantPrefill: toText("assistant_prefill"),
    impersonationPrefill: toText("assistant_impersonation"),
    sendIfEmpty: toText("send_if_empty"),
    continuePostfix: toText("continue_postfix"),
  };
}
