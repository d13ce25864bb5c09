/**
 * Writes conversations: the statements and events that every change of a conversation has in common. Each change is one
 * transaction under the conversation's lock and increases its revision by one.
 */
import { addReferences } from "../attachments/attachment_rows.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { KeyedMutex } from "../async/locks.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import { assertExpected, type ExpectedVersion } from "../storage/preconditions.ts";
import type { BlockChange, BlockEdit, BlockStore, OpenTree, VersionChange } from "./blocks/block_store.ts";
import { dropStaleSummary, keepsSummary } from "./chapters.ts";
import { type ConversationHead, type ConversationState, toLastMessage } from "./conversation.ts";
import type { ConversationStore } from "./conversation_store.ts";
import type { LiveReplies, LiveReply } from "./live_replies.ts";
import { type Message, withPin } from "./message.ts";
import { getPath, type MessageTree, type Replacement, replaceMessages, replaceTree } from "./message_tree.ts";
import { NO_TEXT_CHANGE, type TextChange } from "./new_messages.ts";
import type { ChangeLog } from "./revisions/change_log.ts";
import type { RevisionStore } from "./revisions/revision_store.ts";
import type { VariantStore } from "./variants.ts";

/** Dependencies of `ConversationWriter`. */
export interface ConversationWriterDeps {
  db: Database;
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  revisions: RevisionStore;
  changes: ChangeLog;
  live: LiveReplies;
  locks: KeyedMutex;
  events: EventHub;
  now(): number;
}

/** Writes conversations and their messages. */
export class ConversationWriter {
  readonly #deps: ConversationWriterDeps;

  constructor(deps: ConversationWriterDeps) {
    this.#deps = deps;
  }

  /** Saves an edit as the conversation's next revision. The caller holds the conversation's lock. */
  async write(
    state: ConversationState,
    messagesAdded: number,
    edit: BlockChange,
    extraStatements: Statement[] = [],
  ): Promise<ConversationState> {
    const next = {
      ...state,
      revision: state.revision + 1,
      updatedAtMs: this.#deps.now(),
      messageCount: state.messageCount + messagesAdded,
    };
    const { store } = this.#deps;
    const last = edit.last === "unchanged" ? store.findLastMessage(state.id) : toLastMessage(edit.last);
    await this.#deps.db.write([
      store.update(next, last),
      ...this.#deps.changes.record(next.id, next.revision, edit.touched),
      ...edit.statements,
      ...extraStatements,
    ]);
    this.publish(next);
    return next;
  }

  /** Returns the statements that replace the fields of a conversation. The previous ones are stored as a revision. */
  createHeadStatements(before: ConversationState, state: ConversationState): Statement[] {
    return [
      ...this.#updateFields(state),
      ...this.#deps.revisions.keep(before, "patch", { head: before.head }),
      ...addReferences("conversation", state.id, JSON.stringify(state.head)),
    ];
  }

  /** Returns the statements that store changed fields, without a change of the messages. */
  #updateFields(state: ConversationState): Statement[] {
    const { store, changes } = this.#deps;
    return [
      store.update(state, store.findLastMessage(state.id)),
      ...changes.record(state.id, state.revision, {}),
    ];
  }

  /**
   * Returns the statements that store messages and fields under an id, and the JSON of the messages unless it is long.
   *
   * @param past The previous state, which is stored as a revision.
   * @param snippetOwner The message to show in lists. Defaults to the last.
   */
  async createReplaceStatements(
    past: ConversationState | undefined,
    state: ConversationState,
    { tree, storedTree, texts = NO_TEXT_CHANGE, snippetOwner = getPath(tree).at(-1) }: {
      tree: MessageTree;
      storedTree: OpenTree;
      texts?: TextChange;
      snippetOwner?: Message;
    },
  ): Promise<{ statements: Statement[]; text?: string }> {
    const { store, blocks } = this.#deps;
    const last = toLastMessage(snippetOwner);
    const referred = addReferences("conversation", state.id, JSON.stringify(state.head));
    const first = getPath(tree)[0];
    if (past === undefined) {
      const { statements, text } = await replaceTree(blocks, state.id, tree);
      return {
        statements: [store.insert(state, last, first), ...referred, ...statements, ...texts.statements],
        text,
      };
    }
    const replacement = { storedTree, head: state.head, tree, texts, cause: "put" as const } satisfies Replacement;
    const { statements, text, touched } = await replaceMessages(this.#deps, past, replacement);
    return {
      statements: [
        store.update(state, last, first),
        ...this.#deps.changes.record(state.id, state.revision, touched),
        ...referred,
        ...statements,
      ],
      text,
    };
  }

  /**
   * Changes one message. Removes it if `change` returns `undefined`.
   *
   * @param options.extraStatements Returns additional statements for the transaction. Called after `change`.
   * @param options.withRounds `change` gets and returns a reply with its `tool_rounds`; see `BlockStore.editReply`.
   * @param options.byReply True if the caller is the reply that writes the message. Other callers get `conflict` while
   *   it runs.
   * @param options.written Called under the lock with the new conversation, once it's saved.
   */
  editMessage(
    id: string,
    mid: string,
    change: (before: Message) => Message | undefined,
    options: {
      expected?: ExpectedVersion;
      extraStatements?: (before: ConversationState) => Statement[];
      /** Returns the change of the active path that the change of the message requires, if any. */
      switching?: (before: Message, after: Message) => VersionChange | undefined;
      withRounds?: boolean;
      byReply?: boolean;
      written?: (after: ConversationState) => void;
    } = {},
  ): Promise<Message | undefined> {
    return this.#deps.locks.run(id, async () => {
      const { store } = this.#deps;
      // If the conversation is in the trash, a reply gets `not_found` and saves nothing.
      const state = options.byReply ? store.get(id) : store.getForWrite(id);
      assertExpected(`conversation "${id}"`, options.expected, state.revision);
      const { live, blocks } = this.#deps;
      const running = live.findByConversation(id)?.messageId;
      const isBeingWritten = running === mid ||
        (running !== undefined && blocks.findLiveRow(id, mid) !== undefined &&
          blocks.getMessage(id, mid).reply_id === running);
      if (!options.byReply && isBeingWritten) {
        throw new AppError("conflict", `Message "${mid}" is being written. Stop the reply first`);
      }
      const whole = options.withRounds ? blocks.editReply(id, mid, change) : undefined;
      let edit: BlockEdit = whole ?? blocks.edit(id, mid, change);
      let added = whole?.messagesAdded ?? (edit.after === undefined ? -1 : 0);
      const switched = edit.after && options.switching?.(edit.before, edit.after);
      if (switched !== undefined) {
        edit = switched;
        added = switched.messageCount - state.messageCount;
      }
      const isSame = edit.after !== undefined && switched === undefined && keepsSummary(edit.before, edit.after);
      const kind = switched !== undefined ? "path" : edit.after === undefined ? "removed" : "content";
      const next = isSame ? state : dropStaleSummary(this.#deps.blocks, state, mid, kind);
      const after = await this.write(
        { ...next, head: withPin(next.head, edit.before, edit.after) },
        added,
        edit,
        options.extraStatements?.(state) ?? [],
      );
      options.written?.(after);
      return edit.after;
    });
  }

  /**
   * Changes fields on behalf of the server, not the user, under the conversation's lock. The conversation's position in
   * lists doesn't change, and no revision is stored.
   *
   * @param change Returns the new fields, or `undefined` for no change.
   */
  updateHead(id: string, change: (head: ConversationHead) => ConversationHead | undefined): Promise<void> {
    const { db, store, locks } = this.#deps;
    return locks.run(id, async () => {
      const state = store.find(id);
      const head = state && change(state.head);
      if (state === undefined || head === undefined) return;
      const next = { ...state, revision: state.revision + 1, head };
      await db.write(this.#updateFields(next));
      this.publish(next);
    });
  }

  /** Marks a conversation as read. Its revision and time stay the same. @throws {AppError} `not_found` */
  markRead(id: string): Promise<void> {
    const { db, store, locks } = this.#deps;
    return locks.run(id, async () => {
      const state = store.get(id);
      if (!store.isUnread(id)) return;
      await db.write([store.markRead(id)]);
      this.publish(state);
    });
  }

  /**
   * Changes a conversation under its lock, and stops a running reply first if necessary. A rejected change doesn't stop
   * a reply.
   *
   * @param target.find Returns the current conversation.
   * @param target.isConflicting Returns whether a running reply must be stopped.
   * @throws {AppError} `revision_mismatch`, and like `LiveReply.stop`.
   */
  async runWithoutReply<S extends ConversationState | undefined, T>(
    id: string,
    { find, expected, isConflicting }: {
      find: () => S;
      expected: ExpectedVersion | undefined;
      isConflicting: (running: LiveReply) => boolean;
    },
    change: (before: S) => Promise<T>,
  ): Promise<T> {
    const { live, locks } = this.#deps;
    for (let demanded = expected;;) {
      const done = await locks.run(
        id,
        async (): Promise<{ result: T } | { running: LiveReply; revision?: number }> => {
          const before = find();
          assertExpected(`conversation "${id}"`, demanded, before?.revision);
          const running = live.findByConversation(id);
          if (running !== undefined && !running.isSaved && isConflicting(running)) {
            return { running, revision: before?.revision };
          }
          return { result: await change(before) };
        },
      );
      if ("result" in done) {
        return done.result;
      }
      await done.running.stop();
      // The expected revision was the current one. Saving the reply increased it by one.
      if (demanded !== undefined && done.revision !== undefined) demanded = done.revision + 1;
    }
  }

  /**
   * Rejects an ID that differs from another one only in case. The caller holds the conversation's lock.
   *
   * @throws {AppError} `conflict`
   */
  refuseCaseClash(id: string): void {
    const clash = this.#deps.store.findCaseClash(id);
    if (clash !== undefined) {
      throw new AppError("conflict", `The ID "${id}" differs from "${clash}" only in case`);
    }
  }

  /** Publishes the new state of a conversation. */
  publish(state: ConversationState): void {
    this.#deps.events.publish({ kind: "conversation", id: state.id, revision: state.revision });
  }
}
