/** A change of all messages of a conversation: what it replaces is kept as a past state. How that comes back is revisions.ts. */
import { isDeepStrictEqual } from "node:util";
import { Pace } from "../pace.ts";
import type { Statement } from "../storage/database.ts";
import type { OpenBlock } from "./block_rows.ts";
import type { BlockStore } from "./blocks.ts";
import type { Touched } from "./change_log.ts";
import type { ConversationHead, ConversationState } from "./conversation.ts";
import { NO_TEXT_CHANGE, type TextChange } from "./given_variants.ts";
import type { Message } from "./message.ts";
import { forget } from "./removed_messages.ts";
import type { RevisionCause, RevisionStore } from "./revision_store.ts";
import type { VariantStore } from "./variants.ts";

/** A change of all messages. */
export interface Replacement {
  /** The blocks as they stand. */
  standing: OpenBlock[];
  head: ConversationHead;
  messages: Message[];
  /** What becomes of their other texts; by default nothing. */
  texts?: TextChange;
  cause: RevisionCause;
}

/** Statements that put other messages into a conversation and keep those they replace, and the text of the new ones. */
export async function replaceMessages(
  { blocks, variants, revisions }: { blocks: BlockStore; variants: VariantStore; revisions: RevisionStore },
  before: ConversationState,
  { standing, head, messages, texts = NO_TEXT_CHANGE, cause }: Replacement,
): Promise<{ statements: Statement[]; text: string; touched: Touched }> {
  const { statements, text, touched: moved, isUnchanged } = await blocks.replaceAll(before.id, messages, standing);
  const isTouched = new Set([...moved.added ?? [], ...moved.changed ?? []]);
  const retold = texts.mids.filter((mid) => !isTouched.has(mid));
  const touched = { ...moved, changed: [...moved.changed ?? [], ...retold] };
  if (isUnchanged && texts.statements.length === 0) {
    const kept = isDeepStrictEqual(head, before.head) ? [] : revisions.keep(before, cause, { head: before.head });
    return { statements: [...kept, ...statements], text, touched };
  }
  await new Pace().rest();
  const staying = new Set(messages.map(({ id }) => id));
  const leaving = standing.flatMap((block) => block.messages).map(({ id }) => id).filter((id) => !staying.has(id));
  const left = leaving.length === 0 ? [] : await variants.openMany(variants.rowsOf(before.id, leaving));
  const kept = revisions.keepBlocks(before, cause, standing.map(({ row }) => row), [...left, ...texts.replaced]);
  const gone = leaving.length === 0 ? [] : forget(before.id, leaving);
  return { statements: [...kept, ...statements, ...gone, ...texts.statements], text, touched };
}
