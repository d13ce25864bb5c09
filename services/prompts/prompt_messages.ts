/** Makes messages of the pieces of a prompt: neighbours of one role are one message, since many templates refuse two. */
import type { ChatMessage } from "../llm/chat_event.ts";
import type { BlockPart, PlacedBlock, PromptBlock } from "./prompt_blocks.ts";
import { MESSAGE_TOKENS } from "./tokens/token_estimate.ts";

/** A piece and what it takes. */
export type Counted<T extends PromptBlock = PromptBlock> = T & { tokens: number };

/** What a message of the prompt is: the begin of everything, a message of the conversation, or what its first piece is. */
export type PromptPart = "system_prompt" | "history" | BlockPart;

/** What is known of one message of a prompt. */
export interface PromptEntry {
  part: PromptPart;
  /** Where it is a stored message. */
  messageId?: string;
  message: ChatMessage;
  tokens: number;
  /** What it was put together from; absent for messages of the conversation. */
  pieces?: Counted[];
}

/** Order within one depth: system, user, assistant (docs/protocols/cards.md#prompt-order). */
const ROLES = ["system", "user", "assistant"];
/** A blank line stands between two pieces. */
const JOIN_TOKENS = 1;

/**
 * Makes messages of pieces that stand behind each other.
 *
 * @param isBegin True for those before the history.
 */
export function messagesOf(blocks: readonly Counted[], isBegin = false): PromptEntry[] {
  const entries: (PromptEntry & { pieces: Counted[] })[] = [];
  for (const block of blocks) {
    const last = entries.at(-1);
    if (last?.message.role === block.role) {
      last.message.content += `\n\n${block.text}`;
      last.tokens += block.tokens - MESSAGE_TOKENS + JOIN_TOKENS;
      last.pieces.push(block);
      continue;
    }
    const part = isBegin && block.role === "system" ? "system_prompt" : block.part;
    const message = { role: block.role, content: block.text };
    entries.push({ part, message, tokens: block.tokens, pieces: [block] });
  }
  return entries;
}

/**
 * Makes one message of system messages that follow one another, whatever part they come from. Those of the conversation
 * stay as they are, since each is known by its id.
 */
export function withSystemSquashed(entries: readonly PromptEntry[]): PromptEntry[] {
  const all: PromptEntry[] = [];
  for (const entry of entries) {
    const last = all.at(-1);
    if (last === undefined || !isSystemPiece(last) || !isSystemPiece(entry)) {
      all.push(entry);
      continue;
    }
    all[all.length - 1] = {
      ...last,
      message: { ...last.message, content: `${last.message.content}\n\n${entry.message.content}` },
      tokens: last.tokens + entry.tokens - MESSAGE_TOKENS + JOIN_TOKENS,
      pieces: [...last.pieces!, ...entry.pieces!],
    };
  }
  return all;
}

function isSystemPiece({ message, pieces }: PromptEntry): boolean {
  return message.role === "system" && pieces !== undefined;
}

/** Sets pieces into a history at their depths; one deeper than the history is long stands before it. */
export function withInserted(
  history: readonly PromptEntry[],
  inserted: readonly Counted<PlacedBlock>[],
): PromptEntry[] {
  const all: PromptEntry[] = [];
  const byPlace = Map.groupBy(inserted, ({ depth }) => Math.max(0, history.length - depth));
  for (let place = 0; place <= history.length; place++) {
    const here = byPlace.get(place) ?? [];
    // The deeper ones first, where several are deeper than the history is long.
    here.sort((a, b) => b.depth - a.depth || ROLES.indexOf(a.role) - ROLES.indexOf(b.role) || a.order - b.order);
    all.push(...messagesOf(here));
    if (place < history.length) all.push(history[place]!);
  }
  return all;
}
