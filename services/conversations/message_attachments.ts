/** Attachments of messages: adds generated images, and removes references that conversations no longer contain. */
import { createAttachmentUrl, findAttachmentNames } from "../attachments/attachment_rows.ts";
import type { Attachments } from "../attachments/attachments.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import type { Log } from "../log.ts";
import type { Database } from "../storage/database/database.ts";
import type { KeyedMutex } from "../async/locks.ts";
import type { EventHub } from "../events/event_hub.ts";
import { readField } from "../json/type_guards.ts";
import type { BlockRow } from "./blocks/block_rows.ts";
import type { BlockStore } from "./blocks/block_store.ts";
import type { Message } from "./message.ts";
import type { ConversationStore } from "./conversation_store.ts";
import { createRevisionAad } from "./stored_form.ts";
import { openVariant, type VariantRow } from "./variants.ts";
import type { ConversationWriter } from "./conversation_writer.ts";
import type { LiveReplies } from "./live_replies.ts";

/** Dependencies of `AttachmentReferences`. */
export interface AttachmentReferencesDeps {
  db: Database;
  sealer: PurposeSealer;
  store: ConversationStore;
  blocks: BlockStore;
  locks: KeyedMutex;
  attachments: Attachments;
  log: Log;
}

/** Number of values decrypted at the same time, off the serving thread. */
const OPENED_AT_ONCE = 16;

const decoder = new TextDecoder();

/** Removes stale references. */
export class AttachmentReferences {
  readonly #deps: AttachmentReferencesDeps;
  /** State of each conversation at the last sweep. Unchanged ones needn't be read again. */
  readonly #seen = new Map<string, string>();

  constructor(deps: AttachmentReferencesDeps) {
    this.#deps = deps;
  }

  /** Checks every conversation that refers to attachments. */
  async sweep(): Promise<void> {
    const { locks, attachments, log } = this.#deps;
    for (const id of attachments.listReferringConversations()) {
      // The references of an unreadable conversation stay.
      await locks.run(id, () => this.#check(id)).catch((error) =>
        log("warn", "Couldn't check the attachments of a conversation", { error: getErrorMessage(error) })
      );
    }
  }

  /** Removes stale references of a conversation. The caller holds the conversation's lock. */
  async #check(id: string): Promise<void> {
    const { db } = this.#deps;
    const mark = this.#findState(id);
    if (mark !== undefined && this.#seen.get(id) === mark) return;
    const found = mark === undefined ? [] : [...await this.#findNames(id)];
    await db.write([{
      sql: `DELETE FROM attachment_ref WHERE owner_kind = 'conversation' AND owner_id = ?
            AND name NOT IN (SELECT value FROM json_each(?))`,
      params: [id, JSON.stringify(found)],
    }]);
    if (mark === undefined || found.length === 0) this.#seen.delete(id);
    else this.#seen.set(id, mark);
  }

  /** Returns a string that changes with everything that may contain references; `undefined` for a purged conversation. */
  #findState(id: string): string | undefined {
    const row = this.#deps.db.get<
      { revision: number; draft: number | null; queue: number | null; oldest: number | null }
    >(
      `SELECT revision, (SELECT version FROM draft WHERE conversation_id = c.id) AS draft,
        (SELECT version FROM message_queue WHERE conversation_id = c.id) AS queue,
        (SELECT min(n) FROM revision WHERE conversation_id = c.id) AS oldest FROM conversation c WHERE id = ?`,
      id,
    );
    return row === undefined ? undefined : `${row.revision}/${row.draft}/${row.queue}/${row.oldest}`;
  }

  async #findNames(id: string): Promise<Set<string>> {
    const { store } = this.#deps;
    const state = store.find(id) ?? store.findRemoved(id);
    const draft = store.getDraft(id);
    // Its references are unknown, so none can be removed.
    if (draft.isUnreadable) {
      throw new AppError("internal", `Can't read the draft of conversation "${id}": it's damaged`);
    }
    const names = new Set([
      ...findAttachmentNames(JSON.stringify(state?.head ?? {})),
      ...findAttachmentNames(draft.text),
      ...findAttachmentNames(JSON.stringify(store.getQueue(id).items)),
    ]);
    for await (const text of this.#openTexts(id)) {
      for (const name of findAttachmentNames(decoder.decode(text))) names.add(name);
    }
    return names;
  }

  /** Decrypts all parts of a conversation that can contain references, a few at a time. */
  async *#openTexts(id: string): AsyncGenerator<Uint8Array> {
    let opening: (() => Promise<Uint8Array>)[] = [];
    for (const open of this.#listSealedTexts(id)) {
      opening.push(open);
      if (opening.length < OPENED_AT_ONCE) continue;
      yield* await Promise.all(opening.map((open) => open()));
      opening = [];
    }
    yield* await Promise.all(opening.map((open) => open()));
  }

  *#listSealedTexts(id: string): Generator<() => Promise<Uint8Array>> {
    const { db, sealer, blocks } = this.#deps;
    for (const row of db.iterate<BlockRow>("SELECT id, version, sealed FROM block WHERE conversation_id = ?", id)) {
      yield () => blocks.open(id, row);
    }
    const variants = "SELECT conversation_id, mid, n, version, sealed FROM variant WHERE conversation_id = ?";
    for (const row of db.iterate<VariantRow>(variants, id)) yield () => openVariant(sealer, row);
    const revisions = "SELECT n, sealed FROM revision WHERE conversation_id = ?";
    for (const { n, sealed } of db.iterate<{ n: number; sealed: Uint8Array }>(revisions, id)) {
      yield () => sealer.open(createRevisionAad(id, n), sealed);
    }
  }
}

// Adds generated images to messages. Their names are in the field `attachments`, which isn't sent to models.

/** Dependencies of `MessageAttachments`. */
export interface MessageAttachmentsDeps {
  store: ConversationStore;
  blocks: BlockStore;
  live: LiveReplies;
  events: EventHub;
  conversationWriter: ConversationWriter;
}

/** Attaches images to messages. */
export class MessageAttachments {
  readonly #deps: MessageAttachmentsDeps;

  constructor(deps: MessageAttachmentsDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the id of a message, by default of the last one.
   *
   * @throws {AppError} `not_found`; `unprocessable` if the conversation has no message
   */
  find(conversationId: string, messageId: string | undefined): string {
    const { store, blocks } = this.#deps;
    store.get(conversationId);
    if (messageId !== undefined) {
      if (blocks.findRow(conversationId, messageId) !== undefined) return messageId;
      throw new AppError("not_found", `Message "${messageId}" not found in conversation "${conversationId}"`);
    }
    const block = blocks.findPrevious(conversationId);
    const last = block === undefined ? undefined : blocks.openMessages(conversationId, block).at(-1);
    if (last !== undefined) return last.id;
    throw new AppError("unprocessable", "Can't attach an image: the conversation has no messages");
  }

  /** Reports whether a conversation, and a message in it, exist and aren't in the trash. */
  has(conversationId: string, messageId?: string): boolean {
    const { store, blocks } = this.#deps;
    if (store.find(conversationId) === undefined) return false;
    return messageId === undefined || blocks.findRow(conversationId, messageId) !== undefined;
  }

  /** Removes an image from a message. @throws {AppError} `not_found`; `conflict` while a reply writes the message */
  async detach(conversationId: string, messageId: string, name: string): Promise<void> {
    const url = createAttachmentUrl(name);
    await this.#deps.conversationWriter.editMessage(conversationId, messageId, ({ attachments, content, ...rest }) => {
      const others = Array.isArray(attachments) ? attachments.filter((other) => other !== name) : [];
      const parts = Array.isArray(content)
        ? content.filter((part) => readField(part.image_url, "url") !== url)
        : content;
      const left = Array.isArray(parts) && parts.length === 0 ? "" : parts;
      return { ...rest as Message, content: left, ...(others.length > 0 && { attachments: others }) };
    });
  }

  /**
   * Attaches images. Waits while a reply writes the message.
   *
   * @throws {AppError} `not_found`
   * @throws The reason of `signal`.
   */
  async attach(conversationId: string, messageId: string, names: string[], signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      const ended = this.#waitForReply(conversationId, signal);
      try {
        await this.#deps.conversationWriter.editMessage(conversationId, messageId, (before) => {
          const attachments = Array.isArray(before.attachments) ? before.attachments : [];
          return { ...before, attachments: [...attachments.filter((name) => !names.includes(name)), ...names] };
        });
        return;
      } catch (error) {
        const isBusy = error instanceof AppError && error.code === "conflict" &&
          this.#deps.live.findByMessage(conversationId, messageId) !== undefined;
        if (!isBusy) throw error;
        await ended.promise;
      } finally {
        ended.stop();
      }
    }
  }

  /** Waits for the end of a reply. Called before the attempt, so that an end during it isn't missed. */
  #waitForReply(conversationId: string, signal: AbortSignal): { promise: Promise<void>; stop(): void } {
    const { promise, resolve } = Promise.withResolvers<void>();
    const unsubscribe = this.#deps.events.subscribe(({ kind, id }) => {
      if (kind === "reply_ended" && id === conversationId) resolve();
    });
    const onAbort = () => resolve();
    signal.addEventListener("abort", onAbort, { once: true });
    return {
      promise,
      stop() {
        unsubscribe();
        signal.removeEventListener("abort", onAbort);
      },
    };
  }
}
