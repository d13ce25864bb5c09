/**
 * The running replies, at most one per conversation, and the rows of all replies: which run wrote which message, which
 * runs haven't ended, and the state they need to continue.
 */
import type { Message } from "./message.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import type { Database, Statement } from "../storage/database/database.ts";

/** A running reply, as far as conversations need to know. */
export interface LiveReply {
  readonly conversationId: string;
  readonly messageId: string;
  readonly startedAtMs: number;
  /** Returns the stored message with the text written so far. */
  withLiveText(stored: Message): Message;
  /** Whether the end is saved. Until then, the reply will increase its conversation's revision by one more. */
  readonly isSaved: boolean;
  /**
   * Stops the reply and waits until its message is saved with the text so far.
   *
   * @throws {AppError} `storage_full` or `internal` if it can't be saved yet. Saving is retried.
   */
  stop(): Promise<void>;
}

/** The running replies by conversation. */
export class LiveReplies<R extends LiveReply = LiveReply> {
  readonly #byConversation = new Map<string, R>();

  add(reply: R): void {
    this.#byConversation.set(reply.conversationId, reply);
  }

  remove(reply: R): void {
    if (this.#byConversation.get(reply.conversationId) === reply) this.#byConversation.delete(reply.conversationId);
  }

  /** Finds the reply that writes a message. */
  findByMessage(conversationId: string, mid: string): R | undefined {
    const reply = this.#byConversation.get(conversationId);
    return reply?.messageId === mid ? reply : undefined;
  }

  /** Finds the running reply of a conversation. */
  findByConversation(conversationId: string): R | undefined {
    return this.#byConversation.get(conversationId);
  }

  /** Returns all running replies. */
  all(): R[] {
    return [...this.#byConversation.values()];
  }
}

/** The row of a message that a reply wrote. */
export interface ReplyRow {
  mid: string;
  conversation_id: string;
  /** Changes with each run and each edit of the message, so that old cursors become invalid. */
  generation: string;
  started_at: number;
  /** Version of the message that was active before this run, if any. */
  previous_variant: number | null;
}

const COLUMNS = "mid, conversation_id, generation, started_at, previous_variant";

/** Finds the last reply that wrote a message. */
export function findReplyRow(db: Database, conversationId: string, mid: string): ReplyRow | undefined {
  return db.get<ReplyRow>(`SELECT ${COLUMNS} FROM reply WHERE mid = ? AND conversation_id = ?`, mid, conversationId);
}

/**
 * Finds the conversations that have a reply with a message id. Running replies come first, then the most recently
 * started.
 */
export function findConversationsOfReply(db: Database, mid: string): string[] {
  return db.all<{ conversation_id: string }>(
    "SELECT conversation_id FROM reply WHERE mid = ? ORDER BY ended_at IS NULL DESC, started_at DESC, rowid DESC",
    mid,
  ).map((row) => row.conversation_id);
}

/** Finds replies that haven't ended. */
export function findUnendedReplies(db: Database): ReplyRow[] {
  return db.all<ReplyRow>(`SELECT ${COLUMNS} FROM reply WHERE ended_at IS NULL`);
}

/** Returns the statement that starts a run. */
export function startReplyRow(row: ReplyRow): Statement {
  return {
    sql: `INSERT INTO reply (${COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5)
          ON CONFLICT (mid, conversation_id)
          DO UPDATE SET generation = ?3, started_at = ?4, previous_variant = ?5, ended_at = NULL`,
    params: [row.mid, row.conversation_id, row.generation, row.started_at, row.previous_variant],
  };
}

/** Returns the statement that ends the run of a message's reply. */
export function createEndStatement(conversationId: string, mid: string, now: number): Statement {
  return {
    sql: "UPDATE reply SET ended_at = ? WHERE mid = ? AND conversation_id = ?",
    params: [now, mid, conversationId],
  };
}

/** Returns the statement that invalidates the cursors of a streamed reply. */
export function renewReplyRow(conversationId: string, mid: string, generation: string): Statement {
  return {
    sql: "UPDATE reply SET generation = ?, previous_variant = NULL WHERE mid = ? AND conversation_id = ?",
    params: [generation, mid, conversationId],
  };
}

/** Returns the statement that makes a run that hasn't ended another one, so that its clients read it anew. */
export function renewGeneration(conversationId: string, mid: string, generation: string): Statement {
  return {
    sql: "UPDATE reply SET generation = ? WHERE mid = ? AND conversation_id = ?",
    params: [generation, mid, conversationId],
  };
}

/** Returns the statement that deletes the row, so that the message no longer counts as a reply. */
export function deleteReplyRow(conversationId: string, mid: string): Statement {
  return { sql: "DELETE FROM reply WHERE mid = ? AND conversation_id = ?", params: [mid, conversationId] };
}

/** The state that a reply needs to continue after a restart. */
interface ResumeRow {
  conversation_id: string;
  mid: string;
  version: number;
  sealed: Uint8Array;
}

/** Finds the state of a reply. */
export function findResumeRow(db: Database, conversationId: string, mid: string): ResumeRow | undefined {
  return db.get<ResumeRow>(
    "SELECT conversation_id, mid, version, sealed FROM reply_resume WHERE conversation_id = ? AND mid = ?",
    conversationId,
    mid,
  );
}

/** Returns the statement that saves the state of a reply. */
function saveResumeRow({ conversation_id, mid, version, sealed }: ResumeRow): Statement {
  return {
    sql: `INSERT INTO reply_resume (conversation_id, mid, version, sealed) VALUES (?1, ?2, ?3, ?4)
          ON CONFLICT (conversation_id, mid) DO UPDATE SET version = ?3, sealed = ?4`,
    params: [conversation_id, mid, version, sealed],
  };
}

/** Returns the statement that deletes the state of a reply. */
export function deleteResumeRow(conversationId: string, mid: string): Statement {
  return { sql: "DELETE FROM reply_resume WHERE mid = ? AND conversation_id = ?", params: [mid, conversationId] };
}

const decoder = new TextDecoder();

/** Reads and writes the encrypted state that replies need to continue after a restart. */
export class ReplyResumes<State> {
  readonly #db: Database;
  readonly #sealer: PurposeSealer;

  constructor(db: Database, sealer: PurposeSealer) {
    this.#db = db;
    this.#sealer = sealer;
  }

  /** Returns the statement that saves the state. */
  save(conversationId: string, mid: string, state: State): Statement {
    const version = (findResumeRow(this.#db, conversationId, mid)?.version ?? 0) + 1;
    const sealed = this.#sealer.sealNow(resumeAad(conversationId, mid, version), JSON.stringify(state));
    return saveResumeRow({ conversation_id: conversationId, mid, version, sealed });
  }

  /** Finds the state of a reply. Returns `undefined` for a reply without rounds. */
  find(conversationId: string, mid: string): State | undefined {
    const row = findResumeRow(this.#db, conversationId, mid);
    if (row === undefined) return undefined;
    return JSON.parse(decoder.decode(this.#sealer.openNow(resumeAad(conversationId, mid, row.version), row.sealed)));
  }

  /** Returns the statement that deletes the state. */
  remove(conversationId: string, mid: string): Statement {
    return deleteResumeRow(conversationId, mid);
  }
}

function resumeAad(conversationId: string, mid: string, version: number) {
  return { table: "reply_resume", id: `${mid}/${conversationId}`, field: "state", version };
}
