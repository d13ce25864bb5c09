/** A preset as the assembly of prompts uses it: every field read, every default filled in. */
import { isJsonObject } from "../json/type_guards.ts";
import { BUILTIN_PRESET, COMMON_ORDER, MARKERS } from "./builtin_preset.ts";
import type { PresetDocument, PresetPrompt, Sampler } from "./preset_document.ts";
import { isNeutral } from "./sillytavern.ts";

/** Parts of the chat that a block can stand for. */
export type PromptMarker = keyof typeof MARKERS;

/** One block of a prompt, in its place. */
export interface PromptBlock {
  /** `main`, `nsfw` (the auxiliary prompt), `jailbreak` (after the history), a name of the owner's, or a marker. */
  identifier: string;
  name: string;
  role: "system" | "user" | "assistant";
  /** With macros as they were written; empty for a marker. */
  content: string;
  /** The part of the chat that goes here. */
  marker?: PromptMarker;
  /** Messages that stand behind it; absent for a block that stands where the order has it. */
  depth?: number;
  /** Among blocks of one depth. */
  depthOrder: number;
  /** Kinds of generation it is for, in SillyTavern's words; empty for all. */
  triggers: string[];
  /** A card's own prompt does not take the place of `main` or `jailbreak`. */
  forbidsOverrides: boolean;
}

/** Sentences around the parts of a prompt, with macros as they were written. */
export interface PresetTexts {
  impersonation: string;
  newChat: string;
  newGroupChat: string;
  newExampleChat: string;
  continueNudge: string;
  groupNudge: string;
  /** `{0}` is what the lorebooks say. */
  lorebookFormat: string;
  /** `{{scenario}}` is the scenario. */
  scenarioFormat: string;
  /** `{{personality}}` is the personality. */
  personalityFormat: string;
  /** Begin of the answer. */
  assistantPrefill: string;
  /** Begin of a message written for the user. */
  impersonationPrefill: string;
  /** Sent as the user's turn where it is empty. */
  sendIfEmpty: string;
  /** Set between an answer and its continuation, where a sentence asks for that. */
  continuePostfix: string;
}

/** A preset that is in use. */
export interface Preset {
  id: string;
  name: string;
  isBuiltin: boolean;
  /** By the names of a chat request; only what changes something. Without `max_tokens` and `context_size`. */
  sampler: Record<string, number>;
  /** Tokens of the answer, where the preset says. */
  maxTokens?: number;
  /** Tokens of prompt and answer together, where the preset says. */
  contextSize?: number;
  /** Enabled blocks in order. The history is always among them. */
  blocks: PromptBlock[];
  texts: PresetTexts;
  /** System messages that follow one another become one. */
  squashesSystemMessages: boolean;
  /** A continuation is asked for by a prefill, not by a sentence. */
  continuesByPrefill: boolean;
  /** SillyTavern's number: -1 none, 0 as needed in groups, 1 by the field `name`, 2 before each text. */
  namesBehavior: number;
}

const LEGACY_ORDER = 100000;
const DEFAULT_DEPTH = 4;
const DEFAULT_DEPTH_ORDER = 100;
const AT_DEPTH = 1;

/** Reads a preset's document. */
export function presetFrom(
  { id, name, isBuiltin }: Pick<Preset, "id" | "name" | "isBuiltin">,
  document: PresetDocument,
): Preset {
  const { max_tokens: maxTokens, context_size: contextSize, ...sampler } = document.sampler;
  const { rest } = document;
  return {
    ...{ id, name, isBuiltin },
    sampler: effective(sampler),
    ...(isCount(maxTokens) && { maxTokens }),
    ...(isCount(contextSize) && { contextSize }),
    blocks: blocksOf(document),
    texts: textsOf(rest),
    squashesSystemMessages: flagIn(rest, "squash_system_messages"),
    continuesByPrefill: flagIn(rest, "continue_prefill"),
    namesBehavior: typeof rest.names_behavior === "number" ? rest.names_behavior : 0,
  };
}

/** A preset that says nothing of it does as the built-in one. */
function flagIn(rest: Record<string, unknown>, field: string): boolean {
  return typeof rest[field] === "boolean" ? rest[field] : BUILTIN_PRESET.rest[field] === true;
}

function effective(sampler: Sampler): Record<string, number> {
  return Object.fromEntries(
    Object.entries(sampler).filter((entry): entry is [string, number] =>
      typeof entry[1] === "number" && !isNeutral(entry[0], entry[1])
    ),
  );
}

function isCount(value: number | undefined): value is number {
  return value !== undefined && Number.isInteger(value) && value > 0;
}

/** A preset of samplers alone leaves the prompts as they come. */
function blocksOf(document: PresetDocument): PromptBlock[] {
  const isOwn = document.prompts.length > 0;
  const { prompts, prompt_order } = isOwn ? document : BUILTIN_PRESET;
  const known = new Map([...BUILTIN_PRESET.prompts, ...prompts].map((prompt) => [prompt.identifier, prompt]));
  const order = chosenOrder(prompt_order) ?? chosenOrder(BUILTIN_PRESET.prompt_order)!;
  const seen = new Set<string>();
  const blocks = order.flatMap(({ identifier, enabled }) => {
    const prompt = known.get(identifier);
    // A chat without its history is none, so that is on whatever the order says.
    if (prompt === undefined || seen.has(identifier) || (!enabled && identifier !== "chatHistory")) return [];
    seen.add(identifier);
    return [blockFrom(prompt)];
  });
  if (seen.has("chatHistory")) return blocks;
  const after = blocks.findIndex(({ identifier }) => identifier === "jailbreak");
  return blocks.toSpliced(after < 0 ? blocks.length : after, 0, blockFrom(known.get("chatHistory")!));
}

function chosenOrder(
  orders: PresetDocument["prompt_order"],
): PresetDocument["prompt_order"][number]["order"] | undefined {
  const byNumber = (number: number) => orders.find(({ character_id }) => Number(character_id) === number);
  return (byNumber(COMMON_ORDER) ?? byNumber(LEGACY_ORDER) ?? orders[0])?.order;
}

function blockFrom(prompt: PresetPrompt): PromptBlock {
  const { identifier, role, content } = prompt;
  const marker = Object.hasOwn(MARKERS, identifier) ? identifier as PromptMarker : undefined;
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

function textsOf(rest: Record<string, unknown>): PresetTexts {
  const text = (field: string): string => {
    const own = isJsonObject(rest) ? rest[field] : undefined;
    return typeof own === "string" ? own : String(BUILTIN_PRESET.rest[field] ?? "");
  };
  return {
    impersonation: text("impersonation_prompt"),
    newChat: text("new_chat_prompt"),
    newGroupChat: text("new_group_chat_prompt"),
    newExampleChat: text("new_example_chat_prompt"),
    continueNudge: text("continue_nudge_prompt"),
    groupNudge: text("group_nudge_prompt"),
    lorebookFormat: text("wi_format"),
    scenarioFormat: text("scenario_format"),
    personalityFormat: text("personality_format"),
    assistantPrefill: text("assistant_prefill"),
    impersonationPrefill: text("assistant_impersonation"),
    sendIfEmpty: text("send_if_empty"),
    continuePostfix: text("continue_postfix"),
  };
}
