/** Stores changes of messages: on the server, or for a temporary chat only in this page. */
import type { Message } from "../../api/types.ts";
import type { ConversationApi } from "../../api/conversations.ts";
import type { MessagePages } from "./message_pages.ts";

/** Changes messages. Every call throws `ApiError` on failure. */
export interface MessageStore {
  /** @param revision Revision that the conversation must have; otherwise refused with 412. */
  change(messageId: string, changes: Partial<Message>, revision?: number): Promise<void>;
  /** Deletes a message, or it and all after it. Returns a function that restores them. */
  remove(messageId: string, isFollowing: boolean): Promise<() => Promise<void>>;
  /** Switches to another version; a user message's version brings its own continuation. */
  switchVersion(messageId: string, version: number): Promise<void>;
  /** Shows a new version of the user's message without what followed the previous one. */
  showNewVersion(messageId: string, content: Message["content"]): void;
}

/** Messages of a stored conversation. The server's events notify every page of changes. */
export class ServerMessages implements MessageStore {
  #api: ConversationApi;
  #conversationId: string;
  #pages: MessagePages;

  constructor(api: ConversationApi, conversationId: string, pages: MessagePages) {
    this.#api = api;
    this.#conversationId = conversationId;
    this.#pages = pages;
  }

  async change(messageId: string, changes: Partial<Message>, revision?: number): Promise<void> {
    const base = this.#pages.find(messageId)?.content;
    const message = await this.#api.changeMessage(this.#conversationId, messageId, changes, { revision, base });
    const cleared = Object.keys(this.#pages.find(messageId) ?? {}).filter((field) => !(field in message));
    this.#pages.edit(messageId, { ...Object.fromEntries(cleared.map((field) => [field, undefined])), ...message });
  }

  async switchVersion(messageId: string, version: number): Promise<void> {
    await this.change(messageId, { active_variant: version });
  }

  showNewVersion(messageId: string, content: Message["content"]): void {
    appendVersion(this.#pages, messageId, content);
  }

  async remove(messageId: string, isFollowing: boolean): Promise<() => Promise<void>> {
    const trashId = await this.#api.deleteMessage(this.#conversationId, messageId, isFollowing);
    takeOut(this.#pages, messageId, isFollowing);
    return async () => {
      if (trashId !== undefined) await this.#api.restoreFromTrash(trashId);
    };
  }
}

/** Messages of a chat that is stored nowhere. */
export class LocalMessages implements MessageStore {
  #pages: MessagePages;
  /** Versions of user messages with what followed each; the active one's are in the list itself. */
  #versions = new Map<string, { content: Message["content"]; following: Message[] }[]>();

  constructor(pages: MessagePages) {
    this.#pages = pages;
  }

  change(messageId: string, changes: Partial<Message>): Promise<void> {
    this.#pages.edit(messageId, changes);
    return Promise.resolve();
  }

  switchVersion(messageId: string, version: number): Promise<void> {
    const stored = this.#versions.get(messageId)?.[version];
    if (!stored) return Promise.resolve();
    this.#storeActive(messageId);
    const { content, following } = stored;
    takeOut(this.#pages, messageId, true, 1);
    this.#pages.edit(messageId, { content, active_variant: version });
    this.#pages.append(...following);
    return Promise.resolve();
  }

  showNewVersion(messageId: string, content: Message["content"]): void {
    this.#storeActive(messageId);
    appendVersion(this.#pages, messageId, content);
    this.#storeActive(messageId);
  }

  #storeActive(messageId: string): void {
    const message = this.#pages.find(messageId)!;
    const versions = this.#versions.get(messageId) ?? [];
    const following = this.#pages.items.peek().slice(this.#pages.places.peek().get(messageId)! + 1);
    versions[message.active_variant ?? 0] = { content: message.content, following };
    this.#versions.set(messageId, versions);
  }

  remove(messageId: string, isFollowing: boolean): Promise<() => Promise<void>> {
    const before = this.#pages.items.peek();
    takeOut(this.#pages, messageId, isFollowing);
    return Promise.resolve(() => {
      const since = this.#pages.items.peek().filter((message) => !before.includes(message));
      this.#pages.items.value = [...before, ...since];
      return Promise.resolve();
    });
  }
}

/** @param skipped Number of messages to keep, starting with this one. */
function takeOut(pages: MessagePages, messageId: string, isFollowing: boolean, skipped = 0): void {
  const at = pages.places.peek().get(messageId);
  if (at !== undefined) pages.keep((_, index) => isFollowing ? index < at + skipped : index !== at);
}

function appendVersion(pages: MessagePages, messageId: string, content: Message["content"]): void {
  const count = pages.find(messageId)?.variant_count ?? 1;
  takeOut(pages, messageId, true, 1);
  pages.edit(messageId, { content, variant_count: count + 1, active_variant: count });
}
