/** Replaces all messages of a conversation and stores the state before as a revision. */
import { isDeepStrictEqual } from "node:util";
import { yieldIfTickUsedUp } from "../../async/delay.ts";
import type { Statement } from "../../storage/database/database.ts";
import type { BlockStore, OpenTree } from "../blocks/block_store.ts";
import { isReordered, type Touched } from "./change_log.ts";
import type { ConversationHead, ConversationState } from "../conversation.ts";
import { NO_TEXT_CHANGE, type TextChange } from "../input_messages.ts";
import type { Message } from "../message.ts";
import { branchIds, type MessageTree, pathOf } from "../tree/message_tree.ts";
import { insertContinuations, removeContinuations } from "../tree/conversation_tree.ts";
import { forget } from "../conversation_trash.ts";
import type { RevisionCause, RevisionStore } from "./revision_store.ts";
import type { VariantStore } from "../variants.ts";

/** A replacement of all messages. */
export interface Replacement {
  /** The stored messages. */
  storedTree: OpenTree;
  head: ConversationHead;
  /** The new messages. */
  tree: MessageTree;
  /** The change of versions. Defaults to none. */
  texts?: TextChange;
  cause: RevisionCause;
}

/** The tree of a new conversation. */
export const EMPTY_TREE: OpenTree = { segments: new Map(), continuations: [] };

/** Returns the messages of stored blocks. */
export function toMessageTree({ segments, continuations }: OpenTree): MessageTree {
  const lists = [...segments].map(([segment, blocks]) =>
    [segment, blocks.flatMap(({ messages }) => messages)] as const
  );
  return { segments: new Map(lists), continuations };
}

/** Returns the statements that replace one tree by another, and the JSON of the active path unless it is long. */
export async function replaceTree(
  blocks: BlockStore,
  id: string,
  tree: MessageTree,
  storedTree: OpenTree = EMPTY_TREE,
): Promise<{ statements: Statement[]; text?: string; touched: Touched; isUnchanged: boolean }> {
  const replaced = await blocks.replaceSegments(id, tree.segments, branchIds(tree), storedTree.segments);
  const path = pathOf(tree);
  const { texts } = replaced;
  const text = texts && path.map((message) => texts.get(message)).join(",");
  const [before, after] = [storedTree, tree].map(({ continuations }) => continuations.map((row) => Object.values(row)));
  const isSame = isDeepStrictEqual(before!.map(String).sort(), after!.map(String).sort());
  const rows = isSame ? [] : [
    ...(before!.length === 0 ? [] : [removeContinuations(id, [...branchIds(storedTree)])]),
    ...insertContinuations(id, tree.continuations),
  ];
  await yieldIfTickUsedUp();
  const touched = touchedBy(pathOf(toMessageTree(storedTree)), path, replaced.changed);
  const statements = [...replaced.statements, ...rows];
  return { statements, text, touched, isUnchanged: replaced.isUnchanged && isSame };
}

/** Returns the messages that a replacement of the active path changes. @param changed Ids of stored messages with another text. */
function touchedBy(before: Message[], after: Message[], changed: ReadonlySet<string>): Touched {
  if (before.length === 0) return { added: after.map(({ id }) => id) };
  const stored = new Map(before.map((message) => [message.id, message]));
  const staying = new Set(after.map(({ id }) => id));
  const touched = { added: [] as string[], changed: [] as string[] };
  for (const { id } of after) {
    if (!stored.has(id)) touched.added.push(id);
    else if (changed.has(id)) touched.changed.push(id);
  }
  return {
    ...touched,
    removed: [...stored.keys()].filter((mid) => !staying.has(mid)),
    isReordered: isReordered([...stored.keys()], [...staying]),
  };
}

/** Returns the statements that replace all messages and store those before as a revision, and the JSON of the active path unless it is long. */
export async function replaceMessages(
  { blocks, variants, revisions }: { blocks: BlockStore; variants: VariantStore; revisions: RevisionStore },
  before: ConversationState,
  { storedTree, head, tree, texts = NO_TEXT_CHANGE, cause }: Replacement,
): Promise<{ statements: Statement[]; text?: string; touched: Touched }> {
  const { statements, text, touched: moved, isUnchanged } = await replaceTree(blocks, before.id, tree, storedTree);
  const isTouched = new Set([...moved.added ?? [], ...moved.changed ?? []]);
  const isOnPath = new Set(pathOf(tree).map(({ id }) => id));
  const withNewVersions = texts.mids.filter((mid) => isOnPath.has(mid) && !isTouched.has(mid));
  const touched = { ...moved, changed: [...moved.changed ?? [], ...withNewVersions] };
  if (isUnchanged && texts.statements.length === 0) {
    const kept = isDeepStrictEqual(head, before.head) ? [] : revisions.keep(before, cause, { head: before.head });
    return { statements: [...kept, ...statements], text, touched };
  }
  await yieldIfTickUsedUp();
  const staying = new Set(allMessages(tree).map(({ id }) => id));
  const leaving = allMessages(toMessageTree(storedTree)).map(({ id }) => id).filter((id) => !staying.has(id));
  const left = leaving.length === 0 ? [] : await variants.openMany(variants.rowsOf(before.id, leaving));
  const kept = revisions.keepTree(before, cause, storedTree, [...left, ...texts.replaced]);
  const gone = leaving.length === 0 ? [] : forget(before.id, leaving);
  return { statements: [...kept, ...statements, ...gone, ...texts.statements], text, touched };
}

/** Returns the messages of all segments. */
export function allMessages({ segments }: MessageTree): Message[] {
  return [...segments.values()].flat();
}
