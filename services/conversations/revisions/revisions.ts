/** Lists, compares and restores past states of a conversation. */
import { isDeepStrictEqual } from "node:util";
import { AppError } from "../../errors.ts";
import type { Database, Statement } from "../../storage/database/database.ts";
import type { BlockChange, BlockStore } from "../blocks/block_store.ts";
import type { ConversationHead, ConversationState } from "../conversation.ts";
import type { ConversationWriter } from "../conversation_writer.ts";
import type { TextChange } from "../new_messages.ts";
import { getContentText, type Message, withoutNulls, withPin } from "../message.ts";
import { allMessages, getPath, type Replacement, replaceMessages, toMessageTree } from "../message_tree.ts";
import { restoreMessages } from "../conversation_trash.ts";
import { deleteReplyRow, type LiveReplies } from "../live_replies.ts";
import { dropStaleSummary, dropSummaryAround } from "../chapters.ts";
import { assertExpected, type ExpectedVersion } from "../../storage/preconditions.ts";
import { ROOT_SEGMENT } from "../conversation_tree.ts";
import { openRevision, type Revision, type RevisionRecord, type RevisionStore } from "./revision_store.ts";
import type { ConversationStore } from "../conversation_store.ts";
import type { VariantStore } from "../variants.ts";
import type { KeyedMutex } from "../../async/locks.ts";

/** Dependencies of `Revisions`. */
export interface RevisionsDeps {
  db: Database;
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  writer: ConversationWriter;
  revisions: RevisionStore;
  live: LiveReplies;
  locks: KeyedMutex;
  now(): number;
}

/** Lists and restores revisions. */
export class Revisions {
  readonly #deps: RevisionsDeps;

  constructor(deps: RevisionsDeps) {
    this.#deps = deps;
  }

  /** Lists the revisions, newest first. @throws {AppError} `not_found` */
  list(id: string): Revision[] {
    this.#deps.store.get(id);
    return this.#deps.revisions.list(id);
  }

  /** Compares a revision with the current state. @throws {AppError} `not_found` */
  compare(id: string, n: number): Promise<Revision & RevisionDifference> {
    const { store, locks, revisions } = this.#deps;
    return locks.run(id, async () => {
      const state = store.get(id);
      const record = revisions.get(id, n);
      const revision = revisions.list(id).find((each) => each.n === n)!;
      return { ...revision, ...await compareRevision(this.#deps, state, record) };
    });
  }

  /**
   * Restores what a change replaced: the fields and messages of the whole conversation, or a single message. The
   * current state becomes a revision, too.
   *
   * @throws {AppError} `not_found`, `revision_mismatch`, `conflict` while a reply is running or if a message ID is
   *   taken
   */
  restore(id: string, n: number, expected?: ExpectedVersion): Promise<void> {
    const { store, live, locks, revisions } = this.#deps;
    return locks.run(id, async () => {
      const state = store.getForWrite(id);
      assertExpected(`conversation "${id}"`, expected, state.revision);
      const record = revisions.get(id, n);
      const running = live.findByConversation(id);
      if (running !== undefined) {
        throw new AppError("conflict", `Message "${running.messageId}" is being written. Stop the reply first`);
      }
      if (record.removed !== undefined) {
        const change = restoreMessages(this.#deps, id, record.removed);
        const next = change.countOnPath === 0
          ? state
          : dropSummaryAround(this.#deps.blocks, state, record.removed.place);
        await this.#deps.writer.write(next, change.countOnPath, change);
      } else if (record.edited !== undefined) await this.#restoreMessage(state, record.edited);
      else await this.#restoreWhole(state, n, record);
    });
  }

  /** Deletes revisions that are too old. */
  async sweep(): Promise<void> {
    const { locks, revisions, db } = this.#deps;
    for (const id of revisions.listOverdue()) {
      await locks.run(id, async () => {
        const statements = revisions.prune(id);
        if (statements.length > 0) await db.write(statements);
      });
    }
  }

  async #restoreMessage(state: ConversationState, edited: Message): Promise<void> {
    const { blocks, revisions, variants, now } = this.#deps;
    blocks.requireOnPath(state.id, edited.id);
    if (blocks.findRow(state.id, edited.id) === undefined) {
      throw new AppError("conflict", `Can't restore message "${edited.id}": it was deleted`);
    }
    const extraStatements: Statement[] = [];
    const restoreMessage = (present: Message) => {
      if (edited.active_variant >= present.variant_count) {
        throw new AppError(
          "conflict",
          `Can't restore version ${edited.active_variant} of message "${edited.id}": it was deleted`,
        );
      }
      if (present.active_variant !== edited.active_variant) extraStatements.push(...variants.keep(state.id, present));
      // Versions added since then stay.
      return { ...edited, variant_count: present.variant_count, updated_at: new Date(now()).toISOString() };
    };
    const edit = editOrSwitch(blocks, state, edited, restoreMessage);
    extraStatements.push(
      deleteReplyRow(state.id, edited.id),
      ...revisions.keep(state, "restore", { edited: edit.before }),
    );
    const kind = edit.isSwitched ? "path" : "content";
    const next = dropStaleSummary(blocks, state, edited.id, kind);
    const head = withPin(next.head, edit.before, edited);
    await this.#deps.writer.write({ ...next, head }, edit.added, edit, extraStatements);
  }

  async #restoreWhole(state: ConversationState, n: number, record: RevisionRecord): Promise<void> {
    const { blocks, revisions, variants } = this.#deps;
    const head = record.head ?? state.head;
    if (record.blocks === undefined) {
      const change: BlockChange = { statements: [], last: "unchanged", touched: {} };
      const revision = revisions.keep(state, "restore", { head: state.head });
      // The messages stay, and so does their summary.
      const { summary, chapters, pinned_message_ids } = state.head;
      const restored = withoutNulls({ ...head, summary, chapters, pinned_message_ids });
      await this.#deps.writer.write({ ...state, head: restored }, 0, change, revision);
      return;
    }
    const storedTree = await blocks.openTree(state.id);
    const present = new Set(allMessages(toMessageTree(storedTree)).map(({ id }) => id));
    const tree = await openRevision(blocks, state.id, record);
    for (const [segment, messages] of tree.segments) {
      tree.segments.set(
        segment,
        messages.map((message) => markSettled(message)),
      );
    }
    const messages = allMessages(tree);
    const since = await revisions.readTextsSince(state.id, n);
    const back = messages.filter((message) => message.variant_count > 1).flatMap(({ id }) => since.get(id) ?? []);
    const replaced = back.map(({ mid }) => mid).filter((mid) => present.has(mid));
    const texts: TextChange = {
      statements: variants.restore(state.id, back),
      mids: [...new Set(back.map(({ mid }) => mid))],
      replaced: await variants.openMany(variants.listRowsOf(state.id, replaced)),
    };
    const replacement = { storedTree, head, tree, texts, cause: "restore" as const } satisfies Replacement;
    const { statements, touched } = await replaceMessages(this.#deps, state, replacement);
    const path = getPath(tree);
    const change: BlockChange = { statements, last: path.at(-1), touched };
    await this.#deps.writer.write({ ...state, head }, path.length - state.messageCount, change);
  }
}

/** Changes a message in place, or switches to its version. */
function editOrSwitch(
  blocks: BlockStore,
  { id, messageCount }: ConversationState,
  { id: mid, active_variant: n }: Message,
  change: (present: Message) => Message,
): BlockChange & { before: Message; added: number; isSwitched: boolean } {
  const point = blocks.getTree(id).find(mid);
  if (point === undefined || point.active === n) {
    return { ...blocks.edit(id, mid, change), added: 0, isSwitched: false };
  }
  const switched = blocks.switchVersion(id, mid, n, change);
  return { ...switched, added: switched.messageCount - messageCount, isSwitched: true };
}

/** Returns a message whose reply was running in the stored state, as no longer running. */
function markSettled(message: Message): Message {
  return message.status === "streaming" ? { ...message, status: "interrupted" } : message;
}

/** A message that differs. `before` is its text in the revision, `after` its current text. */
export interface MessageDifference {
  id: string;
  role: string;
  change: "changed" | "removed" | "added";
  before?: string;
  after?: string;
}

/** What restoring a revision would change. */
export interface RevisionDifference {
  /** Names of the fields that differ. */
  fields: string[];
  /** In the order of the conversation, at most `MOST_MESSAGES`. */
  messages: MessageDifference[];
  /** Number of further messages that differ. */
  more: number;
}

/** Maximum number of messages in a response. Enough to read, even if the whole conversation was replaced. */
const MAX_MESSAGES = 200;

/** Maximum length of a text in a response. */
const MAX_CHARACTERS = 20_000;

/**
 * Lists the differences between a revision and the current state. The caller holds the conversation's lock.
 *
 * @throws {AppError} `internal` if a block of either can't be decrypted.
 */
async function compareRevision(
  { blocks }: { blocks: BlockStore },
  state: ConversationState,
  record: RevisionRecord,
): Promise<RevisionDifference> {
  const { id } = state;
  if (record.removed !== undefined) {
    const { messages, segments = [], continuations = [], place } = record.removed;
    const home = place.segment ?? ROOT_SEGMENT;
    const lists = new Map([...segments.map((one) => [one.segment, one.messages] as const), [home, messages] as const]);
    const removed = getPath({ segments: lists, continuations }, home);
    const usedIds = blocks.listUsedMids(id, removed.map((message) => message.id));
    return limitDifferences(removed.filter((message) => !usedIds.has(message.id)).map(toRemoved));
  }
  if (record.edited !== undefined) {
    const row = blocks.findLiveRow(id, record.edited.id);
    const now = row && blocks.openMessages(id, row).find((message) => message.id === record.edited!.id);
    return limitDifferences(now === undefined ? [toRemoved(record.edited)] : listChanged([record.edited], [now]));
  }
  const fields = record.head === undefined ? [] : listDifferingFields(record.head, state.head);
  if (record.blocks === undefined) return { ...limitDifferences([]), fields };
  if (record.continuations !== undefined || !blocks.getTree(id).isLine) {
    const then = getPath(await openRevision(blocks, id, record));
    const now = (await blocks.openPath(id)).flatMap(({ messages }) => messages);
    return { ...limitDifferences(listChanged(then, now)), fields };
  }
  const rows = record.blocks.map((name) => blocks.findVersion(id, name)).filter((row) => row !== undefined);
  const present = blocks.listRows(id);
  // A block that is still in use has the same messages.
  const getName = (row: { id: number; version: number }) => `${row.id}/${row.version}`;
  const [then, now] = [new Set(rows.map(getName)), new Set(present.map(getName))];
  const open = async (list: typeof rows, others: Set<string>) =>
    (await blocks.openMany(id, list.filter((row) => !others.has(getName(row))))).flatMap(({ messages }) => messages);
  return { ...limitDifferences(listChanged(await open(rows, now), await open(present, then))), fields };
}

function listChanged(before: readonly Message[], after: readonly Message[]): MessageDifference[] {
  const now = new Map(after.map((message) => [message.id, message]));
  const then = new Set(before.map(({ id }) => id));
  const missing = before.flatMap((message) => {
    const present = now.get(message.id);
    if (present === undefined) return [toRemoved(message)];
    if (isDeepStrictEqual(getVisibleFields(message), getVisibleFields(present))) return [];
    const { id, role } = message;
    return [{ id, role, change: "changed" as const, before: getText(message), after: getText(present) }];
  });
  const added = after.filter(({ id }) => !then.has(id)).map((message) => (
    { id: message.id, role: message.role, change: "added" as const, after: getText(message) }
  ));
  return [...missing, ...added];
}

function toRemoved(message: Message): MessageDifference {
  return { id: message.id, role: message.role, change: "removed", before: getText(message) };
}

function limitDifferences(messages: MessageDifference[]): RevisionDifference {
  return { fields: [], messages: messages.slice(0, MAX_MESSAGES), more: Math.max(0, messages.length - MAX_MESSAGES) };
}

/** Returns the visible fields of a message. Times and token counts don't count as differences. */
function getVisibleFields(
  { role, content, reasoning, hidden, character_id, persona_id, attachments }: Message,
): unknown {
  return [role, content, reasoning, hidden ?? false, character_id ?? null, persona_id ?? null, attachments ?? []];
}

function getText({ content }: Message): string {
  return getContentText(content).slice(0, MAX_CHARACTERS);
}

function listDifferingFields(before: ConversationHead, after: ConversationHead): string[] {
  const [then, now] = [before as unknown as Record<string, unknown>, after as unknown as Record<string, unknown>];
  const names = new Set([...Object.keys(then), ...Object.keys(now)]);
  return [...names].filter((name) => !isDeepStrictEqual(then[name] ?? null, now[name] ?? null)).sort();
}
