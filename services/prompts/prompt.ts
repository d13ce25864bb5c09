/** The input of a prompt (the history, the other blocks and their order, which is from a preset) and its result. */
import type { DocumentUse } from "../documents/document.ts";
import type { ChatMessage } from "../llm/chat_event.ts";
import type { ActivationReason, ActivationState } from "../lorebooks/activation.ts";
import type { MemoryChoice } from "../memories/memory.ts";
import type { DroppedLore } from "./compose_context.ts";
import type { SentDocument } from "./document_choice.ts";
import type { NotExpanded } from "./macros/macro_budget.ts";
import type { Counted, PromptEntry } from "./prompt_messages.ts";
import type { ContextSize } from "../llm/context_sizes.ts";
import type { CountedModel } from "./token_counter.ts";
import { BUILTIN_PRESET, type Preset, type PresetBlock } from "../presets/preset.ts";
import type { PromptPreset } from "./prompt_context.ts";

/** One message of the history. */
export interface PromptMessage {
  /** `undefined` for a message that isn't stored. */
  id?: string;
  message: ChatMessage;
  /** Who wrote it, if that isn't the persona or the character that replies. */
  speaker?: string;
  /** Creation time in milliseconds since 1970. */
  atMs?: number;
  /** Lorebook state after this message. */
  loreState?: ActivationState;
  /** The oldest message that was sent for this one, if the history was trimmed. */
  firstSentId?: string;
  /** Documents of this message. */
  documents?: readonly DocumentUse[];
  /** How regex scripts change it; absent for a message that they don't change. */
  scripted?: ScriptedMessage;
}

/** A message that regex scripts may change. */
export interface ScriptedMessage {
  placement: "user_input" | "ai_output";
  /** Its texts as stored. */
  texts: readonly string[];
  /** Returns the message with other texts. */
  toMessage(texts: readonly string[]): ChatMessage;
}

/** The part of the history that composition can see. */
export interface HistoryWindow {
  /** Newest first, slightly more than fits the context. */
  messages: readonly PromptMessage[];
  /** Tokens available for all messages. */
  budget: number;
  /** Tokens of messages and reply together. */
  contextTokens: number;
  /** Estimates the tokens of a text. */
  countTokens(text: string): number;
  model: string;
  /** False for previews, which leave all state unchanged. */
  updatesState: boolean;
  /** True if the history has just been trimmed: entries of lorebooks that were only kept are dropped. */
  releasesLore?: boolean;
}

/** The blocks of a prompt, and what was dropped. */
export interface ComposedPrompt {
  blocks: PromptBlocks;
  droppedLore?: DroppedLore[];
  /** See `PromptLayout`. */
  squashesSystem?: boolean;
  /** Stored with the reply; see compose_context.ts. */
  loreState?: ActivationState;
  /** Whether entries of lorebooks are only kept until the history is trimmed. */
  keepsLore?: boolean;
  /** Fields whose macros exceed the budget. */
  notExpanded?: NotExpanded[];
  /** The notes in the blocks. */
  memories?: MemoryChoice;
}

/** A message that stays in the prompt when the history is trimmed. */
export interface PinnedMessage {
  id: string;
  /** Who wrote it. */
  name: string;
  text: string;
}

/** What to send. */
export interface PromptSource {
  /** Identifies the trim point. */
  conversationId: string;
  /** Composes the blocks; absent for a prompt without blocks. */
  compose?(seen: HistoryWindow, signal: AbortSignal): Promise<ComposedPrompt>;
  /** Runs regex scripts on the messages that were read, newest first. */
  runScripts?(messages: readonly PromptMessage[]): Promise<PromptMessage[]>;
  /** Newest first, without hidden messages. Only read as far as the context reaches. */
  history: Iterable<PromptMessage>;
  /** True if the newest message is the start of the reply. */
  continuesLast?: boolean;
  /** Documents of the character, the persona or the conversation. Those of messages are in the history. */
  documents?: readonly DocumentUse[];
  /** Pinned messages, oldest first. Quoted before the history if they don't fit into it. */
  pinned?: readonly PinnedMessage[];
  /** True if earlier messages than those that fit may have documents, so that they must be searched. */
  hasEarlierDocuments?: boolean;
}

/** Messages assembled by a client, and documents. */
export interface ClientPromptSource {
  /** Oldest first, each with an id. */
  history: readonly PromptMessage[];
  /** Documents of the conversation. */
  documents: readonly DocumentUse[];
}

/** Token limits of a prompt. */
export interface PromptLimits extends CountedModel {
  /** Maximum tokens of the reply; by default the value sent for requests without one. */
  replyTokens?: number;
  /** Maximum tokens of prompt and reply, if lower than the model's context. */
  contextTokens?: number;
  /** Number of tokens of tool definitions, which are sent with the prompt. */
  toolTokens?: number;
  /** Counts all messages with the server's tokenizer, even if an estimate shows that they fit. */
  isExact?: boolean;
}

/** A prompt and its token counts. */
export interface Prompt {
  messages: ChatMessage[];
  /** Describes each of `messages`. */
  parts: PromptEntry[];
  tokens: number;
  /** True if the server's tokenizer counted. */
  isExact: boolean;
  contextSize: ContextSize;
  /** Tokens reserved for the reply: its maximum, but at most half of the context. */
  replyTokens: number;
  /** Tokens available for messages. */
  budget: number;
  /** Tokens that prompt and reply need together, with a reserve for the error of an estimate. */
  neededTokens: number;
  /** True if older messages were dropped. */
  isTrimmed: boolean;
  /** Blocks that didn't fit or weren't needed. */
  leftOut: Counted[];
  droppedLore: DroppedLore[];
  loreState?: ActivationState;
  /** Fields sent as written, because their macros exceed the budget. */
  notExpanded: NotExpanded[];
  /** The sent part of each document. */
  documents: SentDocument[];
  /** The owner's notes that are sent, and those that exceed their budget. */
  memories: MemoryChoice;
}

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
  /** Order among blocks of the same depth, lowest first. Those with the same order and role stay as listed. */
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
  /** Sent instead of an empty user message. */
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
  /** When messages are prefixed with the speaker's name, or whether they have it as a field. */
  names: "group" | "always" | "never" | "field";
}

const DEFAULT_NUDGE = String(BUILTIN_PRESET.rest.continue_nudge_prompt);

/** SillyTavern's numbers. */
const NAMES: Record<number, PromptLayout["names"]> = { [-1]: "never", 1: "field", 2: "always" };

/**
 * Converts a preset for one kind of generation.
 *
 * @param generation SillyTavern's generation type: `normal`, …
 * @param options.continuesPrefill False for a server that doesn't continue a trailing reply: it gets the instruction
 *   instead.
 * @param options.refusesPrefill True if the model rejects a trailing reply.
 */
export function toPromptPreset(
  preset: Preset,
  generation: string,
  { continuesPrefill = true, refusesPrefill = false }: { continuesPrefill?: boolean; refusesPrefill?: boolean } = {},
): PromptPreset {
  const { id, name, blocks, texts, sampler, logitBias, extraBody, maxTokens, contextSize, isBuiltin } = preset;
  const needsNudge = !continuesPrefill || refusesPrefill;
  const isPrefilled = preset.continuesByPrefill && !needsNudge;
  const nudge = texts.continueNudge.trim() === "" && needsNudge ? DEFAULT_NUDGE : texts.continueNudge;
  const prefill = generation === "impersonate" ? texts.impersonationPrefill : texts.assistantPrefill;
  return {
    id,
    name,
    contextSize,
    params: {
      ...sampler,
      ...(logitBias && { logit_bias: logitBias }),
      ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    },
    ...(extraBody && { extraBody }),
    layout: {
      items: blocks.filter(({ triggers }) => triggers.length === 0 || triggers.includes(generation))
        .map((block) => toLayoutItem(block, isBuiltin)),
      formats: {
        personality: texts.personalityFormat,
        scenario: texts.scenarioFormat,
        lore: texts.lorebookFormat,
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
