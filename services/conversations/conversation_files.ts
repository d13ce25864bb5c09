/** Which documents and images conversations contain. */
import { AttachmentRows, findAttachmentNames } from "../attachments/attachment_rows.ts";
import { yieldIfTickUsedUp } from "../async/delay.ts";
import { Mutex } from "../async/locks.ts";
import { parseDocumentUses } from "../documents/document.ts";
import type { Database } from "../storage/database/database.ts";
import type { BlockRow } from "./blocks/block_rows.ts";
import type { BlockStore } from "./blocks/block_store.ts";
import type { ConversationHead } from "./conversation.ts";
import type { ConversationStore } from "./conversation_store.ts";
import type { Message } from "./message.ts";
import { parseBlock } from "./stored_form.ts";

/** Dependencies of `ConversationFiles`. */
export interface ConversationFilesDeps {
  db: Database;
  store: ConversationStore;
  blocks: BlockStore;
}

/** The files of a conversation, each with the last message that has it. */
export interface FilesOfConversation {
  documents: {
    id: string;
    /** `undefined` if it is sent with every message. */
    messageId?: string;
  }[];
  images: { name: string; widthPx: number; heightPx: number; createdAtMs: number; messageId: string }[];
}

/** Number of blocks decrypted at the same time, off the serving thread. */
const OPENED_AT_ONCE = 16;

const decoder = new TextDecoder();

/** Finds the documents and images of conversations. Unreadable parts are left out. */
export class ConversationFiles {
  readonly #deps: ConversationFilesDeps;
  /** Documents by conversation. A conversation is decrypted again only after its revision changed. */
  readonly #known = new Map<string, { revision: number; documentIds: string[] }>();
  readonly #scanLock = new Mutex();

  constructor(deps: ConversationFilesDeps) {
    this.#deps = deps;
  }

  /**
   * Lists the conversations that use each document, the most recently changed first. Other versions of messages count,
   * too.
   */
  async listDocumentUses(): Promise<Map<string, string[]>> {
    const { db, store } = this.#deps;
    const uses = new Map<string, string[]>();
    if (db.get("SELECT 1 FROM document_file WHERE deleted_at IS NULL LIMIT 1") === undefined) return uses;
    // One scan at a time, because each reuses what the previous one decrypted.
    await this.#scanLock.run(() => this.#scan());
    for (const { id } of store.listRevisions()) {
      for (const documentId of this.#known.get(id)?.documentIds ?? []) {
        uses.set(documentId, [...uses.get(documentId) ?? [], id]);
      }
    }
    return uses;
  }

  /**
   * Lists the documents and images of a conversation's active path, the last ones first.
   *
   * @throws {AppError} `not_found`
   */
  async list(id: string): Promise<FilesOfConversation> {
    const { db, store, blocks } = this.#deps;
    const documents = new Map<string, string | undefined>();
    const images = new Map<string, string>();
    const { head } = store.getReadable(id).state;
    for await (const message of this.#readMessages(id, blocks.listRows(id), hasFiles)) {
      for (const { id } of parseDocumentUses(message.documents)) putLast(documents, id, message.id);
      const { content, attachments } = message;
      for (const name of findAttachmentNames(JSON.stringify({ content, attachments }))) {
        putLast(images, name, message.id);
      }
    }
    for (const id of listHeadDocuments(head)) putLast(documents, id, undefined);
    const rows = new AttachmentRows(db);
    return {
      documents: [...documents].reverse().map(([id, messageId]) => ({ id, messageId })),
      images: [...images].reverse().flatMap(([name, messageId]) => {
        const row = rows.find(name);
        // Recordings have no size.
        if (row === undefined || row.width === null || row.height === null) return [];
        return [{ name, widthPx: row.width, heightPx: row.height, createdAtMs: row.created_at, messageId }];
      }),
    };
  }

  /** Reads the conversations that changed since the last scan. */
  async #scan(): Promise<void> {
    const { db, store } = this.#deps;
    const present = store.listRevisions();
    const ids = new Set(present.map(({ id }) => id));
    for (const id of this.#known.keys()) if (!ids.has(id)) this.#known.delete(id);
    for (const { id, revision } of present) {
      if (this.#known.get(id)?.revision === revision) continue;
      const rows = db.all<BlockRow>(
        `SELECT id, version, segment, position, message_count, sealed FROM block
         WHERE conversation_id = ? AND live = 1`,
        id,
      );
      const [headRow] = store.listHeads([id]);
      const head = headRow && await store.openHead(headRow).catch(() => undefined);
      const documentIds = new Set(head === undefined ? [] : listHeadDocuments(head));
      for await (const { documents } of this.#readMessages(id, rows, hasDocuments)) {
        for (const { id } of parseDocumentUses(documents)) documentIds.add(id);
      }
      this.#known.set(id, { revision, documentIds: [...documentIds] });
    }
  }

  /** Yields the messages of the blocks whose JSON passes a test. */
  async *#readMessages(
    conversationId: string,
    rows: readonly BlockRow[],
    isWanted: (json: string) => boolean,
  ): AsyncGenerator<Message> {
    for (let at = 0; at < rows.length; at += OPENED_AT_ONCE) {
      const opening = rows.slice(at, at + OPENED_AT_ONCE).map((row) =>
        this.#deps.blocks.open(conversationId, row).catch(() => undefined)
      );
      for (const opened of await Promise.all(opening)) {
        const json = opened === undefined ? "" : decoder.decode(opened);
        if (isWanted(json)) yield* parseBlock(json);
        await yieldIfTickUsedUp();
      }
    }
  }
}

/** Sets a value and moves it to the end. */
function putLast<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key);
  map.set(key, value);
}

function listHeadDocuments(head: ConversationHead): string[] {
  return parseDocumentUses(head.documents).map(({ id }) => id);
}

function hasDocuments(json: string): boolean {
  return json.includes('"documents":[');
}

function hasFiles(json: string): boolean {
  return hasDocuments(json) || json.includes("/api/attachments/") || json.includes('"attachments":[');
}
