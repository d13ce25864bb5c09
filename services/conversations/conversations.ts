/**
 * Saves, changes and removes conversations. Each change is one transaction under the conversation's lock and increases
 * its revision by one.
 */
import { isDeepStrictEqual } from "node:util";
import { createUuidV7 } from "../crypto/random.ts";
import { addReferences } from "../attachments/attachment_rows.ts";
import type { ImagePartsDeps } from "../attachments/image_parts.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import { yieldIfTickUsedUp } from "../async/delay.ts";
import type { TrashBin } from "../storage/trash.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import type { KeyedMutex } from "../async/locks.ts";
import { assertExpected, type ExpectedVersion } from "../storage/preconditions.ts";
import { isLost, type OpenBlock } from "./blocks/block_rows.ts";
import type { BlockChange, BlockEdit, BlockStore, OpenTree, VersionChange } from "./blocks/block_store.ts";
import type { ChangeLog } from "./revisions/change_log.ts";
import {
  type ConversationInput,
  type ConversationState,
  parseHead,
  patchHead,
  toHeadJson,
  toSnippet,
} from "./conversation.ts";
import type { ConversationReader } from "./conversation_reader.ts";
import type { ConversationStreams } from "./conversation_streams.ts";
import { type ConversationStore, createTrashId, type Draft } from "./conversation_store.ts";
import type { LiveReplies, LiveReply } from "./live_replies.ts";
import { listPinnedIds, type Message, type MessageInput, parseIsoTime, withPin, withPins } from "./message.ts";
import {
  changeTexts,
  completeMessages,
  createGreeting,
  createGreetingQuestion,
  type GreetingSource,
  NO_TEXT_CHANGE,
  prepareMessages,
  type TextChange,
} from "./new_messages.ts";
import {
  branchIds,
  EMPTY_TREE,
  getPath,
  type MessageTree,
  replaceMessages,
  replaceTree,
  toMessageTree,
  withPath,
} from "./message_tree.ts";
import type { RevisionStore } from "./revisions/revision_store.ts";
import { dropChangedSummary, dropStaleSummary, keepsSummary, reconcileChapters, withChapters } from "./chapters.ts";
import type { VariantStore } from "./variants.ts";

/** Dependencies of `Conversations`. */
export interface ConversationsDeps {
  db: Database;
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  revisions: RevisionStore;
  changes: ChangeLog;
  trash: TrashBin;
  images: ImagePartsDeps;
  reader: ConversationReader;
  streams: ConversationStreams;
  live: LiveReplies;
  locks: KeyedMutex;
  events: EventHub;
  /** Returns the greetings of a character. Absent in tests without characters. */
  greetings?: GreetingSource;
  now(): number;
}

/** A saved conversation. */
export interface SavedConversation {
  isNew: boolean;
  revision: number;
  /** The conversation in the API's format. A large one is streamed in pieces. */
  json: Uint8Array | AsyncGenerator<Uint8Array>;
}

const encoder = new TextEncoder();

/** Saves, changes and removes conversations and drafts. */
export class Conversations {
  #deps: ConversationsDeps;

  constructor(parts: ConversationsDeps) {
    this.#deps = parts;
  }

  /** Records which messages each revision changed. */
  get changes(): ChangeLog {
    return this.#deps.changes;
  }

  /** Reads conversations and lists of them. */
  get reader(): ConversationReader {
    return this.#deps.reader;
  }

  /**
   * Saves a whole conversation and replaces an existing one.
   *
   * If the message of a running reply is among `messages`, its text stays; otherwise the reply is stopped first. A
   * message with `variants` gets these versions. The versions of others don't change.
   *
   * @param expected The revision that must be the current one.
   * @throws {AppError} `in_trash`, `revision_mismatch`, `conflict`, `invalid_request`
   */
  async put(
    id: string,
    input: ConversationInput & { messages: MessageInput[] },
    expected?: ExpectedVersion,
  ): Promise<SavedConversation> {
    const { store, live, images } = this.#deps;
    const given = await prepareMessages(images, input.messages);
    const { mids } = given;
    const isLeftOut = (running: LiveReply) => !mids.includes(running.messageId);
    const find = () => {
      store.refuseRemoved(id);
      if (!store.exists(id)) return undefined;
      const { state, isHeadUnreadable } = store.getReadable(id);
      if (!isHeadUnreadable || expected !== undefined) return state;
      throw new AppError(
        "conflict",
        `The settings of conversation "${id}" can't be read. Send If-Match with its revision to replace them`,
      );
    };
    return await this.#runWithoutReply(id, { find, expected, isInTheWay: isLeftOut }, async (before) => {
      const now = this.#deps.now();
      const storedTree = before === undefined ? EMPTY_TREE : await this.#deps.blocks.openReadableTree(id);
      this.#refuseLosingUnreadable(id, storedTree, mids);
      await yieldIfTickUsedUp();
      const [treeBefore, branches] = [toMessageTree(storedTree), branchIds(storedTree)];
      const path = new Map(getPath(treeBefore).map((message) => [message.id, message]));
      if (branches.size > 0) refuseOffPath(this.#deps.blocks, id, mids, path);
      const unreadable = new Set(listUnreadable(storedTree).flatMap(({ messages }) => messages.map((one) => one.id)));
      const stored = new Map([...path].filter(([mid]) => !unreadable.has(mid)));
      this.refuseCaseClash(id);
      const isoNow = new Date(now).toISOString();
      const runningId = live.findByConversation(id)?.messageId;
      const { messages, withTexts } = await completeMessages(given, { stored, branches, runningId, now: isoNow });
      const state: ConversationState = {
        id,
        revision: (before?.revision ?? 0) + 1,
        createdAtMs: before?.createdAtMs ?? Date.parse(parseIsoTime(input.created_at) ?? isoNow),
        updatedAtMs: now,
        messageCount: messages.length,
        head: withPins(
          dropChangedSummary(
            reconcileChapters(parseHead(input), before?.head),
            before?.head,
            [...stored.values()],
            messages,
          ),
          listPinnedIds(messages),
        ),
      };
      const draft = this.#createDraftStatements(id, input, before === undefined);
      const texts = await changeTexts(this.#deps.variants, id, withTexts);
      const tree = withPath(treeBefore, messages);
      refuseMovingUnreadable(id, storedTree, tree);
      const { statements, text } = await this.replace(before, state, { tree, storedTree, texts });
      await yieldIfTickUsedUp();
      await this.#deps.db.write([...statements, ...draft], { isMoved: text === undefined });
      this.publish(state);
      if (draft.length > 0) this.#deps.events.publish({ kind: "draft", id, revision: store.getDraft(id).version });
      // Built from the data just written, unless a running reply has more text by now.
      const json = runningId === undefined && text !== undefined && !store.getDraft(id).isUnreadable
        ? encoder.encode(`${toHeadJson(state, store.getDraft(id))},"messages":[${text}]}`)
        : (await this.#deps.streams.open(id, { isUnderWay: true })).json;
      return { isNew: before === undefined, revision: state.revision, json };
    });
  }

  /**
   * Rejects a save that replaces unreadable blocks of the active path, unless it replaces all their messages. A client
   * that built its messages from the readable blocks would delete the others.
   *
   * @throws {AppError} `conflict`
   */
  #refuseLosingUnreadable(id: string, storedTree: OpenTree, mids: string[]): void {
    const path = this.#deps.blocks.getTree(id);
    const saved = new Set(mids);
    for (const { row, messages } of listUnreadable(storedTree)) {
      if (path.findRangeIndex(row) === undefined || messages.length === 0) continue;
      // A block on a damaged page of the database file has no row that could be replaced.
      if (isLost(row) || messages.some((message) => !saved.has(message.id))) throw createUnreadableError(id, messages);
    }
  }

  /**
   * Returns the statements that store messages and fields under an id, and the JSON of the messages unless it is long.
   *
   * @param past The previous state, which is stored as a revision.
   * @param snippetOwner The message to show in lists. Defaults to the last.
   */
  async replace(
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
    const snippet = toSnippet(snippetOwner);
    const referred = addReferences("conversation", state.id, JSON.stringify(state.head));
    const first = getPath(tree)[0];
    if (past === undefined) {
      const { statements, text } = await replaceTree(blocks, state.id, tree);
      return {
        statements: [store.insert(state, snippet, first), ...referred, ...statements, ...texts.statements],
        text,
      };
    }
    const replacement = { storedTree, head: state.head, tree, texts, cause: "put" as const };
    const { statements, text, touched } = await replaceMessages(this.#deps, past, replacement);
    return {
      statements: [
        store.update(state, snippet, first),
        ...this.#deps.changes.record(state.id, state.revision, touched),
        ...referred,
        ...statements,
      ],
      text,
    };
  }

  /**
   * Creates a conversation with a new id. It starts with a greeting of its first character, if any.
   *
   * @param greeting Number of the greeting, from 0; see `createGreeting`.
   * @throws {AppError} `invalid_request` for a greeting that the character doesn't have.
   */
  async create(input: ConversationInput, greeting?: number): Promise<{ id: string; revision: number }> {
    const { db, store, blocks, variants, greetings } = this.#deps;
    const id = createUuidV7();
    const now = this.#deps.now();
    const head = parseHead(input);
    const first = head.participants[0]?.character_id;
    const found = first === undefined ? undefined : await greetings?.(createGreetingQuestion(head, first));
    const opening = found && createGreeting(found, greeting, new Date(now).toISOString(), variants);
    const messages = opening === undefined ? [] : [opening.message];
    const state = { id, revision: 1, createdAtMs: now, updatedAtMs: now, messageCount: messages.length, head };
    await db.write([
      store.insert(state, toSnippet(opening?.message), opening?.message),
      ...blocks.append(id, messages),
      ...opening?.createStatements(id) ?? [],
    ]);
    this.publish(state);
    return state;
  }

  /**
   * Changes fields of a conversation but not its messages; null clears a field. A changed draft doesn't increase the
   * revision.
   *
   * @throws {AppError} `in_trash`, `not_found`, `revision_mismatch`, `invalid_request`
   */
  patch(id: string, patch: ConversationInput, expected?: ExpectedVersion): Promise<ConversationState> {
    const { store, db, locks, events, now } = this.#deps;
    return locks.run(id, async () => {
      const before = store.getForWrite(id);
      assertExpected(`conversation "${id}"`, expected, before.revision);
      const draft = typeof patch.draft === "string" ? mergeDraft(id, patch, store.getDraft(id)) : undefined;
      const settled = reconcileChapters(patchHead(before.head, patch), before.head);
      const head = patch.chapters === null ? withChapters(settled, []) : settled;
      const isHeadChanged = !isDeepStrictEqual(head, before.head);
      const state = isHeadChanged ? { ...before, head, revision: before.revision + 1, updatedAtMs: now() } : before;
      const statements = [
        ...(isHeadChanged ? [store.update(state, store.findSummary(id)?.snippet ?? "")] : []),
        ...(isHeadChanged ? this.#deps.changes.record(id, state.revision, {}) : []),
        ...(isHeadChanged ? this.#deps.revisions.keep(before, "patch", { head: before.head }) : []),
        ...(isHeadChanged ? addReferences("conversation", id, JSON.stringify(head)) : []),
        ...(draft === undefined ? [] : this.#saveDraft(id, draft)),
      ];
      if (statements.length > 0) await db.write(statements);
      if (isHeadChanged) this.publish(state);
      if (draft !== undefined) events.publish({ kind: "draft", id, revision: draft.version });
      return state;
    });
  }

  /** Moves a conversation to the trash. A running reply is stopped first; its text is saved. */
  async remove(id: string, expected?: ExpectedVersion): Promise<void> {
    const { store, db, trash, events, now } = this.#deps;
    const place = { find: () => store.getReadable(id).state, expected, isInTheWay: () => true };
    await this.#runWithoutReply(id, place, async (state) => {
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

  /** Saves the draft and returns its version. The conversation's revision and time stay the same. */
  saveDraft(id: string, text: string, expected?: ExpectedVersion): Promise<number> {
    const { store, locks, db, events } = this.#deps;
    return locks.run(id, async () => {
      store.getForWrite(id);
      const before = store.getDraft(id);
      assertExpected(`draft of conversation "${id}"`, expected, before.version);
      const draft = { text, version: before.version + 1 };
      await db.write(this.#saveDraft(id, draft));
      events.publish({ kind: "draft", id, revision: draft.version });
      return draft.version;
    });
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
    const snippet = edit.last === "unchanged"
      ? this.#deps.store.findSummary(state.id)?.snippet ?? ""
      : toSnippet(edit.last);
    await this.#deps.db.write([
      this.#deps.store.update(next, snippet),
      ...this.#deps.changes.record(next.id, next.revision, edit.touched),
      ...edit.statements,
      ...extraStatements,
    ]);
    this.publish(next);
    return next;
  }

  /**
   * Changes a conversation under its lock, and stops a running reply first if necessary. A rejected change doesn't stop
   * a reply.
   *
   * @param target.find Returns the current conversation.
   * @param target.isInTheWay Returns whether a running reply must be stopped.
   * @throws {AppError} `revision_mismatch`, and like `LiveReply.stop`.
   */
  async #runWithoutReply<S extends ConversationState | undefined, T>(
    id: string,
    { find, expected, isInTheWay }: {
      find: () => S;
      expected: ExpectedVersion | undefined;
      isInTheWay: (running: LiveReply) => boolean;
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
          if (running !== undefined && !running.isSaved && isInTheWay(running)) {
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

  /**
   * Returns the statements that save the draft of a conversation. It replaces the stored draft, unless `draft_version`
   * shows that the stored one is newer.
   */
  #createDraftStatements(id: string, input: ConversationInput, isNew: boolean): Statement[] {
    if (typeof input.draft !== "string") return [];
    const before = this.#deps.store.getDraft(id);
    const isStale = !isNew && input.draft_version !== undefined && input.draft_version !== before.version;
    if (input.draft === before.text || isStale) return [];
    return this.#saveDraft(id, { text: input.draft, version: before.version + 1 });
  }

  #saveDraft(id: string, draft: Draft): Statement[] {
    return [this.#deps.store.saveDraft(id, draft), ...addReferences("conversation", id, draft.text)];
  }

  /** Publishes the new state of a conversation. */
  publish(state: ConversationState): void {
    this.#deps.events.publish({ kind: "conversation", id: state.id, revision: state.revision });
  }
}

/** Rejects IDs of messages that are off the active path. @throws {AppError} `conflict` */
function refuseOffPath(blocks: BlockStore, id: string, mids: string[], path: ReadonlyMap<string, Message>): void {
  for (const mid of blocks.listUsedMids(id, mids)) if (!path.has(mid)) blocks.requireOnPath(id, mid);
}

/** Returns the unreadable blocks. */
function listUnreadable({ segments }: OpenTree): OpenBlock[] {
  return [...segments.values()].flat().filter((block) => block.isUnreadable);
}

/**
 * Rejects a save that would rewrite or delete unreadable blocks off the active path.
 *
 * @throws {AppError} `conflict`
 */
function refuseMovingUnreadable(id: string, storedTree: OpenTree, tree: MessageTree): void {
  const unreadable = listUnreadable(storedTree);
  if (unreadable.length === 0) return;
  const replaced = new Set(getPath(tree).map((message) => message.id));
  for (const { row, messages } of unreadable) {
    if (messages.every((message) => replaced.has(message.id))) continue;
    const segment = tree.segments.get(row.segment) ?? [];
    // The same objects in the same segment mean that their block isn't rewritten.
    if (messages.some((message) => !segment.includes(message))) throw createUnreadableError(id, messages);
  }
}

function createUnreadableError(id: string, messages: Message[]): AppError {
  return new AppError(
    "conflict",
    `Conversation "${id}" has ${messages.length} messages that can't be read, and saving it as a whole would delete them. ` +
      `Delete them first, or save it under another ID: ${
        messages.slice(0, 20).map((message) => message.id).join(", ")
      }`,
  );
}

/**
 * Returns the draft of a patch; `undefined` if it's unchanged.
 *
 * @throws {AppError} `revision_mismatch` for a stale version.
 */
function mergeDraft(id: string, patch: ConversationInput, before: Draft): Draft | undefined {
  const { draft, draft_version: version } = patch as { draft: string; draft_version?: number };
  if (version !== undefined && version !== before.version) {
    throw new AppError(
      "revision_mismatch",
      `The draft of conversation "${id}" is at version ${before.version}, not at ${version}`,
    );
  }
  return draft === before.text ? undefined : { text: draft, version: before.version + 1 };
}
