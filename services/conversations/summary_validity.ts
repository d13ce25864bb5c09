/** Drops the chapters of a summary when a message that they cover changes. Chapters that the owner edited stay where they can. */
import { isDeepStrictEqual } from "node:util";
import type { BlockStore, Neighbours } from "./blocks/block_store.ts";
import { type Chapter, parseChapters, withChapters } from "./chapters.ts";
import type { ConversationHead, ConversationState } from "./conversation.ts";
import type { Message } from "./message.ts";

/**
 * What happens to a message: its content changes; it is removed; messages are inserted after it; or the path changes, so
 * that all messages after it become others.
 */
export type SummaryChange = "content" | "removed" | "inserted_after" | "path";

/**
 * Returns a conversation without the chapters that cover a message that is about to change; otherwise unchanged. Edited
 * chapters stay unless the path changes, because only their owner knows what they should say.
 *
 * @param mid The message.
 */
export function dropStaleSummary(
  blocks: BlockStore,
  state: ConversationState,
  mid: string,
  change: SummaryChange = "path",
): ConversationState {
  const chapters = parseChapters(state.head);
  // The summary only covers the active path.
  if (chapters.length === 0 || blocks.isOffPath(state.id, mid)) return state;
  const kept = chapters.flatMap((chapter): Chapter[] => {
    const { from_message_id: from, up_to_message_id: upTo } = chapter;
    const isEarlier = (change === "inserted_after" && mid === upTo) || isAfter(blocks, state.id, mid, upTo);
    if (isEarlier) return [chapter];
    if (change === "path") return [];
    if (from !== undefined && isAfter(blocks, state.id, from, mid)) return [chapter];
    if (chapter.edited !== true) return [];
    return change === "removed" ? moveBounds(blocks, state.id, chapter, mid) : [chapter];
  });
  return isDeepStrictEqual(kept, chapters) ? state : { ...state, head: withChapters(state.head, kept) };
}

/** Returns a conversation without the chapters that cover the place where messages are restored. */
export function dropSummaryAround(
  blocks: BlockStore,
  state: ConversationState,
  { after, before }: Neighbours,
): ConversationState {
  return after === undefined
    ? dropStaleSummary(blocks, state, before ?? "", "content")
    : dropStaleSummary(blocks, state, after, "inserted_after");
}

/** Whether a change of a message leaves what a summary says of it true. */
export function keepsSummary(before: Message, after: Message): boolean {
  return before.role === after.role && before.hidden === after.hidden &&
    isDeepStrictEqual(before.content, after.content);
}

/**
 * Returns the head of a conversation that is saved whole. Unchanged chapters are dropped from the first whose messages
 * changed. A new summary is the client's.
 */
export function dropChangedSummary(
  head: ConversationHead,
  headBefore: ConversationHead | undefined,
  before: readonly Message[],
  messages: readonly Message[],
): ConversationHead {
  const chapters = parseChapters(head);
  if (chapters.length === 0 || headBefore === undefined || !isDeepStrictEqual(head.summary, headBefore.summary)) {
    return head;
  }
  const covered = (all: readonly Message[], upTo: string) =>
    all.slice(0, all.findIndex(({ id }) => id === upTo) + 1)
      .map(({ id, role, content, hidden }) => ({ id, role, content, hidden }));
  const changed = chapters.findIndex(({ up_to_message_id: upTo }) => {
    const is = covered(messages, upTo);
    return is.length === 0 || !isDeepStrictEqual(covered(before, upTo), is);
  });
  return changed < 0 ? head : withChapters(head, chapters.slice(0, changed));
}

/** Returns a chapter without a message that is removed. None if it covers no other. */
function moveBounds(blocks: BlockStore, id: string, chapter: Chapter, mid: string): Chapter[] {
  const { from_message_id: from, up_to_message_id: upTo } = chapter;
  if (from === mid && upTo === mid) return [];
  const { after: previous, before: next } = blocks.neighboursOf(id, mid);
  if (upTo === mid) return previous === undefined ? [] : [{ ...chapter, up_to_message_id: previous }];
  return [from === mid ? { ...chapter, from_message_id: next } : chapter];
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
