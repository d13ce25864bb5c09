/** When the summary of a conversation no longer tells the truth: something that it tells of has changed. */
import { isDeepStrictEqual } from "node:util";
import { parseStoredSummary } from "../prompts/prompt_context.ts";
import type { BlockStore, Neighbours } from "./blocks/block_store.ts";
import type { ConversationHead, ConversationState } from "./conversation.ts";
import type { Message } from "./message.ts";

/**
 * Gives a conversation without its summary where that tells of a message that is about to change; else as it is.
 *
 * @param mid The first message that changes, goes, or behind which something is put.
 * @param isBehind True where only what stands behind that message changes.
 */
export function dropStaleSummary(
  blocks: BlockStore,
  state: ConversationState,
  mid: string,
  isBehind = false,
): ConversationState {
  const upTo = parseStoredSummary(state.head.summary)?.upTo;
  // It says nothing about what follows other versions.
  if (upTo !== undefined && blocks.isOffPath(state.id, mid)) return state;
  if (upTo === undefined || (isBehind && mid === upTo) || isAfter(blocks, state.id, mid, upTo)) return state;
  return { ...state, head: withoutSummary(state.head) };
}

/** Gives a conversation without its summary where that tells of the place where messages come back. */
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
 * Gives the head of a conversation that is saved whole: a summary that stays as it was must still be true; another is the
 * word of whoever saves.
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
  const told = (all: readonly Message[]) =>
    all.slice(0, all.findIndex(({ id }) => id === upTo) + 1)
      .map(({ id, role, content, hidden }) => ({ id, role, content, hidden }));
  const is = told(messages);
  return is.length > 0 && isDeepStrictEqual(told(before), is) ? head : withoutSummary(head);
}

function withoutSummary(head: ConversationHead): ConversationHead {
  const { summary: _, ...rest } = head;
  return rest as ConversationHead;
}

/** Says whether a message stands behind another one. */
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
