/**
 * Chapters: the summary of a conversation in parts, each with the messages that it covers. `summary` holds them joined, which
 * is what is sent, and what clients that don't know chapters read and write.
 */
import { isDeepStrictEqual } from "node:util";
import { isJsonObject, isNonEmptyString } from "../json/type_guards.ts";
import { parseStoredSummary } from "../prompts/prompt_context.ts";
import type { ConversationHead } from "./conversation.ts";

/** One chapter. */
export interface Chapter {
  text: string;
  /** Absent if it starts with the conversation. */
  from_message_id?: string;
  up_to_message_id: string;
  /** The owner wrote or changed it, so it isn't written again. */
  edited?: boolean;
}

const SEPARATOR = "\n\n";

/** Parses the chapters of a conversation. A summary without chapters is one chapter, unless it names no message. */
export function parseChapters(head: ConversationHead): Chapter[] {
  const summary = parseStoredSummary(head.summary);
  if (summary?.upTo === undefined) return [];
  const chapters = readChapters(head.chapters);
  const isSame = joinChapters(chapters) === summary.text && chapters.at(-1)?.up_to_message_id === summary.upTo;
  return isSame ? chapters : [{ text: summary.text, up_to_message_id: summary.upTo }];
}

/** Returns a head with other chapters, and the summary that they make. */
export function withChapters(head: ConversationHead, chapters: readonly Chapter[]): ConversationHead {
  const { summary: _, chapters: __, ...rest } = head;
  const last = chapters.at(-1);
  if (last === undefined) return rest as ConversationHead;
  const summary = { text: joinChapters(chapters), up_to_message_id: last.up_to_message_id };
  return { ...rest as ConversationHead, summary, chapters };
}

/**
 * Settles chapters and summary after a client has written either. Chapters win if they changed; a summary of a client that
 * doesn't know chapters replaces them. Chapters with another text count as edited.
 */
export function settleChapters(head: ConversationHead, before: ConversationHead | undefined): ConversationHead {
  const known = before === undefined ? [] : parseChapters(before);
  const isSummarySame = isDeepStrictEqual(head.summary, before?.summary);
  if (head.chapters === undefined || isDeepStrictEqual(head.chapters, before?.chapters)) {
    if (isSummarySame && before?.chapters !== undefined && head.chapters === undefined) {
      // A client that saves the whole document without the field doesn't mean to remove it.
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

/** Returns chapters with the ids that their messages have in a copy. Ends before the first that isn't in it. */
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

/** Clients write them, so every field may be missing or of a wrong type. */
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
