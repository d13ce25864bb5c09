/** What a prompt is made of, and what it consists of when it's done. */
import type { DocumentUse } from "../documents/document.ts";
import type { ChatMessage } from "../llm/chat_event.ts";
import type { ActivationState } from "../lorebooks/activation.ts";
import type { MemoryChoice } from "../memories/memory.ts";
import type { DroppedLore } from "./compose_context.ts";
import type { SentDocument } from "./document_choice.ts";
import type { NotExpanded } from "./macros/macro_budget.ts";
import type { PromptBlocks } from "./prompt_blocks.ts";
import type { Counted, PromptEntry } from "./prompt_messages.ts";
import type { ContextSize, CountedModel } from "./token_counter.ts";

/** One message of the history. */
export interface PromptMessage {
  /** `undefined` for a message that isn't stored. */
  id?: string;
  message: ChatMessage;
  /** Creation time in milliseconds since 1970. */
  atMs?: number;
  /** Lorebook state after this message. */
  loreState?: ActivationState;
  /** Documents of this message. */
  documents?: readonly DocumentUse[];
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
}

/** The blocks of a prompt, and what was dropped. */
export interface ComposedPrompt {
  blocks: PromptBlocks;
  droppedLore?: DroppedLore[];
  /** See `PromptLayout`. */
  squashesSystem?: boolean;
  /** Stored with the reply; see compose_context.ts. */
  loreState?: ActivationState;
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
  /** Newest first, without hidden messages. Only read as far as the context reaches. */
  history: Iterable<PromptMessage>;
  /** True if the newest message is the start of the reply. */
  continuesLast?: boolean;
  /** Documents that are always at hand. Those of messages are in the history. */
  documents?: readonly DocumentUse[];
  /** Pinned messages, oldest first. Quoted before the history if they don't fit into it. */
  pinned?: readonly PinnedMessage[];
  /** Messages before those that fit may have documents, and have to be searched for them. */
  hasEarlierDocuments?: boolean;
}

/** Messages that a client assembled, and documents. */
export interface ClientPromptSource {
  /** Oldest first, each with an id. */
  history: readonly PromptMessage[];
  /** Documents of the conversation. */
  documents: readonly DocumentUse[];
}

/** Token limits of a prompt. */
export interface PromptLimits extends CountedModel {
  /** Maximum tokens of the reply; by default the value sent for requests without one. */
  answerTokens?: number;
  /** Maximum tokens of prompt and reply, if lower than the model's context. */
  contextTokens?: number;
  /** Tokens of the definitions of tools, which are sent with the prompt. */
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
  answerTokens: number;
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
  /** What is sent of each document. */
  documents: SentDocument[];
  /** Notes of the owner that are sent, and those that exceed their budget. */
  memories: MemoryChoice;
}
