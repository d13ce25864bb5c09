/**
 * Messages lie in sealed blocks of about 16 KiB of JSON text, as the API returns them, so that one edit rewrites one
 * block and a list is blocks joined by commas. This file owns the block rows; what a change means is its neighbours' affair.
 */
import { AppError } from "../errors.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import type { Database, Statement } from "../storage/database.ts";
import type { Message } from "./message.ts";

/** Where a new block is begun. BENCH: 45 MB open in 56–94 ms at this size, and one edit stays cheap. */
const BLOCK_BYTES = 16 * 1024;
/** A block grown by edits beyond this is split. */
const SPLIT_BYTES = 24 * 1024;
/** Below this gap a position between two blocks can no longer be told from its neighbours. */
const SMALLEST_GAP = 1e-6;

/** A live block as it lies in the database. */
export interface BlockRow {
  id: number;
  version: number;
  position: number;
  message_count: number;
  sealed: Uint8Array;
}

/** A live block with its content. */
export interface OpenBlock {
  row: BlockRow;
  text: string;
  messages: Message[];
}

/** What becomes of a message: how to write it, the message as it is then, and which one is the conversation's last. */
export interface BlockEdit {
  statements: Statement[];
  /** `undefined` when it was removed. */
  after?: Message;
  last: Message | undefined | "unchanged";
}

/** Part of a block's text in memory. */
interface Piece {
  text: string;
  mids: string[];
}

const decoder = new TextDecoder();

/** Reads and changes the blocks of conversations; every change is handed back as statements for one atomic write. */
export class BlockStore {
  #db: Database;
  #sealer: PurposeSealer;
  /** Never used twice, also not after a restart: a deleted block's id must not come back under another content. */
  #nextId = Date.now() * 1000;

  constructor(db: Database, sealer: PurposeSealer) {
    this.#db = db;
    this.#sealer = sealer;
  }

  /** Gives the live blocks of a conversation in order, sealed. */
  rows(conversationId: string): BlockRow[] {
    return this.#db.all<BlockRow>(
      "SELECT id, version, position, message_count, sealed FROM block WHERE conversation_id = ? AND live = 1 ORDER BY position",
      conversationId,
    );
  }

  /** Opens a block off the serving thread: messages as JSON texts joined by commas. */
  open(conversationId: string, row: BlockRow): Promise<Uint8Array> {
    return this.#sealer.open(place(conversationId, row), row.sealed);
  }

  /** Gives the parsed messages of one block. */
  messagesOf(conversationId: string, row: BlockRow): Message[] {
    return parseBlock(decoder.decode(this.#sealer.openNow(place(conversationId, row), row.sealed)));
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

  /** Gives the last block. */
  tail(conversationId: string): BlockRow | undefined {
    return this.#db.get<BlockRow>(
      "SELECT id, version, position, message_count, sealed FROM block WHERE conversation_id = ? AND live = 1 ORDER BY position DESC LIMIT 1",
      conversationId,
    );
  }

  /** Which of these ids belong to another conversation. */
  takenElsewhere(conversationId: string, mids: string[]): string | undefined {
    return this.#db.get<{ mid: string }>(
      "SELECT mid FROM message WHERE mid IN (SELECT value FROM json_each(?)) AND conversation_id <> ? LIMIT 1",
      JSON.stringify(mids),
      conversationId,
    )?.mid;
  }

  /** Opens all live blocks of a conversation. */
  openAll(conversationId: string): Promise<OpenBlock[]> {
    return Promise.all(
      this.rows(conversationId).map(async (row) => {
        const text = decoder.decode(await this.open(conversationId, row));
        return { row, text, messages: parseBlock(text) };
      }),
    );
  }

  /**
   * Replaces all messages of a conversation. A block that holds the same messages as before stays the block it is, and is
   * written only if one of them differs.
   *
   * @param before What stands there.
   * @returns The statements, and the messages as one JSON text joined by commas.
   */
  async replaceAll(
    conversationId: string,
    messages: Message[],
    before: OpenBlock[] = [],
  ): Promise<{ statements: Statement[]; text: string }> {
    const pieces = pack(messages);
    const byFirst = new Map(before.map((block) => [block.messages[0]!.id, block]));
    const [replaced, gone] = [new Set<OpenBlock>(), new Set(before)];
    const owners: (readonly [string, number])[] = [];
    const inserts = await Promise.all(pieces.map(async ({ text, mids }, index) => {
      const position = index + 1;
      const candidate = byFirst.get(mids[0]!);
      const same = candidate !== undefined && hasIds(candidate, mids) ? candidate : undefined;
      if (same !== undefined) gone.delete(same);
      if (same?.text === text && same.row.position === position) return undefined;
      if (same !== undefined) replaced.add(same);
      const { id, version } = same === undefined
        ? { id: this.#nextId++, version: 1 }
        : { id: same.row.id, version: same.row.version + 1 };
      if (same === undefined) owners.push(...mids.map((mid) => [mid, id] as const));
      const sealed = await this.#sealer.seal(place(conversationId, { id, version }), text);
      return insertBlock(conversationId, id, version, position, mids.length, sealed);
    }));
    const goneIds = [...gone].flatMap((block) => block.messages.map((message) => message.id));
    const statements = [...gone, ...replaced].flatMap((block) => retire(block.row));
    if (goneIds.length > 0) {
      statements.push({
        sql: "DELETE FROM message WHERE mid IN (SELECT value FROM json_each(?))",
        params: [JSON.stringify(goneIds)],
      });
    }
    statements.push(...inserts.filter((insert) => insert !== undefined));
    if (owners.length > 0) statements.push(insertMessages(conversationId, owners));
    return { statements, text: pieces.map((piece) => piece.text).join(",") };
  }

  /** Adds messages at the end. */
  append(conversationId: string, messages: Message[]): Statement[] {
    const tail = this.tail(conversationId);
    const [first, ...rest] = pack(messages);
    if (first === undefined) return [];
    const statements: Statement[] = [];
    let position = tail?.position ?? 0;
    const owners: (readonly [string, number])[] = [];
    const addBlock = (piece: Piece) => {
      const id = this.#nextId++;
      position = Math.floor(position) + 1;
      statements.push(this.#insert(conversationId, id, 1, position, piece.mids.length, piece.text));
      owners.push(...piece.mids.map((mid) => [mid, id] as const));
    };
    if (tail !== undefined && tail.sealed.length + first.text.length <= BLOCK_BYTES) {
      const text = decoder.decode(this.#sealer.openNow(place(conversationId, tail), tail.sealed));
      statements.push(
        ...this.#rewrite(conversationId, tail, tail.message_count + first.mids.length, `${text},${first.text}`),
      );
      owners.push(...first.mids.map((mid) => [mid, tail.id] as const));
    } else addBlock(first);
    rest.forEach(addBlock);
    statements.push(insertMessages(conversationId, owners));
    return statements;
  }

  /**
   * Changes one message through `change`, or removes it when that gives `undefined`.
   *
   * @throws {AppError} `not_found` when the conversation has no such message.
   */
  edit(conversationId: string, mid: string, change: (message: Message) => Message | undefined): BlockEdit {
    const row = this.rowOf(conversationId, mid);
    const messages = row === undefined ? [] : this.messagesOf(conversationId, row);
    const index = messages.findIndex((message) => message.id === mid);
    if (row === undefined || index < 0) {
      throw new AppError("not_found", `Conversation "${conversationId}" has no message "${mid}"`);
    }
    const before = messages[index]!;
    const after = change(before);
    if (after !== undefined) messages[index] = after;
    else messages.splice(index, 1);
    const statements: Statement[] = after === undefined
      ? [{ sql: "DELETE FROM message WHERE mid = ?", params: [mid] }]
      : [];
    if (messages.length === 0) statements.push(...retire(row));
    else statements.push(...this.#repack(conversationId, row, messages));
    return { statements, after, last: this.#lastAfter(conversationId, row, messages) };
  }

  /** Gives the last message of the conversation once `row` holds `messages`, or `unchanged` when that is another block's. */
  #lastAfter(conversationId: string, row: BlockRow, messages: Message[]): Message | undefined | "unchanged" {
    const later = this.#db.get(
      "SELECT 1 FROM block WHERE conversation_id = ? AND live = 1 AND position > ? LIMIT 1",
      conversationId,
      row.position,
    );
    if (later !== undefined) return "unchanged";
    if (messages.length > 0) return messages.at(-1);
    const previous = this.#db.get<BlockRow>(
      `SELECT id, version, position, message_count, sealed FROM block
       WHERE conversation_id = ? AND live = 1 AND position < ? ORDER BY position DESC LIMIT 1`,
      conversationId,
      row.position,
    );
    return previous === undefined ? undefined : this.messagesOf(conversationId, previous).at(-1);
  }

  /** Forgets every block and id of a conversation. */
  removeAll(conversationId: string): Statement[] {
    return [
      { sql: "DELETE FROM block WHERE conversation_id = ?", params: [conversationId] },
      { sql: "DELETE FROM message WHERE conversation_id = ?", params: [conversationId] },
    ];
  }

  /** Writes a block's messages back, in further blocks behind it where it has grown too large. */
  #repack(conversationId: string, row: BlockRow, messages: Message[]): Statement[] {
    const whole = messages.map((message) => JSON.stringify(message)).join(",");
    if (messages.length === 1 || whole.length <= SPLIT_BYTES) {
      return this.#rewrite(conversationId, row, messages.length, whole);
    }
    const [first, ...rest] = pack(messages);
    const statements = this.#rewrite(conversationId, row, first!.mids.length, first!.text);
    const next = this.#db.get<{ position: number }>(
      "SELECT position FROM block WHERE conversation_id = ? AND live = 1 AND position > ? ORDER BY position LIMIT 1",
      conversationId,
      row.position,
    );
    let [from, gap] = [row.position, (next?.position ?? row.position + rest.length + 1) - row.position];
    if (gap / (rest.length + 1) < SMALLEST_GAP) {
      // Positions are no secret and bound to nothing: counting them afresh rewrites no sealed text.
      statements.unshift({
        sql: `UPDATE block SET position = n.rank * 1024 FROM (SELECT id, row_number() OVER (ORDER BY position) AS rank
              FROM block WHERE conversation_id = ?1 AND live = 1) n WHERE block.id = n.id AND block.live = 1 AND block.conversation_id = ?1`,
        params: [conversationId],
      });
      const rank = this.rows(conversationId).findIndex((other) => other.id === row.id) + 1;
      [from, gap] = [rank * 1024, 1024];
      statements.splice(
        1,
        statements.length - 1,
        ...this.#rewrite(conversationId, { ...row, position: from }, first!.mids.length, first!.text),
      );
    }
    rest.forEach((piece, index) => {
      const id = this.#nextId++;
      statements.push(
        this.#insert(
          conversationId,
          id,
          1,
          from + (gap * (index + 1)) / (rest.length + 1),
          piece.mids.length,
          piece.text,
        ),
      );
      statements.push({
        sql: "UPDATE message SET block_id = ? WHERE mid IN (SELECT value FROM json_each(?))",
        params: [id, JSON.stringify(piece.mids)],
      });
    });
    return statements;
  }

  /** Copy-on-write: the next version of a block beside which the old one goes, unless a revision keeps it. */
  #rewrite(conversationId: string, row: BlockRow, messageCount: number, text: string): Statement[] {
    return [...retire(row), this.#insert(conversationId, row.id, row.version + 1, row.position, messageCount, text)];
  }

  #insert(
    conversationId: string,
    id: number,
    version: number,
    position: number,
    messageCount: number,
    text: string,
  ): Statement {
    return insertBlock(
      conversationId,
      id,
      version,
      position,
      messageCount,
      this.#sealer.sealNow(place(conversationId, { id, version }), text),
    );
  }
}

/** Parses the text of a block. */
export function parseBlock(text: string): Message[] {
  return JSON.parse(`[${text}]`);
}

function hasIds({ messages }: OpenBlock, mids: string[]): boolean {
  return messages.length === mids.length && messages.every((message, index) => message.id === mids[index]);
}

function place(conversationId: string, { id, version }: { id: number; version: number }) {
  return { table: "block", id: `${id}/${conversationId}`, field: "messages", version };
}

function retire(row: BlockRow): Statement[] {
  return [
    { sql: "DELETE FROM block WHERE id = ? AND version = ? AND kept = 0", params: [row.id, row.version] },
    { sql: "UPDATE block SET live = 0 WHERE id = ? AND version = ?", params: [row.id, row.version] },
  ];
}

function insertBlock(
  conversationId: string,
  id: number,
  version: number,
  position: number,
  messageCount: number,
  sealed: Uint8Array,
): Statement {
  return {
    sql:
      "INSERT INTO block (id, version, conversation_id, position, live, message_count, sealed) VALUES (?, ?, ?, ?, 1, ?, ?)",
    params: [id, version, conversationId, position, messageCount, sealed],
  };
}

function insertMessages(conversationId: string, owners: (readonly [string, number])[]): Statement {
  return {
    sql: "INSERT INTO message (mid, conversation_id, block_id) SELECT value ->> 0, ?, value ->> 1 FROM json_each(?)",
    params: [conversationId, JSON.stringify(owners)],
  };
}

/** Puts messages into pieces of at most a block's size; a larger message has a piece of its own. */
function pack(messages: Message[]): Piece[] {
  const pieces: Piece[] = [];
  let texts: string[] = [];
  let mids: string[] = [];
  let bytes = 0;
  const flush = () => {
    if (mids.length > 0) pieces.push({ text: texts.join(","), mids });
    [texts, mids, bytes] = [[], [], 0];
  };
  for (const message of messages) {
    const text = JSON.stringify(message);
    const size = text.length; // UTF-16 units: near enough to bytes for a size that is only aimed at
    if (bytes + size > BLOCK_BYTES) flush();
    texts.push(text);
    mids.push(message.id);
    bytes += size + 1;
  }
  flush();
  return pieces;
}
