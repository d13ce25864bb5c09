/**
 * Which messages of a conversation are pinned: they stay in the prompt when the history is trimmed. The ids are in the head,
 * so that a prompt finds them without reading the whole conversation.
 */
import type { BlockStore } from "./blocks/block_store.ts";
import type { ConversationHead } from "./conversation.ts";
import type { Message } from "./message.ts";

/** Most messages that are pinned for the prompt; those pinned later aren't sent. */
const MAX_PINNED = 100;

/** Returns the ids of the pinned ones among some messages, in order. */
export function pinnedIds(messages: readonly { id: string; pinned?: unknown }[]): string[] {
  return messages.filter(({ pinned }) => pinned === true).map(({ id }) => id);
}

/** Returns the ids that a head lists. Some may be gone or off the active path. */
export function readPinnedIds({ pinned_message_ids: ids }: ConversationHead): string[] {
  return Array.isArray(ids) ? ids.filter((id) => typeof id === "string") : [];
}

/** Returns a head that lists these pinned messages. */
export function withPins(head: ConversationHead, ids: readonly string[]): ConversationHead {
  const { pinned_message_ids: _, ...rest } = head;
  return (ids.length === 0 ? rest : { ...rest, pinned_message_ids: ids.slice(0, MAX_PINNED) }) as ConversationHead;
}

/** Returns the head after a message was added, changed or removed. A removed one stays listed, for when it is restored. */
export function withPin(
  head: ConversationHead,
  before: Message | undefined,
  after: Message | undefined,
): ConversationHead {
  const isPinned = after?.pinned === true;
  if (after === undefined || (before?.pinned === true) === isPinned) return head;
  const others = readPinnedIds(head).filter((id) => id !== after.id);
  return withPins(head, isPinned ? [...others, after.id] : others);
}

/** Reads the pinned messages on the active path, oldest first. Those that can't be read are skipped. */
export function readPinnedMessages(blocks: BlockStore, id: string, head: ConversationHead): Message[] {
  const { path } = blocks.tree(id);
  const found = readPinnedIds(head).flatMap((mid) => {
    const row = blocks.rowOf(id, mid);
    const messages = row === undefined ? [] : blocks.readableMessagesOf(id, row) ?? [];
    const index = messages.findIndex((message) => message.id === mid);
    const message = messages[index];
    if (row === undefined || message?.pinned !== true || message.hidden === true) return [];
    return [{ message, index, position: row.position, stretch: blocks.tree(id).stretchOf(row) ?? path.length }];
  });
  found.sort((a, b) => a.stretch - b.stretch || a.position - b.position || a.index - b.index);
  return found.map(({ message }) => message);
}
