/** The other texts of a message. The active one is the message itself; rows hold what was active before. */
import { refer } from "../attachments/attachment_rows.ts";
import { AppError } from "../errors.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import type { Database, Statement } from "../storage/database.ts";
import type { Message, MessageContent } from "./message.ts";
import { variantPlace } from "./sealed_places.ts";

/** One text of a message, as `GET …/variants` shows it. */
export interface Variant {
  n: number;
  content: MessageContent;
  reasoning?: string;
  model?: string;
  created_at: string;
}

/** Fields of a message that belong to the text and not to its place in the conversation. */
const TEXT_FIELDS = ["content", "reasoning", "model", "status", "error", "usage", "updated_at"] as const;
export type VariantRecord = Partial<Pick<Message, (typeof TEXT_FIELDS)[number]>>;

/** A stored text that is not the active one, out of its row. */
export interface VariantText {
  mid: string;
  n: number;
  record: VariantRecord;
}

/** A stored text as it lies in the database. */
export interface VariantRow {
  mid: string;
  n: number;
  version: number;
  sealed: Uint8Array;
}

/** A message with all its texts beside it, where it has several. */
export type MessageWithVariants = Message & { variants?: Variant[] };

/** Rows opened at once, off the serving thread. */
const OPENED_AT_ONCE = 16;

const decoder = new TextDecoder();
const encoder = new TextEncoder();
const LINE_END = encoder.encode("}\n");

/** Reads and writes variant rows. */
export class VariantStore {
  #db: Database;
  #sealer: PurposeSealer;

  constructor(db: Database, sealer: PurposeSealer) {
    this.#db = db;
    this.#sealer = sealer;
  }

  /** Statements that keep the active text of a message as its variant row. */
  keep(conversationId: string, message: Message): Statement[] {
    const record = Object.fromEntries(
      TEXT_FIELDS.filter((field) => field in message).map((field) => [field, message[field]]),
    );
    const text = { mid: message.id, n: message.active_variant, record };
    return this.#save(conversationId, text, this.#versions([text.mid]).get(keyOf(text)));
  }

  /**
   * Gives the message with another of its texts.
   *
   * @throws {AppError} `invalid_request` when there is no such text.
   */
  switched(message: Message, n: number): Message {
    const record = this.#record(message.id, n);
    if (record === undefined) throw new AppError("invalid_request", `Message "${message.id}" has no variant ${n}`);
    const { reasoning: _, error: __, usage: ___, model: ____, ...rest } = message;
    return { ...rest, ...record, active_variant: n } as Message;
  }

  /** Gives all texts of a message in order. */
  list(message: Message): Variant[] {
    return variantsOf(message, (n) => this.#record(message.id, n));
  }

  /** Gives the rows of some messages. */
  rowsOf(mids: string[]): VariantRow[] {
    return this.#db.all(
      "SELECT mid, n, version, sealed FROM variant WHERE mid IN (SELECT value FROM json_each(?)) ORDER BY mid, n",
      JSON.stringify(mids),
    );
  }

  /** Gives all rows of a conversation. */
  rowsIn(conversationId: string): VariantRow[] {
    return this.#db.all("SELECT mid, n, version, sealed FROM variant WHERE conversation_id = ?", conversationId);
  }

  /** Opens rows off the serving thread, a few at a time. */
  async openMany(rows: VariantRow[]): Promise<VariantText[]> {
    const texts: VariantText[] = [];
    for (let at = 0; at < rows.length; at += OPENED_AT_ONCE) {
      texts.push(
        ...await Promise.all(
          rows.slice(at, at + OPENED_AT_ONCE).map(async ({ mid, n, version, sealed }) => {
            const text = decoder.decode(await this.#sealer.open(variantPlace(mid, n, version), sealed));
            return { mid, n, record: JSON.parse(text) as VariantRecord };
          }),
        ),
      );
    }
    return texts;
  }

  /**
   * Gives messages with their texts beside them.
   *
   * @param rows Read together with the messages, so that both are of one state.
   */
  async besideThem(messages: Message[], rows: VariantRow[]): Promise<MessageWithVariants[]> {
    const wanted = new Set(messages.filter(({ variant_count: count }) => count > 1).map(({ id }) => id));
    const texts = Map.groupBy(await this.openMany(rows.filter(({ mid }) => wanted.has(mid))), ({ mid }) => mid);
    return messages.map((message) => {
      if (!wanted.has(message.id)) return message;
      const others = new Map(texts.get(message.id)?.map(({ n, record }) => [n, record]));
      return { ...message, variants: variantsOf(message, (n) => others.get(n)) };
    });
  }

  /** Statement that removes the rows of a message from a number on. */
  removeFrom(mid: string, n: number): Statement {
    return { sql: "DELETE FROM variant WHERE mid = ? AND n >= ?", params: [mid, n] };
  }

  #save(conversationId: string, { mid, n, record }: VariantText, before: number | undefined): Statement[] {
    const version = 1 + (before ?? 0);
    const text = JSON.stringify(record);
    const sealed = this.#sealer.sealNow(variantPlace(mid, n, version), text);
    return [...refer("conversation", conversationId, text), {
      sql:
        "INSERT INTO variant (conversation_id, mid, n, version, sealed) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (mid, n) DO UPDATE SET conversation_id = ?1, version = ?4, sealed = ?5",
      params: [conversationId, mid, n, version, sealed],
    }];
  }

  /** Gives all rows of messages, to keep them beside messages that are removed. */
  textsOf(mids: string[]): VariantText[] {
    return this.#db.all<{ mid: string; n: number }>(
      "SELECT mid, n FROM variant WHERE mid IN (SELECT value FROM json_each(?)) ORDER BY mid, n",
      JSON.stringify(mids),
    ).flatMap(({ mid, n }) => {
      const record = this.#record(mid, n);
      return record === undefined ? [] : [{ mid, n, record }];
    });
  }

  /**
   * Gives what stands in the rows of a conversation as JSON Lines of `{message_id, n, text}`, opened and joined and never
   * parsed. The row of a text that is the active one again may be older than the message.
   */
  async lines(conversationId: string): Promise<Uint8Array[]> {
    const rows = this.#db.all<{ mid: string; n: number; version: number; sealed: Uint8Array }>(
      "SELECT mid, n, version, sealed FROM variant WHERE conversation_id = ? ORDER BY mid, n",
      conversationId,
    );
    const opened = await Promise.all(
      rows.map(({ mid, n, version, sealed }) => this.#sealer.open(variantPlace(mid, n, version), sealed)),
    );
    return opened.flatMap((text, index) => {
      const { mid, n } = rows[index]!;
      return [encoder.encode(`{"message_id":${JSON.stringify(mid)},"n":${n},"text":`), text, LINE_END];
    });
  }

  /** Statements that bring rows back. */
  restore(conversationId: string, texts: VariantText[]): Statement[] {
    const versions = this.#versions([...new Set(texts.map(({ mid }) => mid))]);
    return texts.flatMap((text) => this.#save(conversationId, text, versions.get(keyOf(text))));
  }

  /** Gives the versions of all rows of messages, by `keyOf`. */
  #versions(mids: string[]): Map<string, number> {
    const rows = this.#db.all<{ mid: string; n: number; version: number }>(
      "SELECT mid, n, version FROM variant WHERE mid IN (SELECT value FROM json_each(?))",
      JSON.stringify(mids),
    );
    return new Map(rows.map((row) => [keyOf(row), row.version]));
  }

  #record(mid: string, n: number): VariantRecord | undefined {
    const row = this.#db.get<{ version: number; sealed: Uint8Array }>(
      "SELECT version, sealed FROM variant WHERE mid = ? AND n = ?",
      mid,
      n,
    );
    return row && JSON.parse(decoder.decode(this.#sealer.openNow(variantPlace(mid, n, row.version), row.sealed)));
  }
}

function keyOf({ mid, n }: { mid: string; n: number }): string {
  return `${mid}/${n}`;
}

function variantsOf(message: Message, recordOf: (n: number) => VariantRecord | undefined): Variant[] {
  const variants: Variant[] = [];
  for (let n = 0; n < message.variant_count; n++) {
    const record: VariantRecord | undefined = n === message.active_variant ? message : recordOf(n);
    if (record === undefined) continue;
    const { content = "", reasoning, model } = record;
    variants.push({ n, content, reasoning, model, created_at: record.updated_at ?? message.created_at });
  }
  return variants;
}
