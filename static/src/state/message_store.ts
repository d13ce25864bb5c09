/** Where changes of messages go: to the server, or for a temporary chat nowhere but this page. */
import type { ConversationApi } from "../api/conversation_endpoints.ts";
import type { Message } from "../api/types.ts";
import type { MessagePages } from "./message_pages.ts";

/** Changes messages. Every call throws `ApiError` when it cannot. */
export interface MessageStore {
  /** @param revision Revision the conversation has to have; refused with 412 otherwise. */
  change(messageId: string, changes: Partial<Message>, revision?: number): Promise<void>;
  /** Removes a message, or it and all behind it. Gives what brings them back. */
  remove(messageId: string, isFollowing: boolean): Promise<() => Promise<void>>;
}

/** Messages of a stored conversation; that they changed is told to every page by the events of the server. */
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
    const message = await this.#api.changeMessage(this.#conversationId, messageId, changes, { revision });
    const cleared = Object.keys(this.#pages.find(messageId) ?? {}).filter((field) => !(field in message));
    this.#pages.edit(messageId, { ...Object.fromEntries(cleared.map((field) => [field, undefined])), ...message });
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

  constructor(pages: MessagePages) {
    this.#pages = pages;
  }

  change(messageId: string, changes: Partial<Message>): Promise<void> {
    this.#pages.edit(messageId, changes);
    return Promise.resolve();
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

function takeOut(pages: MessagePages, messageId: string, isFollowing: boolean): void {
  const at = pages.places.peek().get(messageId);
  if (at !== undefined) pages.keep((_, index) => isFollowing ? index < at : index !== at);
}
