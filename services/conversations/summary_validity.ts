/** Drops the summary of a conversation when a message that it covers changes. */
import { isDeepStrictEqual } from "node:util";
import { parseStoredSummary } from "../prompts/prompt_context.ts";
import type { BlockStore, Neighbours } from "./blocks/block_store.ts";
import type { ConversationHead, ConversationState } from "./conversation.ts";
import type { Message } from "./message.ts";

/**
 * Returns a conversation without its summary if that covers a message that is about to change; otherwise unchanged.
 *
 * @param mid The first message that changes or is removed, or after which messages are inserted.
 * @param isAfterOnly Whether only messages after `mid` change.
 */
export function dropStaleSummary(
  blocks: BlockStore,
  state: ConversationState,
  mid: string,
  isAfterOnly = false,
): ConversationState {
  const upTo = parseStoredSummary(state.head.summary)?.upTo;
  // The summary only covers the active path.
  if (upTo !== undefined && blocks.isOffPath(state.id, mid)) return state;
  if (upTo === undefined || (isAfterOnly && mid === upTo) || isAfter(blocks, state.id, mid, upTo)) return state;
  return { ...state, head: withoutSummary(state.head) };
}

/** Returns a conversation without its summary if that covers the place where messages are restored. */
export function dropSummaryAround(
  blocks: BlockStore,
  state: ConversationState,
  { after, before }: Neighbours,
): ConversationState {
  return after === undefined
    ? dropStaleSummary(blocks, state, before ?? "")
    : dropStaleSummary(blocks, state, after, true);
}

/**
 * Returns the head of a conversation that is saved whole. An unchanged summary is dropped if the messages that it covers
 * changed. A new summary is the client's.
 */
export function dropChangedSummary(
  head: ConversationHead,
  headBefore: ConversationHead | undefined,
  before: readonly Message[],
  messages: readonly Message[],
): ConversationHead {
  const upTo = parseStoredSummary(head.summary)?.upTo;
  if (upTo === undefined || headBefore === undefined || !isDeepStrictEqual(head.summary, headBefore.summary)) {
    return head;
  }
  const covered = (all: readonly Message[]) =>
    all.slice(0, all.findIndex(({ id }) => id === upTo) + 1)
      .map(({ id, role, content, hidden }) => ({ id, role, content, hidden }));
  const is = covered(messages);
  return is.length > 0 && isDeepStrictEqual(covered(before), is) ? head : withoutSummary(head);
}

function withoutSummary(head: ConversationHead): ConversationHead {
  const { summary: _, ...rest } = head;
  return rest as ConversationHead;
}

/** Whether a message comes after another one. */
function isAfter(blocks: BlockStore, id: string, mid: string, other: string): boolean {
  const [row, otherRow] = [blocks.rowOf(id, mid), blocks.rowOf(id, other)];
  if (row === undefined || otherRow === undefined) return false;
  if (row.id !== otherRow.id) {
    const tree = blocks.tree(id);
    const [stretch, otherStretch] = [tree.stretchOf(row)!, tree.stretchOf(otherRow)!];
    return stretch === otherStretch ? row.position > otherRow.position : stretch > otherStretch;
  }
  const ids = blocks.messagesOf(id, row).map((message) => message.id);
  return ids.indexOf(mid) > ids.indexOf(other);
}
