/**
 * Messages lie in sealed blocks of about 16 KiB of JSON text, as the API returns them, so that one edit rewrites one
 * block and a list is blocks joined by commas. This file changes blocks; what a change means is its neighbours' affair.
 */
import { refer } from "../attachments/attachment_rows.ts";
import { AppError } from "../errors.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { Pace } from "../pace.ts";
import type { Database, Statement } from "../storage/database.ts";
import { planReplacement, positionsOf, SMALLEST_GAP } from "./block_replacement.ts";
import {
  BlockReader,
  type BlockRow,
  insertBlock,
  insertMessages,
  isLost,
  type OpenBlock,
  retire,
} from "./block_rows.ts";
import { isReordered, type Touched } from "./change_log.ts";
import { BLOCK_BYTES, pack, type Piece, textsOf, textsOfMany } from "./block_text.ts";
import { inOrder, type Message } from "./message.ts";
import { blockPlace } from "./sealed_places.ts";

/** A block grown by edits beyond this is split. */
const SPLIT_BYTES = 24 * 1024;

/** What becomes of messages: how to write it, and which one is the conversation's last then. */
export interface BlockChange {
  statements: Statement[];
  last: Message | undefined | "unchanged";
  /** Absent where it isn't known which messages that touches. */
  touched?: Touched;
}

/** What becomes of one message. */
export interface BlockEdit extends BlockChange {
  before: Message;
  /** `undefined` when it was removed. */
  after?: Message;
}

/** Sealed together: some 2 ms of work. */
const SEALED_AT_ONCE = 32;

interface NewBlock {
  piece: Piece;
  position: number;
  /** The block of which it is the next version. */
  over?: { id: number; version: number };
}

/** Ids between which messages stand or stood. */
export interface Neighbours {
  after?: string;
  before?: string;
}

/** Reads and changes the blocks of conversations; every change is handed back as statements for one atomic write. */
export class BlockStore extends BlockReader {
  #db: Database;
  #sealer: PurposeSealer;
  /** Never used twice, also not after a restart: a deleted block's id must not come back under another content. */
  #nextId = Date.now() * 1000;

  constructor(db: Database, sealer: PurposeSealer) {
    super(db, sealer);
    this.#db = db;
    this.#sealer = sealer;
  }

  /**
   * Replaces all messages of a conversation and leaves the blocks alone that hold the same as before.
   *
   * @param standing All live blocks, as `openAll` gives them; none for a conversation that is new. They have to be
   *   marked as kept first where a revision is to refer to them.
   * @returns Beside the statements the text of all messages, what it touches, and whether there was nothing to change.
   */
  async replaceAll(
    conversationId: string,
    messages: Message[],
    standing: OpenBlock[] = [],
  ): Promise<{ statements: Statement[]; text: string; touched: Touched; isUnchanged: boolean }> {
    const pace = new Pace();
    const texts = await textsOfMany(messages);
    await pace.rest();
    const slots = planReplacement(standing, messages, texts);
    await pace.rest();
    const staying = new Set(slots.flatMap((slot) => "stays" in slot ? [slot.stays] : []));
    const leaving = standing.filter((block) => !staying.has(block));
    const positions = positionsOf(slots);
    const statements: Statement[] = leaving.flatMap(({ row }) => retire(row));
    const successors = new Map(leaving.map(({ row, messages }) => [messages[0]?.id, row]));
    const added: NewBlock[] = [];
    slots.forEach((slot, index) => {
      const position = positions?.[index] ?? (index + 1) * 1024;
      if ("piece" in slot) added.push({ piece: slot.piece, position, over: successors.get(slot.piece.mids[0]) });
      else if (positions === undefined) {
        const { id, version } = slot.stays.row;
        statements.push({
          sql: "UPDATE block SET position = ? WHERE id = ? AND version = ?",
          params: [position, id, version],
        });
      }
    });
    const written = await this.#insertPieces(conversationId, added);
    await pace.rest();
    statements.push(...moveMids(conversationId, leaving, written.owners), ...written.statements);
    await pace.rest();
    const touched = touchedBy(standing, leaving, messages, texts, added);
    await pace.rest();
    return { statements, text: texts.join(","), touched, isUnchanged: leaving.length === 0 && added.length === 0 };
  }

  /** Adds messages at the end. */
  append(conversationId: string, messages: Message[]): Statement[] {
    const tail = this.previous(conversationId);
    const [first, ...rest] = pack(messages);
    if (first === undefined) return [];
    const statements: Statement[] = [];
    let position = tail?.position ?? 0;
    const owners: (readonly [string, number])[] = [];
    const addBlock = (piece: Piece) => {
      const id = this.#nextId++;
      position = Math.floor(position) + 1;
      statements.push(...this.#insert(conversationId, id, 1, position, piece.mids.length, piece.text));
      owners.push(...piece.mids.map((mid) => [mid, id] as const));
    };
    const text = tail !== undefined && tail.sealed.length + first.text.length <= BLOCK_BYTES
      ? this.#readableText(conversationId, tail)
      : undefined;
    if (tail !== undefined && text !== undefined) {
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
   * Puts messages directly behind or before another.
   *
   * @throws {AppError} `not_found` when the conversation has no such message.
   */
  insert(conversationId: string, added: Message[], side: "after" | "before", mid: string): BlockChange {
    const { row, messages, index } = this.#find(conversationId, mid);
    messages.splice(side === "after" ? index + 1 : index, 0, ...added);
    const statements = [
      insertMessages(conversationId, added.map(({ id }) => [id, row.id])),
      ...this.#repack(conversationId, row, messages),
    ];
    const last = this.#lastAfter(conversationId, row, messages);
    return { statements, last, touched: { added: added.map(({ id }) => id) } };
  }

  /**
   * Changes one message through `change`, or removes it when that gives `undefined`.
   *
   * @throws {AppError} `not_found` when the conversation has no such message.
   */
  edit(conversationId: string, mid: string, change: (message: Message) => Message | undefined): BlockEdit {
    const { row, messages, index } = this.#find(conversationId, mid);
    const before = messages[index]!;
    const changed = change(before);
    const after = changed && inOrder(changed);
    if (after !== undefined) messages[index] = after;
    else messages.splice(index, 1);
    const statements: Statement[] = after === undefined ? [removeMids(conversationId, [mid])] : [];
    if (messages.length === 0) statements.push(...retire(row));
    else statements.push(...this.#repack(conversationId, row, messages));
    const touched = after === undefined ? { removed: [mid] } : { changed: [mid] };
    return { statements, before, after, touched, last: this.#lastAfter(conversationId, row, messages) };
  }

  /**
   * Removes a message and all behind it.
   *
   * @throws {AppError} `not_found` when the conversation has no such message.
   */
  async removeFrom(conversationId: string, mid: string): Promise<BlockChange & { removed: Message[] }> {
    const { row, messages, index } = this.#find(conversationId, mid);
    const behind = this.rowsBehind(conversationId, row.position);
    const opened = await this.openMany(conversationId, behind);
    const staying = messages.slice(0, index);
    const removed = [...messages.slice(index), ...opened.flatMap((block) => block.messages)];
    const statements = [removeMids(conversationId, removed.map(({ id }) => id)), ...behind.flatMap(retire)];
    if (staying.length === 0) statements.push(...retire(row));
    else statements.push(...this.#repack(conversationId, row, staying));
    const last = staying.at(-1) ?? this.#lastBefore(conversationId, row.position);
    return { statements, removed, last, touched: { removed: removed.map(({ id }) => id) } };
  }

  /** Gives the ids directly before and behind a message. */
  neighboursOf(conversationId: string, mid: string): Neighbours {
    const { row, messages, index } = this.#find(conversationId, mid);
    const next = index + 1 < messages.length ? undefined : this.next(conversationId, row.position);
    return {
      after: messages[index - 1]?.id ?? this.#lastBefore(conversationId, row.position)?.id,
      before: messages[index + 1]?.id ?? (next && this.messagesOf(conversationId, next)[0]?.id),
    };
  }

  /**
   * Statements that remove a block that can't be read, once other blocks have its messages.
   *
   * @param mids What `midsOf` gives.
   */
  discard(conversationId: string, row: BlockRow, mids: string[]): Statement[] {
    return [removeMids(conversationId, mids), ...retire(row)];
  }

  /** Statements that forget one message of a block that can't be read, and the block with the last of them. */
  forgetUnreadable(conversationId: string, row: BlockRow, mid: string): Statement[] {
    const isLast = !isLost(row) && this.midsOf(conversationId, row).every((other) => other === mid);
    return [removeMids(conversationId, [mid]), ...(isLast ? retire(row) : [])];
  }

  /** Forgets every block and id of a conversation. */
  removeAll(conversationId: string): Statement[] {
    return [
      { sql: "DELETE FROM block WHERE conversation_id = ?", params: [conversationId] },
      { sql: "DELETE FROM message WHERE conversation_id = ?", params: [conversationId] },
    ];
  }

  #find(conversationId: string, mid: string): { row: BlockRow; messages: Message[]; index: number } {
    const row = this.rowOf(conversationId, mid);
    const messages = row === undefined ? [] : this.messagesOf(conversationId, row);
    const index = messages.findIndex((message) => message.id === mid);
    if (row !== undefined && index >= 0) return { row, messages, index };
    throw new AppError("not_found", `Conversation "${conversationId}" has no message "${mid}"`);
  }

  /** Gives the text of a block, or `undefined` when it can't be read. */
  #readableText(conversationId: string, row: BlockRow): string | undefined {
    try {
      return this.textOf(conversationId, row);
    } catch {
      return undefined;
    }
  }

  /** Gives the last message of the conversation once `row` holds `messages`, or `unchanged` when that is another block's. */
  #lastAfter(conversationId: string, row: BlockRow, messages: Message[]): Message | undefined | "unchanged" {
    const later = this.#db.get(
      "SELECT 1 FROM block WHERE conversation_id = ? AND live = 1 AND position > ? LIMIT 1",
      conversationId,
      row.position,
    );
    if (later !== undefined) return "unchanged";
    return messages.at(-1) ?? this.#lastBefore(conversationId, row.position);
  }

  #lastBefore(conversationId: string, position: number): Message | undefined {
    const previous = this.previous(conversationId, position);
    return previous === undefined ? undefined : this.messagesOf(conversationId, previous).at(-1);
  }

  /** Writes a block's messages back, in further blocks behind it where it has grown too large. */
  #repack(conversationId: string, row: BlockRow, messages: Message[]): Statement[] {
    const texts = textsOf(messages);
    const whole = texts.join(",");
    if (messages.length === 1 || whole.length <= SPLIT_BYTES) {
      return this.#rewrite(conversationId, row, messages.length, whole);
    }
    const [first, ...rest] = pack(messages, texts);
    const statements: Statement[] = [];
    const next = this.#db.get<{ position: number }>(
      "SELECT position FROM block WHERE conversation_id = ? AND live = 1 AND position > ? ORDER BY position LIMIT 1",
      conversationId,
      row.position,
    );
    let [from, gap] = [row.position, (next?.position ?? row.position + rest.length + 1) - row.position];
    if (gap / (rest.length + 1) < SMALLEST_GAP) {
      // Positions are no secret and bound to nothing: counting them afresh rewrites no sealed text.
      statements.push({
        sql: `UPDATE block SET position = n.rank * 1024 FROM (SELECT id, row_number() OVER (ORDER BY position) AS rank
              FROM block WHERE conversation_id = ?1 AND live = 1) n WHERE block.id = n.id AND block.live = 1 AND block.conversation_id = ?1`,
        params: [conversationId],
      });
      const rank = this.rows(conversationId).findIndex((other) => other.id === row.id) + 1;
      [from, gap] = [rank * 1024, 1024];
    }
    statements.push(
      ...this.#rewrite(conversationId, { ...row, position: from }, first!.mids.length, first!.text),
    );
    rest.forEach((piece, index) => {
      const id = this.#nextId++;
      const position = from + (gap * (index + 1)) / (rest.length + 1);
      statements.push(...this.#insert(conversationId, id, 1, position, piece.mids.length, piece.text), {
        sql: "UPDATE message SET block_id = ? WHERE conversation_id = ? AND mid IN (SELECT value FROM json_each(?))",
        params: [id, conversationId, JSON.stringify(piece.mids)],
      });
    });
    return statements;
  }

  /** Copy-on-write: the next version of a block beside which the old one goes, unless a revision keeps it. */
  #rewrite(conversationId: string, row: BlockRow, messageCount: number, text: string): Statement[] {
    const { id, version, position } = row;
    return [...retire(row), ...this.#insert(conversationId, id, version + 1, position, messageCount, text)];
  }

  /** Every text of messages passes here or `#insertPieces`, and so does every attachment that one refers to. */
  #insert(
    conversationId: string,
    id: number,
    version: number,
    position: number,
    messageCount: number,
    text: string,
  ): Statement[] {
    const sealed = this.#sealer.sealNow(blockPlace(conversationId, { id, version }), text);
    this.cache.keep({ id, version, sealed }, text);
    return [
      insertBlock(conversationId, { id, version, position, message_count: messageCount, sealed }),
      ...refer("conversation", conversationId, text),
    ];
  }

  /** Seals new blocks off the serving thread, a few at a time; one alone is sealed before another thread would have begun. */
  async #insertPieces(
    conversationId: string,
    added: NewBlock[],
  ): Promise<{ statements: Statement[]; owners: (readonly [mid: string, blockId: number])[] }> {
    const owners: (readonly [string, number])[] = [];
    const statements: Statement[] = [];
    const pace = new Pace();
    for (let at = 0; at < added.length; at += SEALED_AT_ONCE) {
      await pace.rest();
      const written = added.slice(at, at + SEALED_AT_ONCE).map(async ({ piece, position, over }) => {
        const id = over?.id ?? this.#nextId++;
        const version = (over?.version ?? 0) + 1;
        owners.push(...piece.mids.map((mid) => [mid, id] as const));
        const place = blockPlace(conversationId, { id, version });
        const sealed = added.length === 1 && piece.text.length <= SPLIT_BYTES
          ? this.#sealer.sealNow(place, piece.text)
          : await this.#sealer.seal(place, piece.text);
        this.cache.keep({ id, version, sealed }, piece.text);
        return [
          insertBlock(conversationId, { id, version, position, message_count: piece.mids.length, sealed }),
          ...refer("conversation", conversationId, piece.text),
        ];
      });
      statements.push(...(await Promise.all(written)).flat());
    }
    return { statements, owners };
  }
}

/** Statements that say which block holds which message; nothing for those that stay in a block whose text alone is another. */
function moveMids(
  conversationId: string,
  leaving: OpenBlock[],
  owners: (readonly [mid: string, blockId: number])[],
): Statement[] {
  const before = new Map(leaving.flatMap(({ row, messages }) => messages.map(({ id }) => [id, row.id])));
  const moved: (readonly [string, number])[] = [];
  for (const [mid, blockId] of owners) {
    if (before.get(mid) === blockId) before.delete(mid);
    else moved.push([mid, blockId]);
  }
  return [
    ...(before.size === 0 ? [] : [removeMids(conversationId, [...before.keys()])]),
    ...(moved.length === 0 ? [] : [insertMessages(conversationId, moved)]),
  ];
}

/** Tells what a replacement touches; only blocks that do not stay are compared. */
function touchedBy(
  standing: OpenBlock[],
  leaving: OpenBlock[],
  messages: Message[],
  texts: string[],
  added: NewBlock[],
): Touched {
  const before = new Map(leaving.flatMap((block) => block.messages.map((message) => [message.id, message])));
  const written = new Set(added.flatMap(({ piece }) => piece.mids));
  const touched = { added: [] as string[], changed: [] as string[] };
  messages.forEach(({ id }, index) => {
    if (!written.has(id)) return;
    const stored = before.get(id);
    if (stored === undefined) touched.added.push(id);
    else if (JSON.stringify(stored) !== texts[index]) touched.changed.push(id);
  });
  const order = standing.flatMap((block) => block.messages.map(({ id }) => id));
  return {
    ...touched,
    removed: [...before.keys()].filter((mid) => !written.has(mid)),
    isReordered: isReordered(order, messages.map(({ id }) => id)),
  };
}

function removeMids(conversationId: string, mids: string[]): Statement {
  return {
    sql: "DELETE FROM message WHERE conversation_id = ? AND mid IN (SELECT value FROM json_each(?))",
    params: [conversationId, JSON.stringify(mids)],
  };
}
