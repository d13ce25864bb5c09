/** Moves conversations to the trash, and restores and deletes conversations and messages in it. */
import { AppError } from "../errors.ts";
import type { KeyedMutex } from "../async/locks.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import type { ExpectedVersion } from "../storage/preconditions.ts";
import type { TrashBin } from "../storage/trash.ts";
import type { BlockRow } from "./blocks/block_rows.ts";
import type { BlockChange, BlockStore, Neighbors, RemovedSubtree } from "./blocks/block_store.ts";
import { type ConversationStore, createTrashId } from "./conversation_store.ts";
import type { ConversationWriter } from "./conversation_writer.ts";
import type { Message } from "./message.ts";
import { dropSummaryAround } from "./chapters.ts";
import { type BranchPoint, type Location, ROOT_SEGMENT, toSegmentRange } from "./conversation_tree.ts";
import type { VariantStore, VariantText } from "./variants.ts";

/** Deleted messages in their trash item. */
export interface TrashedMessages extends Partial<RemovedSubtree> {
  /** In order. They were adjacent when they were deleted. */
  messages: Message[];
  /** Their inactive versions. */
  variants: VariantText[];
  /** The messages before and after them. */
  place: Neighbors;
}

/** The change that restores messages. */
export interface RestoreChange extends BlockChange {
  /** How many of the messages are on the active path. */
  countOnPath: number;
}

/** Maximum number of messages to compare when looking for a position by time. */
const MAX_COMPARED = 64;

/** Returns the statements that delete the versions and reply rows of messages. */
export function deleteMessageRows(conversationId: string, mids: string[]): Statement[] {
  return ["variant", "reply"].map((table) => ({
    sql: `DELETE FROM ${table} WHERE conversation_id = ? AND mid IN (SELECT value FROM json_each(?))`,
    params: [conversationId, JSON.stringify(mids)],
  }));
}

/**
 * Restores deleted messages to their position if it still exists, even after an inactive version. A message whose
 * versions have continuations is restored at the end of that path, because everything after such a message belongs to
 * one of its versions.
 *
 * @throws {AppError} `conflict` if one of their ids is taken.
 */
export function restoreMessages(
  { blocks, variants }: { blocks: BlockStore; variants: VariantStore },
  conversationId: string,
  removed: TrashedMessages,
): RestoreChange {
  const { messages, segments = [], continuations = [], variants: texts, place } = removed;
  const mids = [...messages, ...segments.flatMap((segment) => segment.messages)].map(({ id }) => id);
  const [usedId] = blocks.listUsedMids(conversationId, mids);
  if (usedId !== undefined) {
    throw new AppError("conflict", `Can't restore the messages: message "${usedId}" already exists`);
  }
  const change = continuations.length > 0
    ? blocks.restoreSubtree(
      conversationId,
      { messages, segments, continuations },
      place.segment,
      findEnd(blocks, conversationId, place),
    )
    : insertion(blocks, conversationId, messages, place);
  return { ...change, statements: [...change.statements, ...variants.restore(conversationId, texts)] };
}

/** Returns the location after which the messages were. */
function findEnd(blocks: BlockStore, id: string, { after, segment }: Neighbors): Location {
  const tree = blocks.getTree(id);
  const row = after === undefined ? undefined : blocks.findLiveRow(id, after);
  if (row === undefined) return { segment: ROOT_SEGMENT, position: toSegmentRange(ROOT_SEGMENT).after };
  const own = tree.find(after!);
  if (own !== undefined) return tree.findStart(own, findVersionBefore(own, segment)) ?? row;
  // If the last message of this block has versions, the active one continues elsewhere.
  const next = tree.listPointsFrom(row).find(({ position }) => position === row.position);
  return next === undefined ? row : tree.findStart(next, next.active) ?? row;
}

/** Returns the version of a message that a segment follows; otherwise the active one. */
function findVersionBefore({ segments, active }: BranchPoint, segment: number | undefined): number {
  return [...segments].find(([, other]) => other === segment)?.[0] ?? active;
}

function insertion(blocks: BlockStore, id: string, messages: Message[], neighbors: Neighbors): RestoreChange {
  const tree = blocks.getTree(id);
  const { after, before, segment } = neighbors;
  const countIf = (isOnPath: boolean) => ({ countOnPath: isOnPath ? messages.length : 0 });
  const behind = after === undefined ? undefined : blocks.findLiveRow(id, after);
  if (after !== undefined && behind !== undefined) {
    const point = tree.find(after);
    const n = point && findVersionBefore(point, segment);
    // Messages restored to the same position are sorted by time.
    const last = lastEarlier(blocks, id, { behind, after, before, n }, messages[0]!);
    if (last !== undefined) {
      return { ...blocks.insert(id, messages, "after", last.mid), ...countIf(last.isOnPath) };
    }
    if (point === undefined) {
      return { ...blocks.insert(id, messages, "after", after), ...countIf(tree.findRangeIndex(behind) !== undefined) };
    }
    const isOnPath = tree.findRangeIndex(behind) !== undefined && point.active === n;
    return { ...blocks.insertAtStart(id, messages, point, n!), ...countIf(isOnPath) };
  }
  const ahead = before === undefined ? undefined : blocks.findLiveRow(id, before);
  if (before !== undefined && ahead !== undefined) {
    return { ...blocks.insert(id, messages, "before", before), ...countIf(tree.findRangeIndex(ahead) !== undefined) };
  }
  return { ...insertAtEnd(blocks, id, messages, after === undefined), ...countIf(true) };
}

/** Finds the last message after a position that is earlier than the one to restore. */
function lastEarlier(
  blocks: BlockStore,
  id: string,
  { behind, after, before, n }: { behind: BlockRow; after: string; before?: string; n?: number },
  first: Message,
): { mid: string; isOnPath: boolean } | undefined {
  const tree = blocks.getTree(id);
  const point = tree.find(after);
  let found: { mid: string; isOnPath: boolean } | undefined;
  const start = point === undefined ? behind : tree.findStart(point, n!)!;
  let row: BlockRow | undefined = point === undefined ? behind : blocks.nextIn(id, start);
  for (let looked = 0; row !== undefined && looked < MAX_COMPARED; row = blocks.nextIn(id, row)) {
    const all = blocks.openMessages(id, row);
    for (const message of all.slice(all.findIndex((one) => one.id === after) + 1)) {
      looked++;
      // After a message with versions, another segment starts.
      const isHere = message.id !== before && isEarlier(message, first) && tree.find(message.id) === undefined;
      if (!isHere || looked >= MAX_COMPARED) return found;
      found = { mid: message.id, isOnPath: tree.findRangeIndex(row) !== undefined };
    }
  }
  return found;
}

/** Inserts messages at the start or end of the path, by time, because both neighbors are gone. */
function insertAtEnd(blocks: BlockStore, id: string, messages: Message[], isStart: boolean): BlockChange {
  let looked = 0;
  for (let row = isStart ? blocks.next(id) : blocks.findPrevious(id); row !== undefined;) {
    const all = blocks.openMessages(id, row);
    for (const message of isStart ? all : all.toReversed()) {
      const isEarly = isEarlier(message, messages[0]!);
      if (isEarly !== isStart || ++looked >= MAX_COMPARED) {
        return blocks.insert(id, messages, isEarly ? "after" : "before", message.id);
      }
    }
    const next = isStart ? blocks.next(id, row) : blocks.findPrevious(id, row);
    if (next === undefined && !isStart) return blocks.insert(id, messages, "before", all[0]!.id);
    row = next;
  }
  const added = messages.map((message) => message.id);
  return { statements: blocks.append(id, messages), last: messages.at(-1), touched: { added } };
}

function isEarlier(one: Message, other: Message): boolean {
  return one.created_at === other.created_at ? one.id < other.id : one.created_at < other.created_at;
}

/** The trash item of deleted messages. */
export interface TrashedMessagesRecord {
  conversationId: string;
  removed: TrashedMessages;
}

/** Dependencies of `ConversationTrash`. */
export interface ConversationTrashDeps {
  db: Database;
  store: ConversationStore;
  blocks: BlockStore;
  locks: KeyedMutex;
  writer: ConversationWriter;
  trash: TrashBin;
  events: EventHub;
  now(): number;
}

/** Deleted conversations. They stay in their tables, marked as deleted; the trash item has the ID. */
export class ConversationTrash {
  readonly #deps: ConversationTrashDeps;

  constructor(deps: ConversationTrashDeps) {
    this.#deps = deps;
  }

  /** Moves a conversation to the trash. A running reply is stopped first; its text is saved. */
  async remove(id: string, expected?: ExpectedVersion): Promise<void> {
    const { store, db, writer, trash, events, now } = this.#deps;
    const target = { find: () => store.getReadable(id).state, expected, isConflicting: () => true };
    await writer.runWithoutReply(id, target, async (state) => {
      const title = state.head.title || (store.findSummary(id)?.snippet ?? "");
      await db.write([
        {
          sql: "UPDATE conversation SET deleted_at = ? WHERE id = ? AND revision = ? AND deleted_at IS NULL",
          params: [now(), id, state.revision],
          expectChanges: 1,
        },
        { sql: "DELETE FROM reply WHERE conversation_id = ?", params: [id] },
        trash.put("conversation", title, { id }, createTrashId(id)),
      ]);
      events.publish({ kind: "conversation", id });
      trash.publishChange();
    });
  }

  /** Restores the conversation of a trash item. @throws {AppError} `conflict` if its id is taken. */
  async restore(record: unknown, deleteEntry: Statement): Promise<void> {
    const { db, store, locks, writer } = this.#deps;
    const { id } = record as { id: string };
    await locks.run(id, async () => {
      if (store.exists(id)) throw new AppError("conflict", `Can't restore the conversation: "${id}" already exists`);
      await db.write([store.undelete(id), deleteEntry]);
      writer.publish(store.getReadable(id).state);
    });
  }

  /** Deletes the conversation of a trash item for good. */
  async purge(record: unknown, deleteEntry: Statement): Promise<void> {
    const { db, store, blocks, locks } = this.#deps;
    const { id } = record as { id: string };
    await locks.run(id, async () => {
      // Restored after the item was read.
      if (store.exists(id)) return;
      await db.write([deleteEntry, ...store.remove(id), ...blocks.removeAll(id)]);
    });
  }
}

/** Dependencies of `MessageTrash`. */
export interface MessageTrashDeps {
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  locks: KeyedMutex;
  writer: ConversationWriter;
}

/** Deleted messages. The trash item contains them. */
export class MessageTrash {
  readonly #deps: MessageTrashDeps;

  constructor(deps: MessageTrashDeps) {
    this.#deps = deps;
  }

  /** Restores the messages of a trash item. @throws {AppError} `conflict` */
  async restore(record: unknown, deleteEntry: Statement): Promise<void> {
    const { store, blocks, locks, writer } = this.#deps;
    const { conversationId: id, removed } = record as TrashedMessagesRecord;
    await locks.run(id, async () => {
      const state = store.find(id);
      if (state === undefined) {
        throw new AppError("conflict", `Can't restore the messages: conversation "${id}" no longer exists`);
      }
      const change = restoreMessages(this.#deps, id, removed);
      const next = change.countOnPath === 0 ? state : dropSummaryAround(blocks, state, removed.place);
      await writer.write(next, change.countOnPath, change, [deleteEntry]);
    });
  }
}
