/** Reads and writes the rows of conversations and drafts. Heads, summaries and drafts are encrypted. */
import { AppError } from "../errors.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import type { ChatMessage } from "../llm/chat_event.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import {
  type ConversationHead,
  type ConversationState,
  type ConversationSummary,
  isGreetingTitle,
  type LastMessage,
  toSummary,
} from "./conversation.ts";
import type { Message } from "./message.ts";
import { createSummaryAad, PlaintextCache } from "./stored_form.ts";

interface Row {
  id: string;
  revision: number;
  created_at: number;
  updated_at: number;
  message_count: number;
  head: Uint8Array;
  deleted_at: number | null;
}

/** A draft and its version; version 0 if there never was a draft. */
export interface Draft {
  text: string;
  version: number;
  /** True if the draft can't be read. `text` is empty then. */
  isUnreadable?: boolean;
}

/** A message that waits for the end of a reply. */
export interface QueuedMessage {
  /** Its number; no other message of this queue has or had it. */
  n: number;
  /** The user message as it will be sent, with its `id`. Images are references to attachments. */
  message: ChatMessage & { id: string };
  /** ID of its reply. Fixed, so that sending twice is one reply. */
  assistantMessageId: string;
  /** IANA name of the time zone of the client that queued it. */
  timeZone?: string;
  /** Names of its files for clients, by the URL of the image or the ID of the document. */
  names?: Record<string, string>;
  /** ISO 8601, UTC. */
  createdAt: string;
}

/** The messages that wait in a conversation, in order. Version 0 if there never were any. */
export interface MessageQueue {
  version: number;
  /** The highest number so far. */
  last: number;
  items: readonly QueuedMessage[];
}

/** A conversation's revision, and how many messages would have to be read. */
export interface ConversationRevision {
  id: string;
  revision: number;
  messageCount: number;
}

/** A position in the list of conversations, newest first. */
export interface ListCursor {
  updatedAtMs: number;
  id: string;
}

const decoder = new TextDecoder();

/** Maximum total length of cached summaries in characters: about 500 conversations. */
const MAX_SUMMARY_CHARS = 256 * 1024;

/** Reads and writes conversation and draft rows. */
export class ConversationStore {
  #db: Database;
  #sealer: PurposeSealer;
  /** Cached because one request reads the head several times, and decrypting it takes longer than finding it. */
  readonly #heads = new PlaintextCache<string>();
  /** Cached because each write needs the previous summary. */
  readonly #summaries = new PlaintextCache<string>(MAX_SUMMARY_CHARS);

  constructor(db: Database, sealer: PurposeSealer) {
    this.#db = db;
    this.#sealer = sealer;
  }

  /** Finds a conversation that isn't in the trash. */
  find(id: string): ConversationState | undefined {
    const row = this.#findRow(id);
    return row === undefined || row.deleted_at !== null ? undefined : this.#toState(row);
  }

  /** @throws {AppError} `not_found` */
  get(id: string): ConversationState {
    const state = this.find(id);
    if (state === undefined) throw noConversation(id);
    return state;
  }

  /**
   * Returns a conversation even if its head can't be read. In that case, the fields of the list replace it.
   *
   * @throws {AppError} `not_found`
   */
  getReadable(id: string): { state: ConversationState; isHeadUnreadable: boolean } {
    const row = this.#findRow(id);
    if (row === undefined || row.deleted_at !== null) throw noConversation(id);
    try {
      return { state: this.#toState(row), isHeadUnreadable: false };
    } catch {
      const { title = "", character_ids: ids = [], pinned, folder } = this.findSummary(id) ?? {};
      const head = { title, participants: ids.map((character_id) => ({ character_id })), pinned, folder };
      return { state: toState(row, head), isHeadUnreadable: true };
    }
  }

  /** Returns the revision of a conversation. @throws {AppError} `not_found` */
  getRevision(id: string): number {
    const row = this.#db.get<{ revision: number }>(
      "SELECT revision FROM conversation WHERE id = ? AND deleted_at IS NULL",
      id,
    );
    if (row === undefined) throw noConversation(id);
    return row.revision;
  }

  /**
   * Returns a conversation that is about to change.
   *
   * @throws {AppError} `in_trash`, `not_found`
   */
  getForWrite(id: string): ConversationState {
    this.refuseRemoved(id);
    return this.get(id);
  }

  /**
   * Rejects the ID of a conversation in the trash. It stays taken until that conversation is purged.
   *
   * @throws {AppError} `in_trash`
   */
  refuseRemoved(id: string): void {
    if (!this.isRemoved(id)) return;
    const trashId = createTrashId(id);
    throw new AppError(
      "in_trash",
      `Conversation "${id}" is in the trash. Restore it with POST /api/trash/${trashId}/restore, or use another id`,
      { trashId },
    );
  }

  /** Returns whether a conversation with this ID exists outside the trash. */
  exists(id: string): boolean {
    return this.#db.get("SELECT 1 FROM conversation WHERE id = ? AND deleted_at IS NULL", id) !== undefined;
  }

  /** Returns whether a conversation is in the trash. */
  isRemoved(id: string): boolean {
    return this.#db.get("SELECT 1 FROM conversation WHERE id = ? AND deleted_at IS NOT NULL", id) !== undefined;
  }

  /** Returns which IDs belong to conversations, and whether these are in the trash. */
  findStates(ids: string[]): Map<string, "present" | "trash"> {
    const rows = this.#db.all<{ id: string; deleted_at: number | null }>(
      "SELECT id, deleted_at FROM conversation WHERE id IN (SELECT value FROM json_each(?))",
      JSON.stringify(ids),
    );
    return new Map(rows.map(({ id, deleted_at }) => [id, deleted_at === null ? "present" : "trash"]));
  }

  /** Finds a conversation in the trash. */
  findRemoved(id: string): ConversationState | undefined {
    const row = this.#findRow(id);
    return row === undefined || row.deleted_at === null ? undefined : this.#toState(row);
  }

  /** Returns the statement that restores a conversation from the trash. */
  undelete(id: string): Statement {
    return {
      sql: "UPDATE conversation SET deleted_at = NULL WHERE id = ? AND deleted_at IS NOT NULL",
      params: [id],
      expectChanges: 1,
    };
  }

  /** Opens a sealed head off the serving thread. @throws {AppError} `internal` */
  async openHead(
    { id, revision, head }: { id: string; revision: number; head: Uint8Array },
  ): Promise<ConversationHead> {
    return JSON.parse(decoder.decode(await this.#sealer.open(createHeadAad(id, revision), head)));
  }

  /** Returns the sealed heads of some conversations. */
  listHeads(ids: string[]): { id: string; revision: number; head: Uint8Array }[] {
    return this.#db.all(
      "SELECT id, revision, head FROM conversation WHERE deleted_at IS NULL AND id IN (SELECT value FROM json_each(?))",
      JSON.stringify(ids),
    );
  }

  /** Finds an id that differs from this one only in case. */
  findCaseClash(id: string): string | undefined {
    return this.#db.get<{ id: string }>("SELECT id FROM conversation WHERE lower(id) = lower(?) AND id <> ?", id, id)
      ?.id;
  }

  /** Returns the ids of all conversations, the most recently changed first. */
  listIds(): string[] {
    try {
      return this.#db.all<{ id: string }>(
        "SELECT id FROM conversation WHERE deleted_at IS NULL ORDER BY updated_at DESC, id",
      ).map((row) => row.id);
    } catch {
      return this.#listRowsOneByOne().map((row) => row.id);
    }
  }

  /** Returns the revisions of all conversations, the most recently changed first. */
  listRevisions(): { id: string; revision: number }[] {
    return this.#db.all("SELECT id, revision FROM conversation WHERE deleted_at IS NULL ORDER BY updated_at DESC, id");
  }

  /** Returns the revisions of the next conversations by id. @param after An id, or "" for the first ones */
  listRevisionsAfter(after: string, limit: number): ConversationRevision[] {
    return this.#db.all(
      `SELECT id, revision, message_count AS messageCount FROM conversation
       WHERE deleted_at IS NULL AND id > ? ORDER BY id LIMIT ?`,
      after,
      limit,
    );
  }

  /** Returns those of some conversations that exist, the most recently changed first. */
  listNewestFirst(ids: readonly string[]): string[] {
    return this.#db.all<{ id: string }>(
      `SELECT id FROM conversation WHERE deleted_at IS NULL AND id IN (SELECT value FROM json_each(?))
       ORDER BY updated_at DESC, id`,
      JSON.stringify(ids),
    ).map(({ id }) => id);
  }

  /** Returns one page of sealed summaries. */
  listSummaries(
    limit: number,
    after?: ListCursor,
  ): {
    id: string;
    revision: number;
    updated_at: number;
    draft_version: number;
    unread: number;
    summary: Uint8Array;
  }[] {
    const [at, id] = [after?.updatedAtMs ?? Number.MAX_SAFE_INTEGER, after?.id ?? ""];
    try {
      return this.#db.all(
        `SELECT id, revision, updated_at, coalesce(d.version, 0) AS draft_version, u.since IS NOT NULL AS unread, summary
         FROM conversation LEFT JOIN draft d ON d.conversation_id = id LEFT JOIN unread u ON u.conversation_id = id
         WHERE deleted_at IS NULL AND (updated_at < ?1 OR (updated_at = ?1 AND id > ?2)) ORDER BY updated_at DESC, id LIMIT ?3`,
        at,
        id,
        limit,
      );
    } catch {
      return this.#listRowsOneByOne()
        .filter((row) => row.updated_at < at || (row.updated_at === at && row.id > id))
        .slice(0, limit);
    }
  }

  /** Returns all rows one by one, because a page of the database file is damaged. Rows on that page come last, without content. */
  #listRowsOneByOne() {
    const ids = this.#db.all<{ id: string }>("SELECT id FROM conversation INDEXED BY sqlite_autoindex_conversation_1");
    return ids.flatMap(({ id }) => {
      try {
        const row = this.#findRow(id);
        if (row === undefined || row.deleted_at !== null) return [];
        const { summary } = this.#db.get<{ summary: Uint8Array }>("SELECT summary FROM conversation WHERE id = ?", id)!;
        return [{
          id,
          revision: row.revision,
          updated_at: row.updated_at,
          draft_version: this.getDraft(id).version,
          unread: Number(this.isUnread(id)),
          summary,
        }];
      } catch {
        return [{ id, revision: 0, updated_at: 0, draft_version: 0, unread: 0, summary: new Uint8Array() }];
      }
    }).sort((one, other) => other.updated_at - one.updated_at || (one.id < other.id ? -1 : 1));
  }

  /**
   * Decrypts a summary, which is JSON for the API. This happens on the serving thread: for a few hundred bytes, another
   * thread would take twice as long.
   */
  openSummary(row: { id: string; revision: number; summary: Uint8Array }): string {
    return decoder.decode(this.#sealer.openNow(createSummaryAad(row.id, row.revision), row.summary));
  }

  /**
   * Returns the summary of a conversation, or `undefined` if it can't be read. Each write of the conversation replaces
   * it.
   */
  findSummary(id: string): ConversationSummary | undefined {
    const row = this.#db.get<{ revision: number; summary: Uint8Array }>(
      "SELECT revision, summary FROM conversation WHERE id = ?",
      id,
    );
    if (row === undefined) return undefined;
    try {
      const known = this.#summaries.find({ id, version: row.revision, sealed: row.summary });
      return JSON.parse(known ?? this.openSummary({ id, ...row }));
    } catch {
      return undefined;
    }
  }

  /** Returns what lists show of the last message of a conversation. */
  findLastMessage(id: string): LastMessage {
    const { snippet = "", last_message_at } = this.findSummary(id) ?? {};
    return { snippet, ...(last_message_at !== undefined && { at: last_message_at }) };
  }

  /** Returns whether a conversation has an unread reply. */
  isUnread(id: string): boolean {
    return this.#db.get("SELECT 1 FROM unread WHERE conversation_id = ?", id) !== undefined;
  }

  /** Returns the statement that marks a conversation as unread. */
  markUnread(id: string, since: number): Statement {
    return {
      sql:
        "INSERT INTO unread (conversation_id, since) VALUES (?1, ?2) ON CONFLICT (conversation_id) DO UPDATE SET since = ?2",
      params: [id, since],
    };
  }

  /** Returns the statement that marks a conversation as read. */
  markRead(id: string): Statement {
    return { sql: "DELETE FROM unread WHERE conversation_id = ?", params: [id] };
  }

  /** Returns the draft of a conversation. */
  getDraft(id: string): Draft {
    let row;
    try {
      row = this.#db.get<{ version: number; sealed: Uint8Array }>(
        "SELECT version, sealed FROM draft WHERE conversation_id = ?",
        id,
      );
    } catch {
      return { text: "", version: 0, isUnreadable: true };
    }
    if (row === undefined) return { text: "", version: 0 };
    try {
      // JSON, because UTF-8 can't represent half of a surrogate pair.
      return {
        text: JSON.parse(decoder.decode(this.#sealer.openNow(createDraftAad(id, row.version), row.sealed))),
        version: row.version,
      };
    } catch {
      return { text: "", version: row.version, isUnreadable: true };
    }
  }

  /** Returns the statement that saves a draft. */
  saveDraft(id: string, draft: Draft): Statement {
    return {
      sql:
        "INSERT INTO draft (conversation_id, version, sealed) VALUES (?1, ?2, ?3) ON CONFLICT (conversation_id) DO UPDATE SET version = ?2, sealed = ?3",
      params: [id, draft.version, this.#sealer.sealNow(createDraftAad(id, draft.version), JSON.stringify(draft.text))],
    };
  }

  /** Returns the messages that wait in a conversation. @throws {AppError} `internal` if they can't be read */
  getQueue(id: string): MessageQueue {
    try {
      const row = this.#db.get<{ version: number; sealed: Uint8Array }>(
        "SELECT version, sealed FROM message_queue WHERE conversation_id = ?",
        id,
      );
      if (row === undefined) return { version: 0, last: 0, items: [] };
      const text = decoder.decode(this.#sealer.openNow(createQueueAad(id, row.version), row.sealed));
      return { version: row.version, ...JSON.parse(text) };
    } catch (cause) {
      throw new AppError("internal", `Can't read the queued messages of conversation "${id}": they're damaged`, {
        cause,
      });
    }
  }

  /** Returns the statement that saves the messages that wait. */
  saveQueue(id: string, { version, last, items }: MessageQueue): Statement {
    return {
      sql:
        "INSERT INTO message_queue (conversation_id, version, sealed) VALUES (?1, ?2, ?3) ON CONFLICT (conversation_id) DO UPDATE SET version = ?2, sealed = ?3",
      params: [id, version, this.#sealer.sealNow(createQueueAad(id, version), JSON.stringify({ last, items }))],
    };
  }

  /** Returns the statement that creates a conversation in this state. @param first Its first message. */
  insert(state: ConversationState, last: LastMessage, first: Message | undefined): Statement {
    const { head, summary } = this.#seal(state, last, isGreetingTitle(state.head, first));
    return {
      sql:
        "INSERT INTO conversation (id, revision, created_at, updated_at, message_count, head, summary) VALUES (?, ?, ?, ?, ?, ?, ?)",
      params: [state.id, state.revision, state.createdAtMs, state.updatedAtMs, state.messageCount, head, summary],
      expectChanges: 1,
    };
  }

  /**
   * Returns the statement that stores the next state of a conversation. The transaction fails if the stored revision
   * isn't the previous one.
   *
   * @param first Its first message, if all messages are replaced.
   */
  update(state: ConversationState, last: LastMessage, first?: Message): Statement {
    const before = first === undefined ? this.findSummary(state.id) : undefined;
    // If only the title changes, the user or the model chose it.
    const hasGreetingTitle = first !== undefined
      ? isGreetingTitle(state.head, first)
      : before?.title === state.head.title
      ? before.has_greeting_title
      : false;
    const { head, summary } = this.#seal(state, last, hasGreetingTitle);
    return {
      sql:
        "UPDATE conversation SET revision = ?, updated_at = ?, message_count = ?, head = ?, summary = ? WHERE id = ? AND revision = ? AND deleted_at IS NULL",
      params: [state.revision, state.updatedAtMs, state.messageCount, head, summary, state.id, state.revision - 1],
      expectChanges: 1,
    };
  }

  /** Returns the statements that permanently delete the rows of a conversation. */
  remove(id: string): Statement[] {
    return [
      "conversation WHERE id",
      "draft WHERE conversation_id",
      "message_queue WHERE conversation_id",
      "variant WHERE conversation_id",
      "revision WHERE conversation_id",
      "change WHERE conversation_id",
      "reply WHERE conversation_id",
      "reply_resume WHERE conversation_id",
      "unread WHERE conversation_id",
      "tool_call WHERE conversation_id",
      "tool_permission WHERE conversation_id",
      "document WHERE kind = 'chat_usage' AND id",
    ]
      .map((rest): Statement => ({ sql: `DELETE FROM ${rest} = ?`, params: [id] }));
  }

  #findRow(id: string): Row | undefined {
    return this.#db.get<Row>(
      "SELECT id, revision, created_at, updated_at, message_count, head, deleted_at FROM conversation WHERE id = ?",
      id,
    );
  }

  #toState(row: Row): ConversationState {
    let head: ConversationHead;
    try {
      head = JSON.parse(this.#openHead(row));
    } catch (cause) {
      throw new AppError(
        "internal",
        `Can't read the settings of conversation "${row.id}": they're damaged. Its messages can still be read and exported`,
        { cause },
      );
    }
    return toState(row, head);
  }

  #openHead({ id, revision: version, head: sealed }: Row): string {
    const row = { id, version, sealed };
    let text = this.#heads.find(row);
    if (text === undefined) {
      text = decoder.decode(this.#sealer.openNow(createHeadAad(id, version), sealed));
      this.#heads.set(row, text);
    }
    return text;
  }

  #seal(state: ConversationState, last: LastMessage, hasGreetingTitle: boolean | undefined) {
    const summary = JSON.stringify(toSummary(state, last, hasGreetingTitle));
    const text = JSON.stringify(state.head);
    const { id, revision: version } = state;
    const sealed = {
      head: this.#sealer.sealNow(createHeadAad(id, version), text),
      summary: this.#sealer.sealNow(createSummaryAad(id, version), summary),
    };
    this.#heads.set({ id, version, sealed: sealed.head }, text);
    this.#summaries.set({ id, version, sealed: sealed.summary }, summary);
    return sealed;
  }
}

/** Converts a queued message to the API's form. */
export function toQueuedJson({ n, message, assistantMessageId, names, createdAt }: QueuedMessage) {
  return { n, message, assistant_message_id: assistantMessageId, names, created_at: createdAt };
}

/** Converts the messages that wait to the API's form. */
export function toQueueJson({ version, items }: MessageQueue) {
  return { version, items: items.map(toQueuedJson) };
}

/** Returns the id of a conversation's entry in the trash. Part of the API. */
export function createTrashId(id: string): string {
  return `conversation-${id}`;
}

function toState(row: Row, head: ConversationHead): ConversationState {
  return {
    id: row.id,
    revision: row.revision,
    createdAtMs: row.created_at,
    updatedAtMs: row.updated_at,
    messageCount: row.message_count,
    head,
  };
}

function noConversation(id: string): AppError {
  return new AppError("not_found", `Conversation "${id}" not found`);
}

function createHeadAad(id: string, version: number) {
  return { table: "conversation", id, field: "head", version };
}

function createDraftAad(id: string, version: number) {
  return { table: "draft", id, field: "text", version };
}

function createQueueAad(id: string, version: number) {
  return { table: "message_queue", id, field: "messages", version };
}
