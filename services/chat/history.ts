/** What of a conversation goes to a model: its fields and its messages, as the prompts take them. */
import type { ChatMessage } from "../llm/chat_event.ts";
import type { PromptNote, PromptSource, PromptTurn } from "../prompts/prompts.ts";
import type { BlockStore } from "./blocks.ts";
import type { ConversationHead } from "./conversation.ts";
import type { Message } from "./message.ts";

/** Where the history ends. */
export interface HistoryEnd {
  /** The message before which it ends; the end of the conversation without it. */
  before?: string;
  /** True when that message is the last of it: an answer that is to be continued. */
  isIncluded?: boolean;
  /** A turn behind everything, which is not stored. */
  turn?: ChatMessage;
}

/** Gives what there is to send of a conversation. Messages are read only as far as they are asked for. */
export function sourceOf(
  blocks: BlockStore,
  conversationId: string,
  head: ConversationHead | undefined,
  end: HistoryEnd,
): PromptSource {
  return {
    conversationId,
    systemPrompt: typeof head?.system_prompt === "string" ? head.system_prompt : undefined,
    note: noteOf(head?.note),
    history: turnsOf(blocks, conversationId, end),
  };
}

function* turnsOf(blocks: BlockStore, id: string, { before, isIncluded, turn }: HistoryEnd): Generator<PromptTurn> {
  if (turn !== undefined) yield { message: turn };
  let row = before === undefined ? blocks.previous(id) : blocks.rowOf(id, before);
  for (; row !== undefined; row = blocks.previous(id, row.position)) {
    const messages = blocks.messagesOf(id, row);
    let at = messages.findIndex((message) => message.id === before);
    if (at < 0) at = messages.length - 1;
    else if (!isIncluded) at--;
    for (; at >= 0; at--) {
      const message = messages[at]!;
      if (isSent(message) || message.id === before) yield { id: message.id, message: upstreamMessage(message) };
    }
  }
}

/** Hidden messages stay here; so do answers that have no text, or none yet. */
function isSent({ hidden, status, content }: Message): boolean {
  return hidden !== true && status !== "streaming" && content.length > 0;
}

/** Thoughts of earlier turns are not sent again: models do not expect them (llm.md, section 2). */
function upstreamMessage({ role, content }: Message): ChatMessage {
  return { role, content };
}

/** The note is the client's document: whatever has no text or no place is none. */
function noteOf(value: unknown): PromptNote | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { text, depth, role } = value as Record<string, unknown>;
  if (typeof text !== "string") return undefined;
  return {
    text,
    depth: typeof depth === "number" && depth >= 0 ? Math.floor(depth) : 0,
    role: typeof role === "string" && role !== "" ? role : undefined,
  };
}
