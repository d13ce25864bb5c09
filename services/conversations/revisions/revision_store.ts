/** Stores revisions: the state of a conversation, or of a message, before a change. Blocks aren't copied but retained. */
import type { PurposeSealer } from "../../crypto/sealer.ts";
import { AppError } from "../../errors.ts";
import type { Database, Statement } from "../../storage/database/database.ts";
import type { BlockName } from "../blocks/block_rows.ts";
import type { BlockStore, OpenTree } from "../blocks/block_store.ts";
import type { ConversationHead, ConversationState } from "../conversation.ts";
import type { Message } from "../message.ts";
import type { MessageTree } from "../message_tree.ts";
import { type Continuation, ROOT_SEGMENT } from "../conversation_tree.ts";
import type { TrashedMessages } from "../conversation_trash.ts";
import type { RetentionClock } from "../../storage/retention_clock.ts";
import { findOverdueRevisions, REVISION_RETENTION_MS } from "./change_log.ts";
import { createRevisionAad } from "../stored_form.ts";
import type { VariantText } from "../variants.ts";

/** The change that replaced the state. */
export type RevisionCause = "put" | "patch" | "message_patch" | "message_delete" | "restore";

/** An entry of `GET …/revisions`. */
export interface Revision {
  /** The revision that was replaced. */
  n: number;
  created_at: string;
  cause: RevisionCause;
  /** Number of messages in the conversation. */
  message_count: number;
}

/** The content of a revision: the whole conversation, only its fields, or the messages that one change affected. */
export interface RevisionRecord {
  head?: ConversationHead;
  /** All blocks in order, segment by segment. */
  blocks?: BlockName[];
  /** The segment of each block. Absent if there is only one. */
  segments?: number[];
  continuations?: Continuation[];
  /** Versions that the change removed or replaced. */
  variants?: VariantText[];
  /** A message before an edit. */
  edited?: Message;
  removed?: TrashedMessages;
}

/** Maximum number of revisions per conversation. */
const MOST = 50;

interface Row {
  n: number;
  created_at: number;
  cause: RevisionCause;
  message_count: number;
  kind: "blocks" | "message";
}

const COLUMNS = "n, created_at, cause, message_count, kind";

const decoder = new TextDecoder();

/** Reads and writes revision rows. */
export class RevisionStore {
  #db: Database;
  #sealer: PurposeSealer;
  #now: () => number;
  #retention: RetentionClock;

  constructor(db: Database, sealer: PurposeSealer, now: () => number, retention: RetentionClock) {
    this.#db = db;
    this.#sealer = sealer;
    this.#now = now;
    this.#retention = retention;
  }

  /** Lists the revisions, newest first. */
  list(conversationId: string): Revision[] {
    return this.#listRows(conversationId).reverse().map(({ n, created_at, cause, message_count }) => ({
      n,
      created_at: new Date(created_at).toISOString(),
      cause,
      message_count,
    }));
  }

  /** @throws {AppError} `not_found` */
  get(conversationId: string, n: number): RevisionRecord {
    const row = this.#db.get<{ sealed: Uint8Array }>(
      "SELECT sealed FROM revision WHERE conversation_id = ? AND n = ?",
      conversationId,
      n,
    );
    if (row === undefined) {
      throw new AppError("not_found", `Revision ${n} of conversation "${conversationId}" not found`);
    }
    return JSON.parse(decoder.decode(this.#sealer.openNow(createRevisionAad(conversationId, n), row.sealed)));
  }

  /**
   * Returns the versions of messages at a revision that were removed or replaced since then. Decrypts them off the
   * serving thread.
   */
  async readTextsSince(conversationId: string, from: number): Promise<Map<string, VariantText[]>> {
    const rows = this.#db.iterate<{ n: number; sealed: Uint8Array }>(
      "SELECT n, sealed FROM revision WHERE conversation_id = ? AND n >= ? ORDER BY n",
      conversationId,
      from,
    );
    const found = new Map<string, VariantText[]>();
    for (const { n, sealed } of rows) {
      const text = decoder.decode(await this.#sealer.open(createRevisionAad(conversationId, n), sealed));
      const { variants = [], removed }: RevisionRecord = JSON.parse(text);
      for (const [mid, texts] of Map.groupBy([...variants, ...removed?.variants ?? []], (text) => text.mid)) {
        if (!found.has(mid)) found.set(mid, texts);
      }
    }
    return found;
  }

  /**
   * Returns the statements that store a whole state. Run them before those that change its blocks.
   *
   * @param change.variants Versions that the change removes or replaces.
   * @param change.retired Blocks to remove from the conversation, which only the revision will use.
   */
  keepTree(
    state: ConversationState,
    cause: RevisionCause,
    { segments, continuations }: OpenTree,
    { variants, retired }: { variants: VariantText[]; retired: BlockName[] },
  ): Statement[] {
    // All current blocks, on and off the active path: `prune` relies on it.
    const all = [...segments.values()].flat();
    const rows = all.filter((block) => !block.isUnreadable).map(({ row }) => row);
    const blocks = rows.map(({ id, version }) => [id, version] as const);
    const tree = continuations.length === 0
      ? {}
      : { segments: rows.map(({ segment }) => segment), continuations } satisfies Partial<RevisionRecord>;
    return [
      // Each row is changed once: its manifest is kept per change.
      ...(retired.length === 0 ? [] : [{
        sql: `UPDATE block SET kept = 1, live = 0
              WHERE (id, version) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))`,
        params: [JSON.stringify(retired)],
      }]),
      {
        sql: "UPDATE block SET kept = 1 WHERE conversation_id = ? AND live = 1 AND kept = 0",
        params: [state.id],
      },
      ...this.keep(state, cause, { head: state.head, blocks, ...tree, variants }),
    ];
  }

  /** Returns the statements that store the state before a change and delete old or surplus revisions. */
  keep(state: ConversationState, cause: RevisionCause, record: RevisionRecord): Statement[] {
    const { id, revision: n } = state;
    return [
      ...this.prune(id, MOST - 1, record.blocks),
      {
        sql:
          "INSERT INTO revision (conversation_id, n, created_at, cause, message_count, kind, sealed) VALUES (?, ?, ?, ?, ?, ?, ?)",
        params: [
          id,
          n,
          this.#now(),
          cause,
          state.messageCount,
          record.head === undefined ? "message" : "blocks",
          this.#sealer.sealNow(createRevisionAad(id, n), JSON.stringify(record)),
        ],
      },
    ];
  }

  /** Finds the IDs of conversations with revisions that are too old. */
  listOverdue(): string[] {
    return findOverdueRevisions(this.#db, this.#retention);
  }

  /**
   * Returns the statements that delete old revisions and the blocks that only they use.
   *
   * @param added Blocks of the revision that is about to be stored.
   */
  prune(conversationId: string, most = MOST, added: readonly BlockName[] = []): Statement[] {
    const rows = this.#listRows(conversationId);
    const isOld = (row: Row, index: number) =>
      index < rows.length - most || this.#retention.isExpired(row.created_at, REVISION_RETENTION_MS);
    const count = rows.findLastIndex(isOld) + 1;
    if (count === 0) return [];
    const readList = ({ n, kind }: Row) => kind === "blocks" ? this.get(conversationId, n).blocks : undefined;
    const dropped = rows.slice(0, count).flatMap((row) => readList(row) ?? []);
    // A version of a block belongs to consecutive revisions: if the next revision doesn't have it, later ones don't,
    // either.
    let next: readonly BlockName[] | undefined;
    for (const row of dropped.length === 0 ? [] : rows.slice(count)) {
      next = readList(row);
      if (next !== undefined) break;
    }
    const staying = new Set((next ?? added).map(String));
    const names = JSON.stringify(dropped.filter((name) => !staying.has(String(name))));
    const named = "(id, version) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))";
    return [
      {
        sql: "DELETE FROM revision WHERE conversation_id = ? AND n <= ?",
        params: [conversationId, rows[count - 1]!.n],
      },
      ...(dropped.length === 0 ? [] : [
        { sql: `DELETE FROM block WHERE ${named} AND live = 0`, params: [names] },
        { sql: `UPDATE block SET kept = 0 WHERE ${named}`, params: [names] },
      ]),
    ];
  }

  #listRows(conversationId: string): Row[] {
    return this.#db.all<Row>(`SELECT ${COLUMNS} FROM revision WHERE conversation_id = ? ORDER BY n`, conversationId);
  }
}

/**
 * Reads the messages of a revision.
 *
 * @throws {AppError} `internal` if one of its blocks is missing or can't be decrypted.
 */
export async function openRevision(
  blocks: BlockStore,
  id: string,
  { blocks: names = [], segments, continuations = [] }: RevisionRecord,
): Promise<MessageTree> {
  const rows = names.map((name) => blocks.findVersion(id, name)).filter((row) => row !== undefined);
  if (rows.length < names.length) {
    throw new AppError("internal", `Can't restore conversation "${id}": a block of that revision is missing`);
  }
  const tree: MessageTree = { segments: new Map([[ROOT_SEGMENT, []]]), continuations };
  for (const [index, { messages }] of (await blocks.openMany(id, rows)).entries()) {
    const segment = segments?.[index] ?? ROOT_SEGMENT;
    tree.segments.set(segment, [...tree.segments.get(segment) ?? [], ...messages]);
  }
  const mids = new Set([...tree.segments.values()].flat().map((message) => message.id));
  const missing = continuations.find(({ mid }) => !mids.has(mid));
  if (missing !== undefined) {
    throw new AppError(
      "internal",
      `Can't restore conversation "${id}": message "${missing.mid}", which has versions, was unreadable at that revision`,
    );
  }
  return tree;
}
