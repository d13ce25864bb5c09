/**
 * Chapters: parts of a conversation's summary, each with the range of messages that it covers. `summary` is their
 * joined text, which is sent to models and used by clients without support for chapters. A chapter is dropped when a
 * message that it covers changes. Chapters that the owner edited stay if possible.
 */
import { isDeepStrictEqual } from "node:util";
import { isJsonObject, isNonEmptyString } from "../json/type_guards.ts";
import { parseStoredSummary } from "../prompts/prompt_context.ts";
import type { ConversationHead, ConversationState } from "./conversation.ts";
import type { BlockStore, Neighbors } from "./blocks/block_store.ts";
import type { Message } from "./message.ts";

/** One chapter. */
export interface Chapter {
  text: string;
  /** Absent if it starts with the conversation. */
  from_message_id?: string;
  up_to_message_id: string;
  /** True if the owner wrote or changed it, so that it isn't rewritten. */
  edited?: boolean;
}

const SEPARATOR = "\n\n";

/**
 * Parses the chapters of a conversation. A summary without chapters becomes one chapter, unless it has no message ID.
 */
export function parseChapters(head: ConversationHead): Chapter[] {
  const summary = parseStoredSummary(head.summary);
  if (summary?.upTo === undefined) return [];
  const chapters = readChapters(head.chapters);
  const isSame = joinChapters(chapters) === summary.text && chapters.at(-1)?.up_to_message_id === summary.upTo;
  return isSame ? chapters : [{ text: summary.text, up_to_message_id: summary.upTo }];
}

/** Returns a head with new chapters and their joined summary. */
export function withChapters(head: ConversationHead, chapters: readonly Chapter[]): ConversationHead {
  const { summary: _, chapters: __, ...rest } = head;
  const last = chapters.at(-1);
  if (last === undefined) return rest as ConversationHead;
  const summary = { text: joinChapters(chapters), up_to_message_id: last.up_to_message_id };
  return { ...rest as ConversationHead, summary, chapters };
}

/**
 * Makes chapters and summary consistent after a client has written either. Changed chapters take precedence; a changed
 * summary replaces all chapters. Chapters with another text count as edited.
 */
export function reconcileChapters(head: ConversationHead, before: ConversationHead | undefined): ConversationHead {
  const known = before === undefined ? [] : parseChapters(before);
  const isSummarySame = isDeepStrictEqual(head.summary, before?.summary);
  if (head.chapters === undefined || isDeepStrictEqual(head.chapters, before?.chapters)) {
    if (isSummarySame && before?.chapters !== undefined && head.chapters === undefined) {
      // A client that saves the whole document without this field doesn't mean to remove it.
      return { ...head, chapters: before.chapters };
    }
    if (isSummarySame || head.chapters === undefined) return head;
    const { chapters: _, ...rest } = head;
    return rest as ConversationHead;
  }
  const chapters = readChapters(head.chapters).map((chapter) => {
    const same = known.find(({ up_to_message_id: upTo }) => upTo === chapter.up_to_message_id);
    const isEdited = chapter.edited === true || same?.edited === true || same?.text !== chapter.text;
    const { edited: _, ...fields } = chapter;
    return isEdited ? { ...fields, edited: true } : fields;
  });
  return withChapters(head, chapters);
}

/**
 * Returns the chapters of a copied conversation, with the IDs of the copied messages. Ends before the first chapter
 * that isn't part of the copy.
 */
export function mapChapters(chapters: readonly Chapter[], newIds: ReadonlyMap<string, string>): Chapter[] {
  const copied: Chapter[] = [];
  for (const { from_message_id: from, up_to_message_id: upTo, ...chapter } of chapters) {
    const newUpTo = newIds.get(upTo);
    if (newUpTo === undefined) break;
    const newFrom = from === undefined ? undefined : newIds.get(from);
    copied.push({ ...chapter, ...(newFrom && { from_message_id: newFrom }), up_to_message_id: newUpTo });
  }
  return copied;
}

function joinChapters(chapters: readonly Chapter[]): string {
  return chapters.map(({ text }) => text.trim()).join(SEPARATOR);
}

/** Reads the chapters of a head. Clients write them, so any field may be missing or have the wrong type. */
function readChapters(value: unknown): Chapter[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((one): Chapter[] => {
    if (!isJsonObject(one)) return [];
    const { text, from_message_id: from, up_to_message_id: upTo, edited } = one;
    if (!isNonEmptyString(text) || text.trim() === "" || !isNonEmptyString(upTo)) return [];
    return [{
      text,
      ...(isNonEmptyString(from) && { from_message_id: from }),
      up_to_message_id: upTo,
      ...(edited === true && { edited }),
    }];
  });
}

/**
 * What happens to a message: its content changes; it is removed; messages are inserted after it; or the path changes, so
 * that all messages after it become others.
 */
export type SummaryChange = "content" | "removed" | "inserted_after" | "path";

/**
 * Returns a conversation without the chapters that cover a message that is about to change; otherwise unchanged. Edited
 * chapters stay unless the path changes, because only the owner knows what they should say.
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
  const remaining = chapters.flatMap((chapter): Chapter[] => {
    const { from_message_id: from, up_to_message_id: upTo } = chapter;
    const isEarlier = (change === "inserted_after" && mid === upTo) || isAfter(blocks, state.id, mid, upTo);
    if (isEarlier) return [chapter];
    if (change === "path") return [];
    if (from !== undefined && isAfter(blocks, state.id, from, mid)) return [chapter];
    if (chapter.edited !== true) return [];
    return change === "removed" ? moveBounds(blocks, state.id, chapter, mid) : [chapter];
  });
  return isDeepStrictEqual(remaining, chapters) ? state : { ...state, head: withChapters(state.head, remaining) };
}

/** Returns a conversation without the chapters that cover the position at which messages are restored. */
export function dropSummaryAround(
  blocks: BlockStore,
  state: ConversationState,
  { after, before }: Neighbors,
): ConversationState {
  return after === undefined
    ? dropStaleSummary(blocks, state, before ?? "", "content")
    : dropStaleSummary(blocks, state, after, "inserted_after");
}

/** Returns whether a summary of a message stays correct after a change of the message. */
export function keepsSummary(before: Message, after: Message): boolean {
  return before.role === after.role && before.hidden === after.hidden &&
    isDeepStrictEqual(before.content, after.content);
}

/**
 * Returns the head of a conversation that is saved as a whole. Drops the chapters from the first whose messages
 * changed, unless the client changed the summary.
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

/** Returns a chapter without a removed message, or nothing if it covers no other message. */
function moveBounds(blocks: BlockStore, id: string, chapter: Chapter, mid: string): Chapter[] {
  const { from_message_id: from, up_to_message_id: upTo } = chapter;
  if (from === mid && upTo === mid) return [];
  const { after: previous, before: next } = blocks.getNeighbors(id, mid);
  if (upTo === mid) return previous === undefined ? [] : [{ ...chapter, up_to_message_id: previous }];
  return [from === mid ? { ...chapter, from_message_id: next } : chapter];
}

/** Returns whether a message comes after another one. */
function isAfter(blocks: BlockStore, id: string, mid: string, other: string): boolean {
  const [row, otherRow] = [blocks.findRow(id, mid), blocks.findRow(id, other)];
  if (row === undefined || otherRow === undefined) return false;
  if (row.id !== otherRow.id) {
    const tree = blocks.getTree(id);
    const [range, otherRange] = [tree.findRangeIndex(row)!, tree.findRangeIndex(otherRow)!];
    return range === otherRange ? row.position > otherRow.position : range > otherRange;
  }
  const ids = blocks.openMessages(id, row).map((message) => message.id);
  return ids.indexOf(mid) > ids.indexOf(other);
}
