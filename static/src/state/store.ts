/** The state of the page, opened once and passed to the views. */
import type { AuthStatus, ChangeEvent, ConversationPatch, SetupStatus } from "../api/types.ts";
import { computed, signal } from "@preact/signals";
import { type ComponentChildren, createContext } from "preact";
import { useContext } from "preact/hooks";
import { type ApiError, asApiError } from "../api/client.ts";
import type { AccessApi } from "../api/auth.ts";
import type { Api } from "../api/api.ts";
import { ChangeFeed } from "./app/change_feed.ts";
import { ChatPrefetch, Chats } from "./chat/chats.ts";
import { Activity } from "./app/activity.ts";
import { Connections } from "./connections/connections.ts";
import { Device, findStorage } from "./app/device.ts";
import { newId } from "./app/ids.ts";
import { LatestRead } from "./app/latest_read.ts";
import { notifyWhenHidden } from "./app/notifications.ts";
import type { Outbox } from "./app/outbox.ts";
import { getPerson } from "./app/outbox_store.ts";
import { OpenChat } from "./chat/open_chat.ts";
import { Profiles } from "./characters/profiles.ts";
import { FileUrls } from "./app/file_urls.ts";
import type { PageUpdate } from "./app/page_update.ts";
import { Preferences } from "./app/preferences.ts";
import { Router } from "./app/router.ts";
import { Retries } from "./app/retries.ts";
import { ReadAloud } from "./speech/read_aloud.ts";
import { ToastQueue } from "./app/toasts.ts";
import { Trash } from "./app/trash.ts";
import { texts } from "../texts/texts.ts";

/** The content of the right panel. */
export interface PanelContent {
  /** Opening the same id again closes it. */
  id: string;
  title: string;
  view: () => ComponentChildren;
}

/** Used if the server does not respond. */
const UNKNOWN_SETUP: SetupStatus = { completed: true, in_container: false, discover_hosts: [] };

/** The state of the page and the actions that change it. */
export class Store {
  readonly device: Device;
  readonly router: Router;
  readonly chats: Chats;
  readonly chatAhead: ChatPrefetch;
  readonly connections: Connections;
  readonly activity: Activity;
  readonly trash: Trash;
  readonly people: Profiles;
  readonly files: FileUrls;
  readonly preferences: Preferences;
  readonly feed: ChangeFeed;
  /** Reads that failed, to be repeated. */
  readonly failedReads = new Retries(() => this.#readAgain());
  readonly #handOvers = new Retries(() => void this.#handOverQueues());
  readonly speaking = new ReadAloud(this);
  readonly toasts = new ToastQueue();
  /** The chat that is printed as soon as it's shown. */
  readonly printing = signal<string | undefined>(undefined);
  readonly chat = signal<OpenChat | undefined>(undefined);
  /** Calls about authentication. */
  readonly access: AccessApi;
  readonly auth = signal<AuthStatus | undefined>(undefined);
  /** Increases when passkeys or tokens change, here or elsewhere. */
  readonly accessVersion = signal(0);
  /** Undefined until known. */
  readonly setup = signal<SetupStatus | undefined>(undefined);
  /** Counts as completed while unknown, so that no wrong hint is shown. */
  readonly isSetupCompleted = computed(() => this.setup.value?.completed ?? true);
  /** Set if the server refuses this page altogether. */
  readonly refusal = signal<ApiError | undefined>(undefined);
  /** Why not even the state of sign-in can be read: the page's address isn't allowed. No sign-in helps then. */
  readonly hostRefusal = signal<ApiError | undefined>(undefined);
  /** True while a proxy in front of the server wants a sign-in, so that nothing reaches the server. */
  readonly isProxySignedOut = signal(false);
  /** True if the sidebar is open as a drawer, on narrow screens. */
  readonly isDrawerOpen = signal(false);
  /** The overlay that is shown over every screen. */
  readonly overlay = signal<"palette" | "shortcuts" | undefined>(undefined);
  /** The right panel; another screen closes it. */
  readonly panel = signal<PanelContent | undefined>(undefined);
  /** For screens with their own state. */
  readonly api: Api;
  /** What this browser made and the server doesn't have yet. */
  readonly outbox: Outbox;
  readonly #document: Document;
  #update: Promise<PageUpdate> | undefined;
  #listeners = new Set<(event: ChangeEvent | undefined) => void>();
  #storage: Storage | undefined;
  readonly #notifiedCalls = new Set<string>();
  readonly #authReads = new LatestRead();
  readonly #setupReads = new LatestRead();

  constructor(api: Api, access: AccessApi, window: Window, outbox: Outbox) {
    this.api = api;
    this.outbox = outbox;
    outbox.isLeft = (entry) => this.chat.peek()?.sendAgain(entry) ?? false;
    this.access = access;
    this.#document = window.document;
    this.#storage = findStorage(window);
    this.device = new Device(this.#storage);
    this.router = new Router(window);
    this.chats = new Chats(api);
    this.chatAhead = new ChatPrefetch(api);
    this.connections = new Connections(api);
    this.activity = new Activity(api, this.chats);
    this.trash = new Trash(api);
    this.people = new Profiles(api);
    this.listen((event) => this.people.onChange(event));
    this.files = new FileUrls(api.client);
    this.preferences = new Preferences(api, this.device, window.navigator.languages);
    this.feed = new ChangeFeed(api, {
      onEvent: (event) => this.#onChange(event),
      onConnected: (wasLive) => {
        void this.outbox.send();
        void this.#handOverQueues();
        this.#catchUp(wasLive);
      },
      onBuild: (build) => void this.#onBuild(build, window),
      onRefused: () => this.#readAll(),
    });
  }

  /** Loads what is shown and listens for changes. Returns a function that stops. */
  open(): () => void {
    this.#readAll();
    const ends = [
      this.feed.open(),
      this.failedReads.open(),
      this.#handOvers.open(),
      this.outbox.open(),
      this.outbox.onSent((entry) => {
        this.chat.peek()?.onSent(entry);
        void this.#handOverQueues();
      }),
    ];
    return () => ends.forEach((end) => end());
  }

  /**
   * Calls the listener for every event; with `undefined` if some may have been missed. Returns a function that stops.
   */
  listen(listener: (event: ChangeEvent | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Opens the right panel, or closes it if it shows this content already. */
  openPanel(content: PanelContent): void {
    this.panel.value = this.panel.peek()?.id === content.id ? undefined : content;
  }

  /** Closes the right panel. */
  closePanel(): void {
    this.panel.value = undefined;
  }

  /** Opens a conversation and leaves the previous one. */
  showChat(id: string): OpenChat {
    const current = this.chat.peek();
    if (current?.id === id) return current;
    current?.close();
    const chat = new OpenChat(id, "stored", this.#surroundings());
    this.chat.value = chat;
    void chat.open(this.chatAhead.take(id));
    return chat;
  }

  /** Opens an empty chat that is not stored yet, or never is if temporary. */
  showNewChat(isTemporary = false): OpenChat {
    const current = this.chat.peek();
    const isFitting = current?.isNew && !current.replies.isRunning.peek() && current.isTemporary === isTemporary;
    if (current && isFitting && (isTemporary || current.isEmpty.peek())) return current;
    current?.close();
    const chat = new OpenChat(newId(), isTemporary ? "temporary" : "new", this.#surroundings());
    this.chat.value = chat;
    return chat;
  }

  /** Hides conversations at once and deletes them when the offer to undo ends. */
  deleteChats(ids: readonly string[], texts: { done: string; undo: string }): void {
    this.chats.hide(ids, true);
    const screen = this.router.screen.value;
    if (screen.name === "chat" && ids.includes(screen.conversationId)) this.router.go("/new");
    this.toasts.offerUndo(texts.done, texts.undo, () => this.chats.hide(ids, false), (isLeaving) => {
      for (const id of ids) this.chats.remove(id, isLeaving).catch((thrown) => this.report(thrown));
    });
  }

  /** Renames, pins or files a chat. A failure shows a toast; the list shows the real state. */
  changeChat(id: string, changes: ConversationPatch): void {
    this.chats.change(id, changes).catch((thrown) => this.report(thrown));
  }

  /** Deletes a message, or it and all after it, and offers Undo. */
  async deleteMessage(
    chat: OpenChat,
    messageId: string,
    isFollowing: boolean,
    texts: { done: string; undo: string },
  ): Promise<void> {
    this.offerUndo(texts, await chat.actions.remove(messageId, isFollowing));
  }

  /** Offers Undo, if there is something to restore. */
  offerUndo(texts: { done: string; undo: string }, restore: (() => Promise<void>) | undefined): void {
    if (restore) this.toasts.show(texts.done, { action: { label: texts.undo, run: () => void restore() } });
  }

  /** Hides a connection at once and deletes it when the offer to undo ends. */
  deleteConnection(id: string, texts: { done: string; undo: string }): void {
    this.connections.hide(id, true);
    this.toasts.offerUndo(texts.done, texts.undo, () => this.connections.hide(id, false), (isLeaving) => {
      this.connections.remove(id, isLeaving).catch((thrown) => this.report(thrown));
    });
  }

  /** Completes the first-run setup and ends its hints. */
  async completeSetup(): Promise<void> {
    this.setup.value = { ...this.setup.peek() ?? UNKNOWN_SETUP, completed: true };
    try {
      await this.api.completeSetup();
    } catch (thrown) {
      this.report(thrown);
    }
  }

  /** Loads the authentication status of this browser. */
  async refreshAuth(): Promise<void> {
    try {
      await this.#authReads.run(() => this.access.status(), (status) => this.auth.value = status);
      this.hostRefusal.value = undefined;
    } catch (thrown) {
      const error = asApiError(thrown);
      // Other failures are shown by other requests.
      this.hostRefusal.value = error.status === 403 ? error : undefined;
    }
  }

  /** Notes whether the proxy in front of the server let the latest request pass. */
  onProxy(isSignedOut: boolean): void {
    this.isProxySignedOut.value = isSignedOut;
    // A sign-in in another tab is noticed by the next request.
    if (isSignedOut) this.failedReads.add({ isTransient: true, retryAfterMs: undefined });
  }

  /** Shows a failure that has no better place. */
  report(thrown: unknown): void {
    this.toasts.show(asApiError(thrown).message, { isError: true });
  }

  /** Saves what only this page has, since it is closing. */
  flush(): void {
    this.chat.value?.close({ isLeavingPage: true });
    this.toasts.flush();
  }

  /** Reloads everything that is shown, and detects whether this page is refused. */
  #readAll(): void {
    void this.refreshAuth();
    void this.chats.refresh(true).then(() => {
      const error = this.chats.error.value;
      this.refusal.value = error?.status === 401 || error?.status === 403 ? error : undefined;
    });
    void this.#readReplies();
    void this.connections.refresh();
    void this.preferences.refresh();
    void this.activity.refresh();
    this.trash.refreshIfOpen();
    void this.#readSetup();
    const chat = this.chat.peek();
    if (chat?.replies.isRunning.value) void chat.onQueueChanged(undefined);
    else if (chat) void chat.reload();
  }

  /**
   * Reloads what may have changed while no stream of events was open, also between the first read and the first stream; after
   * an outage that is everything.
   */
  #catchUp(wasLive: boolean): void {
    for (const listener of this.#listeners) listener(undefined);
    if (!wasLive) return this.#readAll();
    void this.#readReplies();
    void this.connections.onChanged();
    void this.preferences.refresh();
    void this.activity.refresh();
    this.trash.refreshIfOpen();
    void this.#readSetup();
    void this.chats.refresh().then(() => {
      const chat = this.chat.peek();
      const listed = this.chats.items.peek().find((item) => item.id === chat?.id);
      if (listed) void chat?.onChanged(listed.revision);
      if (listed) void chat?.onDraftChanged(listed.draft_version);
      if (listed) void chat?.onQueueChanged(undefined);
    });
  }

  /** Reloads everything after a failed read. While the server can't be reached, the end of the outage does that. */
  #readAgain(): void {
    if (!this.feed.isLive.peek()) return;
    this.accessVersion.value++;
    this.#catchUp(false);
  }

  #onChange(event: ChangeEvent): void {
    for (const listener of this.#listeners) listener(event);
    this.chatAhead.forget(event.id);
    const chat = this.chat.peek();
    const isOpen = chat?.id === event.id;
    if (event.kind === "conversation") {
      // A change without a revision means that it was deleted.
      if (event.revision === undefined) this.chats.forget(event.id);
      this.chats.refreshSoon();
      if (isOpen) void chat.onChanged(event.revision);
    } else if (event.kind === "draft" && isOpen) void chat.onDraftChanged(event.revision);
    else if (event.kind === "queue" && isOpen) void chat.onQueueChanged(event.revision);
    else if (event.kind === "reply_started") void this.#readReplies();
    else if (event.kind === "reply_ended") {
      void this.#readReplies();
      this.#notifyOfReply(event.id);
    } else if (event.kind === "approval") {
      void this.#readReplies().then(() => this.#notifyOfApproval(event.id));
    } else if (event.kind === "connection") void this.connections.onChanged();
    else if (event.kind === "job") this.activity.onChanged();
    else if (event.kind === "trash") this.trash.refreshIfOpen();
    else if (event.kind === "settings") void this.preferences.refresh();
    else if (event.kind === "setup") void this.#readSetup();
    else if (event.kind === "access") this.accessVersion.value++;
  }

  /** Its code is loaded with the first connection, while the server has the build of this page. */
  async #onBuild(build: string, window: Window): Promise<void> {
    this.#update ??= import("./app/page_update.ts").then(({ PageUpdate }) => new PageUpdate(this, window));
    try {
      (await this.#update).onBuild(build);
    } catch {
      this.#update = undefined;
    }
  }

  async #readReplies(): Promise<void> {
    const replies = await this.chats.refreshReplies();
    this.chat.peek()?.onReplies(replies);
  }

  /** Gives the server the queued messages that only this browser has, of all chats. */
  async #handOverQueues(): Promise<void> {
    await this.outbox.loaded;
    const ids = new Set(this.outbox.queued.peek().map(({ conversationId }) => conversationId!));
    const chat = this.chat.peek();
    for (const id of ids) {
      if (id === chat?.id) void chat.replies.handOverQueue();
      else {
        const { handOver } = await import("./chat/message_queue.ts");
        await handOver(id, this.api, this.outbox).catch((thrown) => this.#handOvers.add(asApiError(thrown)));
      }
    }
  }

  #notifyOfReply(conversationId: string): void {
    this.#notify(conversationId, texts.nav.replyEnded);
  }

  /** Notifies once of each call that waits. */
  #notifyOfApproval(conversationId: string): void {
    const pending = this.chats.replies.peek().filter((reply) => reply.conversation_id === conversationId)
      .flatMap((reply) => reply.pending_calls ?? []).filter(({ id }) => !this.#notifiedCalls.has(id));
    for (const { id } of pending) this.#notifiedCalls.add(id);
    const [call] = pending;
    if (call) this.#notify(conversationId, texts.chat.callPending(call.tool_name ?? call.name));
  }

  #notify(conversationId: string, text: string): void {
    if (!this.device.isNotifying.peek()) return;
    const chat = this.chats.items.peek().find((item) => item.id === conversationId);
    const address = `/c/${encodeURIComponent(conversationId)}`;
    notifyWhenHidden({
      title: chat?.title || texts.nav.untitled,
      text,
      tag: conversationId,
      onClick: () => this.router.go(address),
    }, this.#document);
  }

  async #readSetup(): Promise<void> {
    try {
      await this.#setupReads.run(() => this.api.getSetupStatus(), (setup) => this.setup.value = setup);
    } catch {
      this.setup.value ??= UNKNOWN_SETUP;
    }
  }

  #surroundings() {
    return {
      api: this.api,
      storage: this.#storage,
      outbox: this.outbox,
      onFirstSend: (id: string) => {
        this.router.go(`/c/${id}`, { replace: true });
        void import("./app/form_draft_store.ts").then((drafts) => {
          drafts.putDraft(drafts.draftKey(getPerson(this.auth.peek()), drafts.NEW_CHAT_OPTIONS), undefined);
        }, () => {});
      },
      defaultPersonaId: () => this.preferences.settings.value?.default_persona_id,
      onFirstRefused: () => this.router.go("/new", { replace: true }),
      onQueueFull: (limit: number) => this.toasts.show(texts.queue.full(limit), { isError: true }),
      onNotHandedOver: (error: ApiError) => this.#handOvers.add(error),
    };
  }
}

const StoreContext = createContext<Store | undefined>(undefined);

/** Provides the store to its children. */
export const StoreProvider = StoreContext.Provider;

/** Returns the store of the page. */
export function useStore(): Store {
  const store = useContext(StoreContext);
  if (!store) throw new Error("Can't find the store: the view stands outside of StoreProvider");
  return store;
}
