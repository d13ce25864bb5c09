/**
 * Encrypts and writes new blocks and new versions of blocks. Changes are returned as statements for one transaction.
 */
import { addReferences } from "../../attachments/attachment_rows.ts";
import { collectGarbage, getBudgetSizes } from "../../async/byte_budget.ts";
import { yieldIfTickUsedUp } from "../../async/delay.ts";
import type { PurposeSealer } from "../../crypto/sealer.ts";
import type { Database, Statement } from "../../storage/database/database.ts";
import { BLOCK_BYTES, createBlockAad, getPiece, pack, type Piece, readTexts, SMALLEST_GAP } from "../stored_form.ts";
import type { Message } from "../message.ts";
import { BlockReader, type BlockRow, insertBlock, insertMessages, retireBlock } from "./block_rows.ts";

/** Blocks that grow larger than this are split. */
const SPLIT_BYTES = 24 * 1024;

/** Maximum number of cached pieces per change. More would displace those of other conversations. */
const MAX_CACHED_PIECES = 128;
/** Number of pieces encrypted together: about 2 ms of work. */
const SEALED_AT_ONCE = 32;

/** A block to write. */
export interface NewBlock {
  piece: Piece;
  segment: number;
  position: number;
  /** The block that this one replaces as its next version. */
  over?: { id: number; version: number };
}

/** Writes blocks. */
export class BlockWriter extends BlockReader {
  #db: Database;
  #sealer: PurposeSealer;
  /** Number of encrypted characters after which garbage is collected. */
  readonly #collectedChars = getBudgetSizes().smallBytes;
  /**
   * The last ID. IDs are never reused, even after a restart: the ID of a deleted block must never belong to other
   * content.
   */
  #nextId = Date.now() * 1000;

  constructor(db: Database, sealer: PurposeSealer) {
    super(db, sealer);
    this.#db = db;
    this.#sealer = sealer;
  }

  /** Returns an ID that no block or segment ever had. */
  takeNextId(): number {
    return this.#nextId++;
  }

  /** Adds messages at the end of a segment. @param tail Its last block. */
  protected appendTo(
    conversationId: string,
    segment: number,
    tail: BlockRow | undefined,
    messages: Message[],
  ): Statement[] {
    const [first, ...rest] = pack(messages);
    if (first === undefined) return [];
    const statements: Statement[] = [];
    let position = tail?.position ?? 0;
    const owners: (readonly [string, number])[] = [];
    const addBlock = (piece: Piece) => {
      const id = this.takeNextId();
      position = Math.floor(position) + 1;
      statements.push(
        ...this.#insert(conversationId, { id, version: 1, segment, position }, piece.mids.length, piece.text),
      );
      owners.push(...piece.mids.map((mid) => [mid, id] as const));
    };
    const isOpen = tail !== undefined && !this.getTree(conversationId).endsInBranch(tail.id) &&
      tail.sealed.length + first.text.length <= BLOCK_BYTES;
    const text = isOpen ? this.#findReadableText(conversationId, tail) : undefined;
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

  /** Adds messages at the end of a segment. Starts a new block after each branch point. */
  protected appendBroken(
    conversationId: string,
    segment: number,
    tail: BlockRow | undefined,
    messages: Message[],
    branches: ReadonlySet<string>,
  ): Statement[] {
    const statements: Statement[] = [];
    let position = tail?.position ?? 0;
    for (const piece of pack(messages, undefined, branches)) {
      const id = this.takeNextId();
      position = Math.floor(position) + 1;
      statements.push(
        ...this.#insert(conversationId, { id, version: 1, segment, position }, piece.mids.length, piece.text),
        insertMessages(conversationId, piece.mids.map((mid) => [mid, id] as const)),
      );
    }
    return statements;
  }

  /**
   * Writes the messages of a block, and splits it if it's too large.
   *
   * @param breakAt The message with which a new block must start.
   */
  protected repack(conversationId: string, row: BlockRow, messages: Message[], breakAt = messages.length): Statement[] {
    const texts = readTexts(messages);
    const pieces = [
      ...packUnlessSmall(messages.slice(0, breakAt), texts.slice(0, breakAt)),
      ...packUnlessSmall(messages.slice(breakAt), texts.slice(breakAt)),
    ];
    const [first, ...rest] = pieces;
    if (rest.length === 0) return this.#rewrite(conversationId, row, messages.length, first!.text);
    const { segment } = row;
    const statements: Statement[] = [];
    const next = this.#db.get<{ position: number }>(
      `SELECT position FROM block WHERE conversation_id = ? AND segment = ? AND live = 1 AND position > ?
       ORDER BY position LIMIT 1`,
      conversationId,
      segment,
      row.position,
    );
    let [from, gap] = [row.position, (next?.position ?? row.position + rest.length + 1) - row.position];
    if (gap / (rest.length + 1) < SMALLEST_GAP) {
      // Positions aren't encrypted or authenticated, so renumbering doesn't rewrite text.
      statements.push({
        sql: `UPDATE block SET position = n.rank * 1024 FROM (SELECT id, row_number() OVER (ORDER BY position) AS rank
              FROM block WHERE conversation_id = ?1 AND segment = ?2 AND live = 1) n
              WHERE block.id = n.id AND block.live = 1 AND block.conversation_id = ?1`,
        params: [conversationId, segment],
      });
      const { rank } = this.#db.get<{ rank: number }>(
        "SELECT count(*) AS rank FROM block WHERE conversation_id = ? AND segment = ? AND live = 1 AND position <= ?",
        conversationId,
        segment,
        row.position,
      )!;
      [from, gap] = [rank * 1024, 1024];
    }
    statements.push(
      ...this.#rewrite(conversationId, { ...row, position: from }, first!.mids.length, first!.text),
    );
    rest.forEach((piece, index) => {
      const id = this.takeNextId();
      const position = from + (gap * (index + 1)) / (rest.length + 1);
      statements.push(
        ...this.#insert(conversationId, { id, version: 1, segment, position }, piece.mids.length, piece.text),
        {
          sql: "UPDATE message SET block_id = ? WHERE conversation_id = ? AND mid IN (SELECT value FROM json_each(?))",
          params: [id, conversationId, JSON.stringify(piece.mids)],
        },
      );
    });
    return statements;
  }

  /** Writes the next version of a block. The old version is deleted unless a revision uses it. */
  #rewrite(conversationId: string, row: BlockRow, messageCount: number, text: string): Statement[] {
    const { id, version, segment, position } = row;
    const next = { id, version: version + 1, segment, position };
    return [...retireBlock(row), ...this.#insert(conversationId, next, messageCount, text)];
  }

  /** Adds a block and records its references to attachments. All written texts pass through here or `insertPieces`. */
  #insert(
    conversationId: string,
    location: Omit<BlockRow, "sealed" | "message_count">,
    messageCount: number,
    text: string,
  ): Statement[] {
    const sealed = this.#sealer.sealNow(createBlockAad(conversationId, location), text);
    this.cache.set({ ...location, sealed }, text);
    return [
      insertBlock(conversationId, { ...location, message_count: messageCount, sealed }),
      ...addReferences("conversation", conversationId, text),
    ];
  }

  /**
   * Encrypts new blocks off the serving thread, a few at a time. A single one is encrypted on this thread, which is
   * faster.
   */
  protected async insertPieces(
    conversationId: string,
    added: NewBlock[],
  ): Promise<{ statements: Statement[]; owners: (readonly [mid: string, blockId: number])[] }> {
    const owners: (readonly [string, number])[] = [];
    const statements: Statement[] = [];
    let chars = 0;
    for (let at = 0; at < added.length; at += SEALED_AT_ONCE) {
      await yieldIfTickUsedUp();
      const written = added.slice(at, at + SEALED_AT_ONCE).map(async ({ piece, segment, position, over }) => {
        const id = over?.id ?? this.#nextId++;
        const version = (over?.version ?? 0) + 1;
        owners.push(...piece.mids.map((mid) => [mid, id] as const));
        const aad = createBlockAad(conversationId, { id, version });
        const { text } = piece;
        chars += text.length;
        const sealed = added.length === 1 && text.length <= SPLIT_BYTES
          ? this.#sealer.sealNow(aad, text)
          : await this.#sealer.seal(aad, text);
        if (added.length <= MAX_CACHED_PIECES) this.cache.set({ id, version, sealed }, text);
        else piece.free();
        return [
          insertBlock(conversationId, { id, version, segment, position, message_count: piece.mids.length, sealed }),
          ...addReferences("conversation", conversationId, text),
        ];
      });
      statements.push(...(await Promise.all(written)).flat());
      // Otherwise a long conversation would be in memory twice.
      if (chars < this.#collectedChars) continue;
      await collectGarbage();
      chars = 0;
    }
    return { statements, owners };
  }

  /** Returns the text of a block; `undefined` if it can't be read. */
  #findReadableText(conversationId: string, row: BlockRow): string | undefined {
    try {
      return this.openText(conversationId, row);
    } catch {
      return undefined;
    }
  }
}

/** Packs messages into one piece unless they're too large for a block. */
function packUnlessSmall(messages: Message[], texts: string[]): Piece[] {
  if (messages.length === 0) return [];
  const chars = texts.reduce((sum, { length }) => sum + length + 1, -1);
  if (messages.length > 1 && chars > SPLIT_BYTES) return pack(messages, texts);
  return [getPiece(texts, messages.map(({ id }) => id))];
}
