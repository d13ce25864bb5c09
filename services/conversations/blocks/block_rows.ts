/**
 * Finds and decrypts the rows of blocks. block_writer.ts writes blocks, and block_store.ts changes the messages in
 * them.
 */
import type { PurposeSealer } from "../../crypto/sealer.ts";
import { AppError } from "../../errors.ts";
import type { Database, Statement } from "../../storage/database/database.ts";
import { yieldIfTickUsedUp } from "../../async/delay.ts";
import { createBlockAad, parseBlock, PlaintextCache } from "../stored_form.ts";
import type { Message } from "../message.ts";
import {
  type BlockRange,
  type ConversationTree,
  type Location,
  toSegmentRange,
  TreeReader,
} from "../conversation_tree.ts";

/** The row of a block. */
export interface BlockRow {
  id: number;
  version: number;
  /** A block with its messages. */
  segment: number;
  position: number;
  message_count: number;
  sealed: Uint8Array;
}

/** True if the block can't be read. Only the IDs of its messages are known then. */
export interface OpenBlock {
  row: BlockRow;
  text: string;
  messages: Message[];
  /** Whether the block can't be read. Of its messages only the ids are known then. */
  isUnreadable?: true;
}

/** Identifies one version of a block. */
export type BlockName = readonly [id: number, version: number];

/** Number of blocks read, decrypted and parsed together: about 3 ms of work. */
const BLOCKS_AT_ONCE = 32;
const LOST_ID = -1;
const COLUMNS = "id, version, segment, position, message_count, sealed";
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * The versions and sizes of a conversation's blocks, in order. Uses only 24 bytes per block, because hundreds of
 * streams may have a list.
 */
export class BlockList {
  readonly #fields: Float64Array;
  /** Total sealed size of the blocks. */
  readonly bytes: number;

  constructor(blocks: { id: number; version: number; bytes: number }[]) {
    this.#fields = new Float64Array(blocks.length * 3);
    blocks.forEach(({ id, version, bytes }, n) => this.#fields.set([id, version, bytes], n * 3));
    this.bytes = blocks.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  get length(): number {
    return this.#fields.length / 3;
  }

  getName(n: number): BlockName {
    return [this.#fields[n * 3]!, this.#fields[n * 3 + 1]!];
  }

  /** Returns the end and the size of the next blocks that fit into `maxBytes` sealed bytes; at least one block. */
  measureRange(start: number, maxBytes: number): { end: number; bytes: number } {
    let end = start;
    let bytes = 0;
    for (; end < this.length; end++) {
      const next = this.#fields[end * 3 + 2]!;
      if (end > start && bytes + next > maxBytes) break;
      bytes += next;
    }
    return { end, bytes };
  }

  /** Returns whether the first `count` blocks of another list are the same, in the same versions. */
  hasSameStart(other: BlockList, count: number): boolean {
    if (this.length < count || other.length < count) return false;
    for (let n = 0; n < count * 3; n++) if (n % 3 < 2 && this.#fields[n] !== other.#fields[n]) return false;
    return true;
  }
}

/** Reads the blocks of conversations. Methods only read the active path, unless noted. */
export class BlockReader {
  /** Caches blocks that were written, or read for a change. Lists don't use it, because they would displace those. */
  protected readonly cache = new PlaintextCache<number>();
  #db: Database;
  #sealer: PurposeSealer;
  readonly #trees: TreeReader;

  constructor(db: Database, sealer: PurposeSealer) {
    this.#db = db;
    this.#sealer = sealer;
    this.#trees = new TreeReader(db);
  }

  /** Returns the tree of a conversation. */
  getTree(conversationId: string): ConversationTree {
    return this.#trees.load(conversationId);
  }

  /**
   * Returns the sealed blocks of the active path in order. A block on a damaged page of the database file has no
   * content; see `createLostBlock`.
   */
  listRows(conversationId: string): BlockRow[] {
    return this.listRowsIn(conversationId, this.getTree(conversationId).path);
  }

  /** Returns the sealed blocks of some ranges in order. */
  listRowsIn(conversationId: string, ranges: readonly BlockRange[]): BlockRow[] {
    return ranges.flatMap((range) => this.#readRows(conversationId, range, "ASC"));
  }

  #readRows(
    conversationId: string,
    { segment, after, upTo }: BlockRange,
    order: "ASC" | "DESC",
    limit = -1,
    end: "<" | "<=" = "<=",
  ): BlockRow[] {
    const rest = `FROM block WHERE conversation_id = ? AND segment = ? AND live = 1
      AND position > ? AND position ${end} ? ORDER BY position ${order} LIMIT ?`;
    const params = [conversationId, segment, after, upTo, limit] as const;
    try {
      return this.#db.all<BlockRow>(`SELECT ${COLUMNS} ${rest}`, ...params);
    } catch {
      // The index lists the blocks, so each can be read separately.
      return this.#db.all<{ rowid: number; position: number }>(`SELECT rowid, position ${rest}`, ...params)
        .map(({ rowid, position }) => {
          try {
            return this.#db.get<BlockRow>(`SELECT ${COLUMNS} FROM block WHERE rowid = ?`, rowid)!;
          } catch {
            return createLostBlock({ segment, position });
          }
        });
    }
  }

  /** Returns the same blocks as `listRows`, without content. */
  list(conversationId: string): BlockList {
    try {
      return new BlockList(
        this.getTree(conversationId).path.flatMap(({ segment, after, upTo }) =>
          this.#db.all<{ id: number; version: number; bytes: number }>(
            `SELECT id, version, length(sealed) AS bytes FROM block WHERE conversation_id = ? AND segment = ? AND live = 1
             AND position > ? AND position <= ? ORDER BY position`,
            conversationId,
            segment,
            after,
            upTo,
          )
        ),
      );
    } catch {
      return new BlockList(
        this.listRows(conversationId).map(({ id, version, sealed }) => {
          return { id, version, bytes: sealed.length };
        }),
      );
    }
  }

  /** Returns the total sealed size of all current blocks, on and off the active path. */
  measureBytes(conversationId: string): number {
    try {
      return this.#db.get<{ total: number }>(
        "SELECT coalesce(sum(length(sealed)), 0) AS total FROM block WHERE conversation_id = ? AND live = 1",
        conversationId,
      )!.total;
    } catch {
      return this.list(conversationId).bytes; // A block is on a damaged page.
    }
  }

  /** Returns the ids of the messages in a block, readable or not. */
  listMids(conversationId: string, row: BlockRow): string[] {
    // Only the position of a lost block is known. Two indexes together yield its ID.
    const [sql, params] = isLost(row)
      ? [
        `SELECT id FROM block INDEXED BY sqlite_autoindex_block_1 WHERE rowid IN (
           SELECT rowid FROM block INDEXED BY block_by_position
           WHERE conversation_id = ? AND live = 1 AND segment = ? AND position = ?)`,
        [conversationId, row.segment, row.position],
      ] as const
      : ["SELECT ?", [row.id]] as const;
    return this.#db.all<{ mid: string }>(
      `SELECT mid FROM message WHERE conversation_id = ? AND block_id IN (${sql}) ORDER BY mid`,
      conversationId,
      ...params,
    ).map(({ mid }) => mid);
  }

  /** Finds the unreadable block of the active path that contains a message. */
  findUnreadableRow(conversationId: string, mid: string): BlockRow | undefined {
    let row: BlockRow | undefined;
    try {
      row = this.findRow(conversationId, mid);
    } catch {
      return this.listRows(conversationId).find((one) =>
        isLost(one) && this.listMids(conversationId, one).includes(mid)
      );
    }
    return row === undefined || this.findReadableMessages(conversationId, row) !== undefined ? undefined : row;
  }

  /** Returns the messages of a block; `undefined` if it can't be read. */
  findReadableMessages(conversationId: string, row: BlockRow): Message[] | undefined {
    try {
      return this.openMessages(conversationId, row);
    } catch {
      return undefined;
    }
  }

  /** Returns the first block of a range. */
  findFirstIn(conversationId: string, range: BlockRange): BlockRow | undefined {
    return this.#readRows(conversationId, range, "ASC", 1)[0];
  }

  /** Returns the block after a location in its segment, on or off the active path. */
  nextIn(conversationId: string, { segment, position }: Location): BlockRow | undefined {
    return this.findFirstIn(conversationId, { ...toSegmentRange(segment), after: position });
  }

  /** Returns the last block of a range. */
  findLastIn(conversationId: string, range: BlockRange): BlockRow | undefined {
    return this.#readRows(conversationId, range, "DESC", 1)[0];
  }

  /** Returns the block after another, or the first one. */
  next(conversationId: string, row?: BlockRow): BlockRow | undefined {
    return this.#findNeighbor(conversationId, row, "behind");
  }

  /** Returns whether another block of the path follows. */
  hasNext(conversationId: string, row: BlockRow): boolean {
    const tree = this.getTree(conversationId);
    const index = tree.findRangeIndex(row);
    if (index === undefined) return false;
    const [own, ...others] = tree.path.slice(index);
    return [{ ...own!, after: row.position }, ...others].some(({ segment, after, upTo }) =>
      this.#db.get(
        `SELECT position FROM block WHERE conversation_id = ? AND segment = ? AND live = 1
         AND position > ? AND position <= ? LIMIT 1`,
        conversationId,
        segment,
        after,
        upTo,
      ) !== undefined
    );
  }

  /** Returns the block before another, or the last one. */
  findPrevious(conversationId: string, row?: BlockRow): BlockRow | undefined {
    return this.#findNeighbor(conversationId, row, "before");
  }

  #findNeighbor(conversationId: string, row: BlockRow | undefined, side: "behind" | "before"): BlockRow | undefined {
    const tree = this.getTree(conversationId);
    const { path } = tree;
    const [step, order] = side === "behind" ? [1, "ASC"] as const : [-1, "DESC"] as const;
    let at = row === undefined ? (side === "behind" ? 0 : path.length - 1) : tree.findRangeIndex(row);
    if (at === undefined) return undefined;
    for (let from = row; at >= 0 && at < path.length; at += step, from = undefined) {
      const range = { ...path[at]! };
      const isBounded = side === "before" && from !== undefined;
      if (from !== undefined) range[side === "behind" ? "after" : "upTo"] = from.position;
      const [found] = this.#readRows(conversationId, range, order, 1, isBounded ? "<" : "<=");
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Finds the block that contains a message of the active path. */
  findRow(conversationId: string, mid: string): BlockRow | undefined {
    const row = this.findLiveRow(conversationId, mid);
    return row === undefined || this.getTree(conversationId).findRangeIndex(row) === undefined ? undefined : row;
  }

  /** Finds the current block that contains a message, on or off the active path. */
  findLiveRow(conversationId: string, mid: string): BlockRow | undefined {
    return this.#db.get<BlockRow>(
      `SELECT b.id, b.version, b.segment, b.position, b.message_count, b.sealed FROM message m
       JOIN block b ON b.id = m.block_id AND b.live = 1
       WHERE m.mid = ? AND m.conversation_id = ?`,
      mid,
      conversationId,
    );
  }

  /** Returns whether a message of the conversation is off its active path. */
  isOffPath(conversationId: string, mid: string): boolean {
    return this.listUsedMids(conversationId, [mid]).size > 0 && this.findRow(conversationId, mid) === undefined;
  }

  /**
   * Rejects a message that isn't on the active path.
   *
   * @throws {AppError} `conflict`
   */
  requireOnPath(conversationId: string, mid: string): void {
    if (this.getTree(conversationId).isLine || !this.isOffPath(conversationId, mid)) return;
    throw new AppError(
      "conflict",
      `Message "${mid}" follows another version of an earlier message. Switch to that version first`,
    );
  }

  /** Returns the IDs of the current blocks that contain any of these messages. */
  listBlockIds(conversationId: string, mids: string[]): Set<number> {
    if (mids.length === 0) return new Set();
    const rows = this.#db.all<{ id: number }>(
      `SELECT DISTINCT block_id AS id FROM message
       WHERE mid IN (SELECT value FROM json_each(?)) AND conversation_id = ?`,
      JSON.stringify(mids),
      conversationId,
    );
    return new Set(rows.map(({ id }) => id));
  }

  /** Counts the messages before a message. */
  countBefore(conversationId: string, mid: string): number {
    const row = this.findRow(conversationId, mid);
    if (row === undefined) return 0;
    const { path } = this.getTree(conversationId);
    const ranges = path.slice(0, this.getTree(conversationId).findRangeIndex(row)! + 1);
    const own = this.#count(conversationId, { ...ranges.pop()!, upTo: row.position }) - row.message_count;
    return this.countIn(conversationId, ranges) + own +
      this.openMessages(conversationId, row).findIndex(({ id }) => id === mid);
  }

  /** Counts the messages of some ranges. */
  countIn(conversationId: string, ranges: readonly BlockRange[]): number {
    return ranges.reduce((sum, range) => sum + this.#count(conversationId, range), 0);
  }

  #count(conversationId: string, range: BlockRange): number {
    const { segment, after, upTo } = range;
    try {
      return this.#db.get<{ count: number }>(
        `SELECT coalesce(sum(message_count), 0) AS count FROM block
         WHERE conversation_id = ? AND segment = ? AND live = 1 AND position > ? AND position <= ?`,
        conversationId,
        segment,
        after,
        upTo,
      )!.count;
    } catch {
      return this.#readRows(conversationId, range, "ASC").reduce(
        (sum, row) => sum + (isLost(row) ? this.listMids(conversationId, row).length : row.message_count),
        0,
      );
    }
  }

  /** Finds a version of a block, even if only a revision uses it. */
  findVersion(conversationId: string, [id, version]: BlockName): BlockRow | undefined {
    return this.#db.get<BlockRow>(
      `SELECT ${COLUMNS} FROM block WHERE id = ? AND version = ? AND conversation_id = ?`,
      id,
      version,
      conversationId,
    );
  }

  /** Returns those of the IDs that are already used in a conversation. */
  listUsedMids(conversationId: string, mids: string[]): Set<string> {
    const rows = this.#db.all<{ mid: string }>(
      "SELECT mid FROM message WHERE conversation_id = ? AND mid IN (SELECT value FROM json_each(?))",
      conversationId,
      JSON.stringify(mids),
    );
    return new Set(rows.map(({ mid }) => mid));
  }

  /** Decrypts a block off the serving thread. Its text is the JSON of its messages, joined by commas. */
  async open(conversationId: string, row: BlockRow): Promise<Uint8Array> {
    const known = this.cache.find(row);
    return known === undefined
      ? await this.#sealer.open(createBlockAad(conversationId, row), row.sealed)
      : encoder.encode(known);
  }

  /** Returns the messages of a block. */
  openMessages(conversationId: string, row: BlockRow): Message[] {
    return parseBlock(this.openText(conversationId, row));
  }

  /** Returns the text of a block. */
  openText(conversationId: string, row: BlockRow): string {
    let text = this.cache.find(row);
    if (text === undefined) {
      text = decoder.decode(this.#sealer.openNow(createBlockAad(conversationId, row), row.sealed));
      this.cache.set(row, text);
    }
    return text;
  }

  /** Decrypts many blocks off the serving thread, a few at a time. */
  async openMany(conversationId: string, rows: BlockRow[]): Promise<OpenBlock[]> {
    const opened: OpenBlock[] = [];
    for (let at = 0; at < rows.length; at += BLOCKS_AT_ONCE) {
      await yieldIfTickUsedUp();
      const texts = rows.slice(at, at + BLOCKS_AT_ONCE).map((row) => this.#openText(conversationId, row));
      for (const [n, text] of (await Promise.all(texts)).entries()) {
        opened.push({ row: rows[at + n]!, text, messages: parseBlock(text) });
      }
    }
    return opened;
  }

  /** Decrypts the blocks of the active path. The caller holds the conversation's lock. */
  openPath(conversationId: string): Promise<OpenBlock[]> {
    return this.openRanges(conversationId, this.getTree(conversationId).path);
  }

  /** Decrypts the blocks of all segments. The caller holds the conversation's lock. */
  async openSegments(conversationId: string): Promise<Map<number, OpenBlock[]>> {
    const opened = new Map<number, OpenBlock[]>();
    for (const segment of this.#listSegments(conversationId)) {
      opened.set(segment, await this.openRanges(conversationId, [toSegmentRange(segment)]));
    }
    return opened;
  }

  /**
   * Decrypts the blocks of all segments. An unreadable block is marked `isUnreadable`, and its messages only have an
   * ID. The caller holds the conversation's lock.
   */
  async openReadableSegments(conversationId: string): Promise<Map<number, OpenBlock[]>> {
    try {
      return await this.openSegments(conversationId);
    } catch {
      const opened = new Map<number, OpenBlock[]>();
      for (const segment of this.#listSegments(conversationId)) {
        const blocks: OpenBlock[] = [];
        for (const row of this.listRowsIn(conversationId, [toSegmentRange(segment)])) {
          const found = await this.openMany(conversationId, [row]).catch(() => undefined);
          blocks.push(...found ?? [this.#noteUnreadable(conversationId, row)]);
        }
        opened.set(segment, blocks);
      }
      return opened;
    }
  }

  #noteUnreadable(conversationId: string, row: BlockRow): OpenBlock {
    const tree = this.getTree(conversationId);
    // A branch point is the last message of its block. The order of the others is unknown.
    const mids = this.listMids(conversationId, row);
    const ordered = [...mids.filter((mid) => tree.find(mid) === undefined), ...mids.filter((mid) => tree.find(mid))];
    const messages = ordered.map((id) => ({ id }) as Message);
    return { row, messages, text: messages.map((message) => JSON.stringify(message)).join(","), isUnreadable: true };
  }

  #listSegments(conversationId: string): number[] {
    return this.#db.all<{ segment: number }>(
      "SELECT DISTINCT segment FROM block WHERE conversation_id = ? AND live = 1",
      conversationId,
    ).map(({ segment }) => segment);
  }

  /** Decrypts the blocks of some ranges, a few at a time. */
  async openRanges(conversationId: string, ranges: readonly BlockRange[]): Promise<OpenBlock[]> {
    const opened: OpenBlock[] = [];
    for (const { segment, after, upTo } of ranges) {
      for (let from = after;;) {
        const rows = this.#readRows(conversationId, { segment, after: from, upTo }, "ASC", BLOCKS_AT_ONCE);
        opened.push(...await this.openMany(conversationId, rows));
        if (rows.length < BLOCKS_AT_ONCE) break;
        from = rows.at(-1)!.position;
      }
    }
    return opened;
  }

  async #openText(conversationId: string, row: BlockRow): Promise<string> {
    let text = this.cache.find(row);
    if (text === undefined) {
      text = decoder.decode(await this.#sealer.open(createBlockAad(conversationId, row), row.sealed));
      this.cache.set(row, text);
    }
    return text;
  }
}

/**
 * Creates a row for a block on a damaged page of the database file. Only its position is known, and it can't be
 * decrypted.
 */
function createLostBlock({ segment, position }: Location): BlockRow {
  return { id: LOST_ID, version: 0, segment, position, message_count: 0, sealed: new Uint8Array() };
}

/** Returns whether only the position of a block is known. */
export function isLost({ id }: BlockRow): boolean {
  return id === LOST_ID;
}

/** Returns the statements that remove a version of a block from its conversation. A revision may still use it. */
export function retireBlock(row: { id: number; version: number }): Statement[] {
  return [
    { sql: "DELETE FROM block WHERE id = ? AND version = ? AND kept = 0", params: [row.id, row.version] },
    { sql: "UPDATE block SET live = 0 WHERE id = ? AND version = ?", params: [row.id, row.version] },
  ];
}

/** Returns the statement that adds a current block. */
export function insertBlock(conversationId: string, row: BlockRow): Statement {
  return {
    sql:
      "INSERT INTO block (id, version, conversation_id, segment, position, live, message_count, sealed) VALUES (?, ?, ?, ?, ?, 1, ?, ?)",
    params: [row.id, row.version, conversationId, row.segment, row.position, row.message_count, row.sealed],
  };
}

/** Returns the statement that records which block contains which message. */
export function insertMessages(conversationId: string, owners: (readonly [mid: string, blockId: number])[]): Statement {
  return {
    sql: "INSERT INTO message (mid, conversation_id, block_id) SELECT value ->> 0, ?, value ->> 1 FROM json_each(?)",
    params: [conversationId, JSON.stringify(owners)],
  };
}

/** Returns the statement that removes message IDs from a conversation. */
export function removeMids(conversationId: string, mids: string[]): Statement {
  return {
    sql: "DELETE FROM message WHERE conversation_id = ? AND mid IN (SELECT value FROM json_each(?))",
    params: [conversationId, JSON.stringify(mids)],
  };
}
