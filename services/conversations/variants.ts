/** The versions of messages. The active version is in the message itself; rows contain the others. */
import { addReferences } from "../attachments/attachment_rows.ts";
import { AppError } from "../errors.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import { completeMessage, type Message, type MessageContent, type MessageInput, REPLY_FIELDS } from "./message.ts";
import { createOldVariantAad, createVariantAad } from "./stored_form.ts";

/** A version of a message in the response of `GET …/variants`. */
export interface Variant {
  n: number;
  content: MessageContent;
  reasoning?: string;
  model?: string;
  connection_id?: string;
  created_at: string;
  /** Number of messages that follow this version. Only for user messages. */
  message_count?: number;
}

/** Fields that belong to the version of a message. */
const TEXT_FIELDS = [...["content", "model", "status", "updated_at"] as const, ...REPLY_FIELDS] as const;
export type VariantRecord = Partial<Pick<Message, (typeof TEXT_FIELDS)[number]>>;
/** Fields that the versions of a user message share. All others belong to the version with which they were sent. */
const SHARED_FIELDS = new Set([
  ...["id", "role", "created_at", "variant_count", "active_variant"],
  ...["character_id", "persona_id", "hidden", "last_attempt"],
]);

/** A stored, inactive version. */
export interface VariantText {
  mid: string;
  n: number;
  record: VariantRecord;
}

/** The row of a version. */
export interface VariantRow {
  conversation_id: string;
  mid: string;
  n: number;
  version: number;
  sealed: Uint8Array;
}

/** A message with all its versions, if there are several. */
export type MessageWithVariants = Message & { variants?: Variant[] };

/** Number of rows decrypted at the same time, off the serving thread. */
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

  /** Returns the statements that save the active version of a message as a row. */
  keep(conversationId: string, message: Message): Statement[] {
    const record = Object.fromEntries(
      listFields(message).filter((field) => field in message).map((field) => [field, message[field]]),
    );
    const text = { mid: message.id, n: message.active_variant, record };
    return this.#save(conversationId, text, this.#listVersions(conversationId, [text.mid]).get(createKey(text)));
  }

  /**
   * Returns the message with another active version.
   *
   * @throws {AppError} `invalid_request` if the version doesn't exist.
   */
  switchTo(conversationId: string, message: Message, n: number): Message {
    // Rows above the count are leftovers of a replaced state.
    const record = n < message.variant_count ? this.#record(conversationId, message.id, n) : undefined;
    if (record === undefined) throw new AppError("invalid_request", `Message "${message.id}" has no variant ${n}`);
    return { ...withoutText(message), ...record, active_variant: n } as Message;
  }

  /** Finds an inactive version of a message. */
  find(conversationId: string, mid: string, n: number): VariantRecord | undefined {
    return this.#record(conversationId, mid, n);
  }

  /** Returns all versions of a message in order. */
  list(conversationId: string, message: Message): Variant[] {
    return createVariants(message, (n) => this.#record(conversationId, message.id, n));
  }

  /** Returns the rows of some messages. */
  listRowsOf(conversationId: string, mids: string[]): VariantRow[] {
    return this.#db.all(
      `SELECT conversation_id, mid, n, version, sealed FROM variant
       WHERE conversation_id = ? AND mid IN (SELECT value FROM json_each(?)) ORDER BY mid, n`,
      conversationId,
      JSON.stringify(mids),
    );
  }

  /** Returns all rows of a conversation. */
  listRows(conversationId: string): VariantRow[] {
    return this.#db.all(
      "SELECT conversation_id, mid, n, version, sealed FROM variant WHERE conversation_id = ? ORDER BY mid, n",
      conversationId,
    );
  }

  /** Decrypts rows off the serving thread, a few at a time. */
  async openMany(rows: VariantRow[]): Promise<VariantText[]> {
    const texts: VariantText[] = [];
    for (let at = 0; at < rows.length; at += OPENED_AT_ONCE) {
      texts.push(
        ...await Promise.all(
          rows.slice(at, at + OPENED_AT_ONCE).map(async (row) => {
            const opened = await openVariant(this.#sealer, row);
            const text = decoder.decode(opened);
            (opened.buffer as ArrayBuffer).transfer(0); // Frees the memory now: hundreds of readers would leave a lot of garbage.
            return { mid: row.mid, n: row.n, record: JSON.parse(text) as VariantRecord };
          }),
        ),
      );
    }
    return texts;
  }

  /**
   * Returns messages with their versions.
   *
   * @param rows Read together with the messages, so that both are from the same state.
   */
  async attachTo(messages: Message[], rows: VariantRow[]): Promise<MessageWithVariants[]> {
    const withVariants = new Set(messages.filter(({ variant_count: count }) => count > 1).map(({ id }) => id));
    const texts = Map.groupBy(await this.openMany(rows.filter(({ mid }) => withVariants.has(mid))), ({ mid }) => mid);
    return messages.map((message) => {
      if (!withVariants.has(message.id)) return message;
      const others = new Map(texts.get(message.id)?.map(({ n, record }) => [n, record]));
      return { ...message, variants: createVariants(message, (n) => others.get(n)) };
    });
  }

  /** Returns the statement that deletes the rows of a message from a number on. */
  removeFrom(conversationId: string, mid: string, n: number): Statement {
    return {
      sql: "DELETE FROM variant WHERE conversation_id = ? AND mid = ? AND n >= ?",
      params: [conversationId, mid, n],
    };
  }

  #save(conversationId: string, { mid, n, record }: VariantText, before: number | undefined): Statement[] {
    const version = 1 + (before ?? 0);
    const text = JSON.stringify(record);
    const sealed = this.#sealer.sealNow(createVariantAad(conversationId, { mid, n, version }), text);
    return [...addReferences("conversation", conversationId, text), {
      sql: `INSERT INTO variant (conversation_id, mid, n, version, sealed) VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT (conversation_id, mid, n) DO UPDATE SET version = ?4, sealed = ?5`,
      params: [conversationId, mid, n, version, sealed],
    }];
  }

  /** Returns all versions of messages that are about to be deleted. */
  listTexts(conversationId: string, mids: string[]): VariantText[] {
    return this.listRowsOf(conversationId, mids).map((row) => ({ mid: row.mid, n: row.n, record: this.#open(row) }));
  }

  /**
   * Reads the rows of a conversation as JSON Lines of `{message_id, n, text}`, without parsing. If a version is active
   * again, its row may be older than the message.
   *
   * @param onUnreadable Called for each row that can't be decrypted.
   */
  async readLines(conversationId: string, onUnreadable: (row: VariantRow) => void): Promise<Uint8Array[]> {
    const rows = this.listRows(conversationId);
    const opened = await Promise.all(
      rows.map((row) => openVariant(this.#sealer, row).catch(() => void onUnreadable(row))),
    );
    return opened.flatMap((text, index) => {
      const { mid, n } = rows[index]!;
      if (text === undefined) return [];
      return [encoder.encode(`{"message_id":${JSON.stringify(mid)},"n":${n},"text":`), text, LINE_END];
    });
  }

  /** Returns the statements that restore rows. */
  restore(conversationId: string, texts: VariantText[]): Statement[] {
    const versions = this.#listVersions(conversationId, [...new Set(texts.map(({ mid }) => mid))]);
    return texts.flatMap((text) => this.#save(conversationId, text, versions.get(createKey(text))));
  }

  /** Returns the version numbers of all rows of messages, by `createKey`. */
  #listVersions(conversationId: string, mids: string[]): Map<string, number> {
    const rows = this.#db.all<{ mid: string; n: number; version: number }>(
      "SELECT mid, n, version FROM variant WHERE conversation_id = ? AND mid IN (SELECT value FROM json_each(?))",
      conversationId,
      JSON.stringify(mids),
    );
    return new Map(rows.map((row) => [createKey(row), row.version]));
  }

  #record(conversationId: string, mid: string, n: number): VariantRecord | undefined {
    const row = this.#db.get<VariantRow>(
      "SELECT conversation_id, mid, n, version, sealed FROM variant WHERE conversation_id = ? AND mid = ? AND n = ?",
      conversationId,
      mid,
      n,
    );
    return row && this.#open(row);
  }

  #open(row: VariantRow): VariantRecord {
    let text: Uint8Array;
    try {
      text = this.#sealer.openNow(createVariantAad(row.conversation_id, row), row.sealed);
    } catch {
      text = this.#sealer.openNow(createOldVariantAad(row), row.sealed);
    }
    return JSON.parse(decoder.decode(text));
  }
}

/** Decrypts a row off the serving thread. */
export async function openVariant(sealer: PurposeSealer, row: VariantRow): Promise<Uint8Array> {
  try {
    return await sealer.open(createVariantAad(row.conversation_id, row), row.sealed);
  } catch {
    return await sealer.open(createOldVariantAad(row), row.sealed);
  }
}

/** Returns a message without the fields of its version, except its status and time. */
export function withoutText(message: Message): Message {
  const rest = { ...message };
  for (const field of listFields(message)) {
    if (!["status", "updated_at"].includes(field)) delete rest[field];
  }
  if (message.role === "user") delete rest.last_attempt;
  return rest;
}

/** Returns the fields of a new version of a user message: all sent fields except those that versions share. */
export function toUserText(sent: MessageInput, mid: string, now: string): VariantRecord {
  const { id: _, role: __, created_at: ___, variant_count: ____, active_variant: _____, ...fields } = completeMessage(
    { ...sent, variants: undefined, mid: undefined },
    mid,
    now,
  );
  return fields;
}

function listFields(message: Message): readonly string[] {
  return message.role === "user" ? Object.keys(message).filter((field) => !SHARED_FIELDS.has(field)) : TEXT_FIELDS;
}

function createKey({ mid, n }: { mid: string; n: number }): string {
  return `${mid}/${n}`;
}

function createVariants(message: Message, recordOf: (n: number) => VariantRecord | undefined): Variant[] {
  const variants: Variant[] = [];
  const { variant_count: count = 1, active_variant: active = 0 } = message;
  for (let n = 0; n < count; n++) {
    const record: VariantRecord | undefined = n === active ? message : recordOf(n);
    if (record === undefined) continue;
    const { content = "", reasoning, model, connection_id } = record;
    variants.push({ n, content, reasoning, model, connection_id, created_at: record.updated_at ?? message.created_at });
  }
  return variants;
}
