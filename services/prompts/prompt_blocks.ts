/** The blocks of a prompt besides the history, and their order, which is taken from a preset. */
import type { ActivationReason } from "../lorebooks/activation.ts";
import { BUILTIN_PRESET, type Preset, type PresetBlock } from "../presets/preset.ts";
import type { PromptPreset } from "./prompt_context.ts";

/** What a block contains. */
export type BlockPart =
  | "main"
  | "persona"
  | "description"
  | "personality"
  | "scenario"
  | "lorebook"
  | "examples"
  | "preset"
  | "summary"
  | "memory"
  | "pinned"
  | "tools"
  | "documents"
  | "chat_begins"
  | "character_note"
  | "note"
  | "instructions"
  | "speaker"
  | "continue"
  | "impersonate"
  | "prefill";

/** The lorebook entry that a block comes from. */
export interface LoreSource {
  book: string;
  bookName: string;
  entry: string;
  /** Display name of the entry. */
  title: string;
  /** Why the entry is active. */
  reason: ActivationReason;
}

/** Formats the display name of an entry for reports about a prompt. */
export function formatLoreName(bookName: string, entryName: string): string {
  return bookName === "" ? entryName : `${bookName}: ${entryName}`;
}

/** One block. */
export interface PromptBlock {
  part: BlockPart;
  role: string;
  /** Never empty. */
  text: string;
  /** Display name: the name of a preset prompt or lorebook entry. */
  title?: string;
  lore?: LoreSource;
  /** True for blocks that are dropped first if the context is full. */
  isDroppedFirst?: boolean;
  /** Id of the pinned message that it quotes: not sent if that is in the history. */
  pinnedId?: string;
  /** True for a summary: only sent if the messages it covers are dropped. */
  replacesHistory?: boolean;
}

/** A block inserted into the history. */
export interface BlockAtDepth extends PromptBlock {
  /** Number of messages after it. */
  depth: number;
  /** Order among blocks of the same depth and role, lowest first. */
  order: number;
}

/** All blocks of a prompt, in order. */
export interface PromptBlocks {
  /** Before the history. */
  leading: PromptBlock[];
  inserted: BlockAtDepth[];
  /** After the history. */
  trailing: PromptBlock[];
  /** Start of the reply. */
  prefill?: PromptBlock;
}

/** A prompt without blocks. */
export const NO_BLOCKS: PromptBlocks = { leading: [], inserted: [], trailing: [] };

/** One block of the order. */
export interface LayoutItem {
  /** A name used by presets (`main`, `charDescription`, `chatHistory`, …) or a custom name. */
  identifier: string;
  name?: string;
  role: "system" | "user" | "assistant";
  /** Text of a block that isn't filled from card, persona or lorebooks. */
  content?: string;
  /** Number of messages after it, for blocks inserted into the history. */
  depth?: number;
  /** Order among blocks of the same depth. */
  order?: number;
  /** True if a card can't override this block. */
  forbidsOverrides?: boolean;
  /** True for blocks that are omitted without a character. */
  needsCharacter?: boolean;
}

/** Texts around the blocks. `{{…}}` are macros; `{0}` is the wrapped text. */
export interface LayoutFormats {
  personality: string;
  scenario: string;
  lore: string;
  chatBegins: string;
  groupChatBegins: string;
  exampleBegins: string;
  groupNudge: string;
  impersonation: string;
  /** Sent in place of an empty user message. */
  emptyUserMessage: string;
}

/** Order and texts. */
export interface PromptLayout {
  /** Enabled blocks in order. */
  items: LayoutItem[];
  formats: LayoutFormats;
  /** Start of every reply. */
  prefill?: string;
  /**
   * Instruction that asks for a continuation, and the separator between the reply and its continuation. Without it, the
   * reply itself is sent last as prefill.
   */
  continuation?: { nudge: string; separator: string };
  /** Merges consecutive system messages into one. */
  squashesSystem?: boolean;
  /** When messages are prefixed with the speaker's name. */
  names: "group" | "always" | "never";
}

const DEFAULT_NUDGE = String(BUILTIN_PRESET.rest.continue_nudge_prompt);

/** SillyTavern's numbers. Value 1 (the `name` field) is missing: many servers refuse that field. */
const NAMES: Record<number, PromptLayout["names"]> = { [-1]: "never", 2: "always" };

/**
 * Converts a preset for one kind of generation.
 *
 * @param generation SillyTavern's generation type: `normal`, …
 * @param options.continuesPrefill False for a server that doesn't continue a trailing reply: it gets the instruction instead.
 * @param options.refusesPrefill The model refuses a trailing reply.
 */
export function toPromptPreset(
  preset: Preset,
  generation: string,
  { continuesPrefill = true, refusesPrefill = false }: { continuesPrefill?: boolean; refusesPrefill?: boolean } = {},
): PromptPreset {
  const { id, name, blocks, texts, sampler, extraBody, maxTokens, contextSize, isBuiltin } = preset;
  const needsNudge = !continuesPrefill || refusesPrefill;
  const isPrefilled = preset.continuesByPrefill && !needsNudge;
  const nudge = texts.continueNudge.trim() === "" && needsNudge ? DEFAULT_NUDGE : texts.continueNudge;
  const prefill = generation === "impersonate" ? texts.impersonationPrefill : texts.assistantPrefill;
  return {
    id,
    name,
    contextSize,
    params: { ...sampler, ...(maxTokens !== undefined && { max_tokens: maxTokens }) },
    ...(extraBody && { extraBody }),
    layout: {
      items: blocks.filter(({ triggers }) => triggers.length === 0 || triggers.includes(generation))
        .map((block) => toLayoutItem(block, isBuiltin)),
      formats: {
        personality: texts.personalityFormat,
        scenario: texts.scenarioFormat,
        lore: texts.lorebookFormat || "{0}",
        chatBegins: texts.newChat,
        groupChatBegins: texts.newGroupChat,
        exampleBegins: texts.newExampleChat,
        groupNudge: texts.groupNudge,
        impersonation: texts.impersonation,
        emptyUserMessage: texts.sendIfEmpty,
      },
      prefill: refusesPrefill ? undefined : prefill,
      ...(!isPrefilled && nudge.trim() !== "" && { continuation: { nudge, separator: texts.continuePostfix } }),
      squashesSystem: preset.squashesSystemMessages,
      names: NAMES[preset.namesBehavior] ?? "group",
    },
  };
}

function toLayoutItem(
  { identifier, name, role, content, marker, depth, depthOrder, forbidsOverrides }: PresetBlock,
  isBuiltin: boolean,
): LayoutItem {
  return {
    identifier,
    name,
    role,
    forbidsOverrides: forbidsOverrides,
    ...(marker === undefined && { content }),
    ...(depth !== undefined && { depth, order: depthOrder }),
    // The default prompt mentions `{{char}}`, so it's omitted without a character.
    ...(isBuiltin && marker === undefined && { needsCharacter: true }),
  };
}

/** Reports whether a block is dropped first if the context is full. */
export function isOptional({ part, isDroppedFirst }: PromptBlock): boolean {
  return part === "examples" || isDroppedFirst === true;
}

/** Reports whether a block is sent only in place of dropped messages. */
export function replacesHistory(block: PromptBlock): boolean {
  return block.replacesHistory === true;
}
