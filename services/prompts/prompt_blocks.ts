/** The pieces of a prompt beside the history: what each says, what it is and where it goes. */

import type { ActivationReason } from "../lorebooks/activation.ts";

/** What a piece of a prompt is. */
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
  | "chat_begins"
  | "character_note"
  | "note"
  | "instructions"
  | "speaker"
  | "continue"
  | "impersonate"
  | "prefill";

/** The entry of a lorebook that a piece comes from. */
export interface LoreSource {
  book: string;
  bookName: string;
  entry: string;
  /** Name of the entry, for people. */
  title: string;
  /** Why it fired. */
  reason: ActivationReason;
}

/** Names an entry for people, in what is reported of a prompt. */
export function loreName(bookName: string, entryName: string): string {
  return bookName === "" ? entryName : `${bookName}: ${entryName}`;
}

/** One piece. */
export interface PromptBlock {
  part: BlockPart;
  role: string;
  /** Never empty. */
  text: string;
  /** What its owner calls it: the prompt of a preset, the entry of a lorebook. */
  title?: string;
  lore?: LoreSource;
  /** To be left out first where there is not room for everything. */
  isFirstToGo?: boolean;
  /** Goes out only where messages that it tells of do not. */
  isStandIn?: boolean;
}

/** A piece that is set into the history. */
export interface PlacedBlock extends PromptBlock {
  /** Messages that stand behind it. */
  depth: number;
  /** Among those of one depth and role the lower stands first. */
  order: number;
}

/** All pieces of a prompt, in their order. */
export interface PromptBlocks {
  /** Before the history. */
  leading: PromptBlock[];
  inserted: PlacedBlock[];
  /** Behind the history. */
  trailing: PromptBlock[];
  /** The begin of the answer. */
  prefill?: PromptBlock;
}

/** No pieces at all. */
export const NO_BLOCKS: PromptBlocks = { leading: [], inserted: [], trailing: [] };
