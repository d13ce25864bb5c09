/** Which documents and images conversations contain. */
import { AttachmentRows, findAttachmentNames } from "../attachments/attachment_rows.ts";
import { yieldIfTickUsedUp } from "../async/delay.ts";
import { Mutex } from "../async/locks.ts";
import { parseDocumentUses } from "../documents/document.ts";
import type { Database } from "../storage/database/database.ts";
import { countWrites } from "../storage/database/manifest.ts";
import type { BlockRow } from "./blocks/block_rows.ts";
import type { BlockStore } from "./blocks/block_store.ts";
import type { ConversationHead } from "./conversation.ts";
import type { ConversationRevision, ConversationStore } from "./conversation_store.ts";
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

/** Number of blocks or small conversations decrypted at the same time, off the serving thread. */
const OPENED_AT_ONCE = 16;
/** Most messages of the conversations that are decrypted at the same time. A larger one is decrypted alone. */
const MESSAGES_AT_ONCE = 1_000;
/** Conversations whose revisions are compared in one step: less than a millisecond. */
const COMPARED_AT_ONCE = 200;

const decoder = new TextDecoder();

/** What a scan knows of a conversation. */
interface KnownConversation {
  revision: number;
  documentIds: readonly string[];
  /** Number of the last scan that found it. */
  scan: number;
}

/** Finds the documents and images of conversations. Unreadable parts are left out. */
export class ConversationFiles {
  readonly #deps: ConversationFilesDeps;
  /** A conversation is decrypted again only after its revision changed. */
  readonly #known = new Map<string, KnownConversation>();
  /** Conversations by document. */
  readonly #uses = new Map<string, Set<string>>();
  readonly #scanLock = new Mutex();
  #scanCount = 0;
  /** Writes that the database had had when the last scan began. */
  #scannedWrites = 0;

  constructor(deps: ConversationFilesDeps) {
    this.#deps = deps;
  }

  /** Reads which documents the conversations use that changed since the last call. The other methods know that then. */
  async readUses(): Promise<void> {
    // One scan at a time, because each reuses what the previous one decrypted.
    await this.#scanLock.run(() => this.#scan());
  }

  /** Returns whether a conversation uses a document. Other versions of messages count, too. */
  isUsedIn(conversationId: string, documentId: string): boolean {
    return this.#uses.get(documentId)?.has(conversationId) ?? false;
  }

  /** Lists the conversations that use a document, the most recently changed first. */
  async listUses(documentId: string): Promise<{ id: string; title: string }[]> {
    const { store } = this.#deps;
    const listed = [];
    for (const id of store.listNewestFirst([...this.#uses.get(documentId) ?? []])) {
      listed.push({ id, title: store.findSummary(id)?.title ?? "" });
      await yieldIfTickUsedUp();
    }
    return listed;
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
    if (db.get("SELECT 1 FROM document_file WHERE deleted_at IS NULL LIMIT 1") === undefined) return;
    // Nothing was written, as when the next page of a list is read.
    const writes = countWrites(db);
    if (writes !== 0 && writes === this.#scannedWrites) return;
    const scan = ++this.#scanCount;
    for (let after = "";;) {
      const rows = store.listRevisionsAfter(after, COMPARED_AT_ONCE);
      const changed = rows.filter(({ id, revision }) => {
        const known = this.#known.get(id);
        if (known === undefined) return true;
        known.scan = scan;
        return known.revision !== revision;
      });
      await this.#readAll(changed, scan);
      const last = rows.at(-1);
      if (last === undefined) break;
      after = last.id;
      await yieldIfTickUsedUp();
    }
    for (const [id, known] of this.#known) if (known.scan !== scan) this.#know(id, undefined);
    this.#scannedWrites = writes;
  }

  /** Reads the documents of conversations, several at a time if they're small. */
  async #readAll(changed: readonly ConversationRevision[], scan: number): Promise<void> {
    const { store } = this.#deps;
    for (let at = 0; at < changed.length;) {
      const group: ConversationRevision[] = [];
      let messages = 0;
      do {
        messages += changed[at]!.messageCount;
        group.push(changed[at++]!);
      } while (
        at < changed.length && group.length < OPENED_AT_ONCE && messages + changed[at]!.messageCount <= MESSAGES_AT_ONCE
      );
      const heads = new Map(store.listHeads(group.map(({ id }) => id)).map((row) => [row.id, row]));
      await Promise.all(group.map(async ({ id, revision }) => {
        const row = heads.get(id);
        const head = row && await store.openHead(row).catch(() => undefined);
        const documentIds = new Set(head === undefined ? [] : listHeadDocuments(head));
        for await (const { documents } of this.#readMessages(id, this.#listBlocks(id), hasDocuments)) {
          for (const { id } of parseDocumentUses(documents)) documentIds.add(id);
        }
        this.#know(id, { revision, documentIds: [...documentIds], scan });
      }));
    }
  }

  /** Replaces what is known of a conversation; `undefined` forgets it. */
  #know(id: string, known: KnownConversation | undefined): void {
    for (const documentId of this.#known.get(id)?.documentIds ?? []) {
      const users = this.#uses.get(documentId);
      users?.delete(id);
      if (users?.size === 0) this.#uses.delete(documentId);
    }
    if (known === undefined) return void this.#known.delete(id);
    this.#known.set(id, known);
    for (const documentId of known.documentIds) {
      this.#uses.set(documentId, (this.#uses.get(documentId) ?? new Set()).add(id));
    }
  }

  #listBlocks(conversationId: string): BlockRow[] {
    return this.#deps.db.all(
      `SELECT id, version, segment, position, message_count, sealed FROM block
       WHERE conversation_id = ? AND live = 1`,
      conversationId,
    );
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
