/** Everything the page knows, opened once and handed to the views. */
import { signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { type ApiError, asApiError } from "../api/client.ts";
import type { Api } from "../api/endpoints.ts";
import type { AuthStatus, ChangeEvent } from "../api/types.ts";
import { ChangeFeed } from "./change_feed.ts";
import { Chats } from "./chats.ts";
import { Connections } from "./connections.ts";
import { Device, findStorage } from "./device.ts";
import { newId } from "./ids.ts";
import { OpenChat } from "./open_chat.ts";
import { Router } from "./router.ts";
import { Toasts } from "./toasts.ts";

/** The page's state and what changes it. */
export class Store {
  readonly device: Device;
  readonly router: Router;
  readonly chats: Chats;
  readonly connections: Connections;
  readonly feed: ChangeFeed;
  readonly toasts = new Toasts();
  readonly chat = signal<OpenChat | undefined>(undefined);
  readonly auth = signal<AuthStatus | undefined>(undefined);
  readonly isSetupCompleted = signal(true);
  /** Set when the server refuses this page altogether. */
  readonly refusal = signal<ApiError | undefined>(undefined);
  /** The sidebar as a drawer, on narrow screens. */
  readonly isDrawerOpen = signal(false);
  #api: Api;
  #storage: Storage | undefined;

  constructor(api: Api, window: Window) {
    this.#api = api;
    this.#storage = findStorage(window);
    this.device = new Device(this.#storage);
    this.router = new Router(window);
    this.chats = new Chats(api);
    this.connections = new Connections(api);
    this.feed = new ChangeFeed(api, (event) => this.#onChange(event), (wasLive) => this.#catchUp(wasLive));
  }

  /** Reads what is shown first, then listens for changes. Gives what ends that. */
  open(): () => void {
    this.#readAll();
    return this.feed.open();
  }

  /** Shows a conversation; the one before is left. */
  showChat(id: string): OpenChat {
    const current = this.chat.peek();
    if (current?.id === id) return current;
    current?.close();
    const chat = new OpenChat(id, false, this.#surroundings());
    this.chat.value = chat;
    void chat.open();
    return chat;
  }

  /** Shows an empty chat that exists nowhere else yet. */
  showNewChat(): OpenChat {
    const current = this.chat.peek();
    if (current?.isNew && !current.isRunning.peek()) return current;
    current?.close();
    const chat = new OpenChat(newId(), true, this.#surroundings());
    this.chat.value = chat;
    return chat;
  }

  /** Hides a conversation at once and deletes it when the offer to undo has passed. */
  deleteChat(id: string, texts: { done: string; undo: string }): void {
    this.chats.hide(id, true);
    const screen = this.router.screen.value;
    if (screen.name === "chat" && screen.conversationId === id) this.router.go("/new");
    this.toasts.offerUndo(texts.done, texts.undo, () => this.chats.hide(id, false), (isLeaving) => {
      this.chats.remove(id, isLeaving).catch((thrown) => this.report(thrown));
    });
  }

  /** Hides a message at once and deletes it when the offer to undo has passed. */
  deleteMessage(chat: OpenChat, messageId: string, texts: { done: string; undo: string }): void {
    chat.hideMessage(messageId, true);
    this.toasts.offerUndo(texts.done, texts.undo, () => chat.hideMessage(messageId, false), (isLeaving) => {
      void chat.removeMessage(messageId, isLeaving);
    });
  }

  /** Hides a connection at once and deletes it when the offer to undo has passed. */
  deleteConnection(id: string, texts: { done: string; undo: string }): void {
    this.connections.hide(id, true);
    this.toasts.offerUndo(texts.done, texts.undo, () => this.connections.hide(id, false), (isLeaving) => {
      this.connections.remove(id, isLeaving).catch((thrown) => this.report(thrown));
    });
  }

  /** Ends the first-run hint for good. */
  async completeSetup(): Promise<void> {
    this.isSetupCompleted.value = true;
    try {
      await this.#api.completeSetup();
    } catch (thrown) {
      this.report(thrown);
    }
  }

  /** Shows a failure that has no better place. */
  report(thrown: unknown): void {
    this.toasts.show(asApiError(thrown).message, { isError: true });
  }

  /** Saves what only this page has: it is going away. */
  flush(): void {
    this.chat.value?.close({ isLeavingPage: true });
    this.toasts.flush();
  }

  /** Reads everything shown; tells a page that may not be here. */
  #readAll(): void {
    void this.#readAuth();
    void this.chats.refresh().then(() => {
      const error = this.chats.error.value;
      this.refusal.value = error?.status === 401 || error?.status === 403 ? error : undefined;
    });
    void this.#readReplies();
    void this.connections.refresh();
    void this.#readSetup();
    const chat = this.chat.peek();
    if (chat && !chat.isRunning.value) void chat.reload();
  }

  /** Reads what may have changed while nobody listened; after an outage that is everything. */
  #catchUp(wasLive: boolean): void {
    if (!wasLive) return this.#readAll();
    void this.#readReplies();
    void this.chats.refresh().then(() => {
      const chat = this.chat.peek();
      const listed = this.chats.items.peek().find((item) => item.id === chat?.id);
      if (listed) chat?.onChanged(listed.revision);
      if (listed) void chat?.onDraftChanged(listed.draft_version);
    });
  }

  #onChange(event: ChangeEvent): void {
    const chat = this.chat.peek();
    const isOpen = chat?.id === event.id;
    if (event.kind === "conversation") {
      this.chats.refreshSoon();
      if (isOpen) chat.onChanged(event.revision);
    } else if (event.kind === "draft" && isOpen) void chat.onDraftChanged(event.revision);
    else if (event.kind === "reply_started" || event.kind === "reply_ended") void this.#readReplies();
    else if (event.kind === "connection") void this.connections.refresh();
    else if (event.kind === "setup") void this.#readSetup();
  }

  async #readReplies(): Promise<void> {
    const replies = await this.chats.refreshReplies();
    this.chat.peek()?.onReplies(replies);
  }

  async #readAuth(): Promise<void> {
    try {
      this.auth.value = await this.#api.getAuthStatus();
    } catch {
      // Only its hint is used; without it there is nothing to warn about.
    }
  }

  async #readSetup(): Promise<void> {
    try {
      this.isSetupCompleted.value = (await this.#api.getSetupStatus()).completed;
    } catch {
      // Unknown counts as completed: a hint too few beats one too many.
    }
  }

  #surroundings() {
    return {
      api: this.#api,
      storage: this.#storage,
      onFirstSend: (id: string) => this.router.go(`/c/${id}`, { replace: true }),
      onFirstRefused: () => this.router.go("/new", { replace: true }),
    };
  }
}

const StoreContext = createContext<Store | undefined>(undefined);

/** Hands the store to everything inside. */
export const StoreProvider = StoreContext.Provider;

/** Gives the page's store. */
export function useStore(): Store {
  const store = useContext(StoreContext);
  if (!store) throw new Error("Cannot find the store: the view stands outside of StoreProvider");
  return store;
}
