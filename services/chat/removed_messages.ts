/** Messages that were taken out of a conversation, and how they get back to their place. */
import { AppError } from "../errors.ts";
import type { Statement } from "../storage/database.ts";
import type { BlockChange, BlockStore, Neighbours } from "./blocks.ts";
import type { Message } from "./message.ts";
import type { VariantStore, VariantText } from "./variants.ts";

/** What is kept of removed messages. */
export interface RemovedMessages {
  /** In order, and side by side when they were removed. */
  messages: Message[];
  /** Their other texts. */
  variants: VariantText[];
  /** Between which messages they stood. */
  place: Neighbours;
}

/** Statements that remove what belongs to messages beside their place in a block. */
export function forget(conversationId: string, mids: string[]): Statement[] {
  return ["variant", "reply"].map((table) => ({
    sql: `DELETE FROM ${table} WHERE conversation_id = ? AND mid IN (SELECT value FROM json_each(?))`,
    params: [conversationId, JSON.stringify(mids)],
  }));
}

/**
 * Puts removed messages back where they stood, as far as that place is still there.
 *
 * @throws {AppError} `conflict` when one of their ids is there again.
 */
export function putBack(
  { blocks, variants }: { blocks: BlockStore; variants: VariantStore },
  conversationId: string,
  { messages, variants: texts, place }: RemovedMessages,
): BlockChange {
  const [taken] = blocks.taken(conversationId, messages.map(({ id }) => id));
  if (taken !== undefined) throw new AppError("conflict", `Message "${taken}" is there again`);
  const change = insertion(blocks, conversationId, messages, place);
  return { ...change, statements: [...change.statements, ...variants.restore(conversationId, texts)] };
}

function insertion(blocks: BlockStore, id: string, messages: Message[], { after, before }: Neighbours): BlockChange {
  const behind = after === undefined ? undefined : blocks.rowOf(id, after);
  if (after !== undefined && behind !== undefined) {
    // What was removed from the same place and is back already keeps the order of time.
    const all = blocks.messagesOf(id, behind);
    let at = all.findIndex((message) => message.id === after);
    while (all[at + 1] && all[at + 1]!.id !== before && isEarlier(all[at + 1]!, messages[0]!)) at++;
    return blocks.insert(id, messages, "after", all[at]!.id);
  }
  if (before !== undefined && blocks.rowOf(id, before) !== undefined) {
    return blocks.insert(id, messages, "before", before);
  }
  // Both are gone: the begin or the end of the conversation, in the order of time there.
  const row = after === undefined ? blocks.next(id, -Number.MAX_VALUE) : blocks.previous(id);
  if (row === undefined) {
    const added = messages.map((message) => message.id);
    return { statements: blocks.append(id, messages), last: messages.at(-1), touched: { added } };
  }
  const all = blocks.messagesOf(id, row);
  const at = after === undefined
    ? all.findIndex((message) => !isEarlier(message, messages[0]!))
    : all.findLastIndex((message) => isEarlier(message, messages[0]!)) + 1;
  const next = at < 0 ? undefined : all[at];
  return next === undefined
    ? blocks.insert(id, messages, "after", all.at(-1)!.id)
    : blocks.insert(id, messages, "before", next.id);
}

function isEarlier(one: Message, other: Message): boolean {
  return one.created_at === other.created_at ? one.id < other.id : one.created_at < other.created_at;
}
