/** The blocks of a prompt besides the history. */

import type { ActivationReason } from "../lorebooks/activation.ts";

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
