/** The rows of blocks: finding and opening them, and the statements that write them. What a change means is blocks.ts. */
import type { PurposeSealer } from "../crypto/sealer.ts";
import type { Database, Statement } from "../storage/database.ts";
import { Pace } from "../pace.ts";
import { parseBlock } from "./block_text.ts";
import type { Message } from "./message.ts";
import { OpenedTexts } from "./opened_texts.ts";
import { blockPlace } from "./sealed_places.ts";

/** A block as it lies in the database. */
export interface BlockRow {
  id: number;
  version: number;
  position: number;
  message_count: number;
  sealed: Uint8Array;
}

/** A block and what it holds. */
export interface OpenBlock {
  row: BlockRow;
  text: string;
  messages: Message[];
}

/** Names one version of a block. */
export type BlockName = readonly [id: number, version: number];

/** Read, opened and parsed together: some 3 ms of work. */
const BLOCKS_AT_ONCE = 32;
const LOST_ID = -1;
const COLUMNS = "id, version, position, message_count, sealed";
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Reads the blocks of conversations. */
export class BlockReader {
  /** Filled by what is written and by what is opened to be changed; never by lists, which would empty it of both. */
  protected readonly cache = new OpenedTexts<number>();
  #db: Database;
  #sealer: PurposeSealer;

  constructor(db: Database, sealer: PurposeSealer) {
    this.#db = db;
    this.#sealer = sealer;
  }

  /**
   * Gives the live blocks of a conversation in order, sealed. One that is on a damaged page of the database file is in
   * its place, without content; see `lostBlock`.
   */
  rows(conversationId: string): BlockRow[] {
    try {
      return this.#db.all<BlockRow>(
        `SELECT ${COLUMNS} FROM block WHERE conversation_id = ? AND live = 1 ORDER BY position`,
        conversationId,
      );
    } catch {
      // The index alone says which blocks there are, so each can be tried by itself.
      return this.#db.all<{ rowid: number; position: number }>(
        "SELECT rowid, position FROM block WHERE conversation_id = ? AND live = 1 ORDER BY position",
        conversationId,
      ).map(({ rowid, position }) => {
        try {
          return this.#db.get<BlockRow>(`SELECT ${COLUMNS} FROM block WHERE rowid = ?`, rowid)!;
        } catch {
          return lostBlock(position);
        }
      });
    }
  }

  /** Gives the ids of the messages in a block, whether or not it can be read. */
  midsOf(conversationId: string, row: BlockRow): string[] {
    // Of a lost block not even its number is known, but those of all others are.
    const [sql, ids] = isLost(row)
      ? ["block_id NOT IN", this.rows(conversationId).map(({ id }) => id)] as const
      : ["block_id IN", [row.id]] as const;
    return this.#db.all<{ mid: string }>(
      `SELECT mid FROM message WHERE conversation_id = ? AND ${sql} (SELECT value FROM json_each(?)) ORDER BY mid`,
      conversationId,
      JSON.stringify(ids),
    ).map(({ mid }) => mid);
  }

  /** Gives the block that holds a message, if that can't be read. */
  unreadableRowOf(conversationId: string, mid: string): BlockRow | undefined {
    let row: BlockRow | undefined;
    try {
      row = this.rowOf(conversationId, mid);
    } catch {
      return lostBlock(0);
    }
    return row === undefined || this.readableMessagesOf(conversationId, row) !== undefined ? undefined : row;
  }

  /** Gives the parsed messages of one block, or `undefined` when it can't be read. */
  readableMessagesOf(conversationId: string, row: BlockRow): Message[] | undefined {
    try {
      return this.messagesOf(conversationId, row);
    } catch {
      return undefined;
    }
  }

  /** Gives all live blocks that can be read with what they hold, and the others. The caller holds the conversation's turn. */
  async openReadable(conversationId: string): Promise<{ readable: OpenBlock[]; unreadable: BlockRow[] }> {
    try {
      return { readable: await this.openAll(conversationId), unreadable: [] };
    } catch {
      const readable: OpenBlock[] = [];
      const unreadable: BlockRow[] = [];
      for (const row of this.rows(conversationId)) {
        const opened = await this.openMany(conversationId, [row]).catch(() => undefined);
        if (opened === undefined) unreadable.push(row);
        else readable.push(...opened);
      }
      return { readable, unreadable };
    }
  }

  /** Gives the live blocks behind a position, in order. */
  rowsBehind(conversationId: string, position: number): BlockRow[] {
    return this.#db.all<BlockRow>(
      `SELECT ${COLUMNS} FROM block WHERE conversation_id = ? AND live = 1 AND position > ? ORDER BY position`,
      conversationId,
      position,
    );
  }

  /** Gives the next live block behind a position. */
  next(conversationId: string, position: number): BlockRow | undefined {
    return this.#db.get<BlockRow>(
      `SELECT ${COLUMNS} FROM block WHERE conversation_id = ? AND live = 1 AND position > ? ORDER BY position LIMIT 1`,
      conversationId,
      position,
    );
  }

  /** Gives the live block before a position, or the last one. */
  previous(conversationId: string, position = Number.MAX_VALUE): BlockRow | undefined {
    const rest = "FROM block WHERE conversation_id = ? AND live = 1 AND position < ? ORDER BY position DESC LIMIT 1";
    try {
      return this.#db.get<BlockRow>(`SELECT ${COLUMNS} ${rest}`, conversationId, position);
    } catch {
      const place = this.#db.get<{ position: number }>(`SELECT position ${rest}`, conversationId, position);
      return place && lostBlock(place.position);
    }
  }

  /** Finds the live block that holds a message. */
  rowOf(conversationId: string, mid: string): BlockRow | undefined {
    return this.#db.get<BlockRow>(
      `SELECT b.id, b.version, b.position, b.message_count, b.sealed FROM message m
       JOIN block b ON b.id = m.block_id AND b.live = 1
       WHERE m.mid = ? AND m.conversation_id = ?`,
      mid,
      conversationId,
    );
  }

  /** Gives the ids of the live blocks that hold some of these messages. */
  idsOf(conversationId: string, mids: string[]): Set<number> {
    if (mids.length === 0) return new Set();
    const rows = this.#db.all<{ id: number }>(
      `SELECT DISTINCT block_id AS id FROM message
       WHERE mid IN (SELECT value FROM json_each(?)) AND conversation_id = ?`,
      JSON.stringify(mids),
      conversationId,
    );
    return new Set(rows.map(({ id }) => id));
  }

  /** Counts the messages before one that is there. */
  countBefore(conversationId: string, mid: string): number {
    const row = this.rowOf(conversationId, mid);
    if (row === undefined) return 0;
    const { count } = this.#db.get<{ count: number }>(
      "SELECT coalesce(sum(message_count), 0) AS count FROM block WHERE conversation_id = ? AND live = 1 AND position < ?",
      conversationId,
      row.position,
    )!;
    return count + this.messagesOf(conversationId, row).findIndex(({ id }) => id === mid);
  }

  /** Finds one version of a block, also one that only a revision still refers to. */
  version(conversationId: string, [id, version]: BlockName): BlockRow | undefined {
    return this.#db.get<BlockRow>(
      `SELECT ${COLUMNS} FROM block WHERE id = ? AND version = ? AND conversation_id = ?`,
      id,
      version,
      conversationId,
    );
  }

  /** Gives those of these ids that messages of a conversation have already. */
  taken(conversationId: string, mids: string[]): Set<string> {
    const rows = this.#db.all<{ mid: string }>(
      "SELECT mid FROM message WHERE conversation_id = ? AND mid IN (SELECT value FROM json_each(?))",
      conversationId,
      JSON.stringify(mids),
    );
    return new Set(rows.map(({ mid }) => mid));
  }

  /** Opens a block off the serving thread: messages as JSON texts joined by commas. */
  async open(conversationId: string, row: BlockRow): Promise<Uint8Array> {
    const known = this.cache.find(row);
    return known === undefined
      ? await this.#sealer.open(blockPlace(conversationId, row), row.sealed)
      : encoder.encode(known);
  }

  /** Gives the parsed messages of one block. */
  messagesOf(conversationId: string, row: BlockRow): Message[] {
    return parseBlock(this.textOf(conversationId, row));
  }

  /** Gives the text of one block. */
  textOf(conversationId: string, row: BlockRow): string {
    let text = this.cache.find(row);
    if (text === undefined) {
      text = decoder.decode(this.#sealer.openNow(blockPlace(conversationId, row), row.sealed));
      this.cache.keep(row, text);
    }
    return text;
  }

  /** Gives many blocks with what they hold, a few at a time, opened off the serving thread. */
  async openMany(conversationId: string, rows: BlockRow[]): Promise<OpenBlock[]> {
    const pace = new Pace();
    const opened: OpenBlock[] = [];
    for (let at = 0; at < rows.length; at += BLOCKS_AT_ONCE) {
      await pace.rest();
      const texts = rows.slice(at, at + BLOCKS_AT_ONCE).map((row) => this.#openText(conversationId, row));
      for (const [n, text] of (await Promise.all(texts)).entries()) {
        opened.push({ row: rows[at + n]!, text, messages: parseBlock(text) });
      }
    }
    return opened;
  }

  /** Gives all live blocks of a conversation with what they hold. The caller holds the conversation's turn. */
  async openAll(conversationId: string): Promise<OpenBlock[]> {
    const opened: OpenBlock[] = [];
    for (;;) {
      const rows = this.#db.all<BlockRow>(
        `SELECT ${COLUMNS} FROM block WHERE conversation_id = ? AND live = 1 AND position > ? ORDER BY position LIMIT ?`,
        conversationId,
        opened.at(-1)?.row.position ?? -Number.MAX_VALUE,
        BLOCKS_AT_ONCE,
      );
      opened.push(...await this.openMany(conversationId, rows));
      if (rows.length < BLOCKS_AT_ONCE) return opened;
    }
  }

  async #openText(conversationId: string, row: BlockRow): Promise<string> {
    let text = this.cache.find(row);
    if (text === undefined) {
      text = decoder.decode(await this.#sealer.open(blockPlace(conversationId, row), row.sealed));
      this.cache.keep(row, text);
    }
    return text;
  }
}

/** Stands for a block on a damaged page of the database file, of which nothing but its place is known. It never opens. */
function lostBlock(position: number): BlockRow {
  return { id: LOST_ID, version: 0, position, message_count: 0, sealed: new Uint8Array() };
}

/** Says whether nothing but its place is known of a block. */
export function isLost({ id }: BlockRow): boolean {
  return id === LOST_ID;
}

/** Statements that take a version of a block out of its conversation; a revision may keep it. */
export function retire(row: { id: number; version: number }): Statement[] {
  return [
    { sql: "DELETE FROM block WHERE id = ? AND version = ? AND kept = 0", params: [row.id, row.version] },
    { sql: "UPDATE block SET live = 0 WHERE id = ? AND version = ?", params: [row.id, row.version] },
  ];
}

/** Statement that adds a live block. */
export function insertBlock(conversationId: string, row: BlockRow): Statement {
  return {
    sql:
      "INSERT INTO block (id, version, conversation_id, position, live, message_count, sealed) VALUES (?, ?, ?, ?, 1, ?, ?)",
    params: [row.id, row.version, conversationId, row.position, row.message_count, row.sealed],
  };
}

/** Statement that says which block holds which message. */
export function insertMessages(conversationId: string, owners: (readonly [mid: string, blockId: number])[]): Statement {
  return {
    sql: "INSERT INTO message (mid, conversation_id, block_id) SELECT value ->> 0, ?, value ->> 1 FROM json_each(?)",
    params: [conversationId, JSON.stringify(owners)],
  };
}
