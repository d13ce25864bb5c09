/**
 * The conversation on the screen: loading, options, and changes elsewhere. Its replies are in chat_replies.ts, the
 * actions on its messages in message_actions.ts.
 */
import { batch, computed, signal } from "@preact/signals";
import type { Api } from "../../api/api.ts";
import { type ApiError, asApiError } from "../../api/client.ts";
import type {
  ChatOptions,
  ChatPreview,
  ConversationHead,
  MessageQueue,
  QueuedMessage,
  RecentConversation,
  RunningReply,
} from "../../api/types.ts";
import { ChangeQueue } from "../app/change_queue.ts";
import { draftKey, type Outbox, replyKey } from "../app/outbox.ts";
import type { StoredEntry } from "../app/outbox_store.ts";
import { ChatReplies } from "./chat_replies.ts";
import { ChatSearch } from "./chat_search.ts";
import { DocumentAttachments, ImageAttachments, Recordings, toDocumentUses } from "./attachments.ts";
import { Draft } from "./draft.ts";
import { MessageActions } from "./message_actions.ts";
import { MessagePages, MessageWindow, PAGE, type ReadMessages } from "./message_pages.ts";
import { LocalMessages, ServerMessages } from "./message_store.ts";
import { pickOptions, withParam } from "./reply_request.ts";
import { findToolMessages } from "./tool_messages.ts";
import type { TurnOrder } from "./turn_order.ts";

/** The load state of the conversation. */
export type LoadState = { kind: "loading" } | { kind: "ready" } | { kind: "missing" } | {
  kind: "failed";
  error: ApiError;
};

/** A chat that the server has, one that it will have, or a temporary one that stays on this page. */
export type ChatKind = "stored" | "new" | "temporary";

/** A message that waits for the end of a reply: the server has it, or only this browser yet. */
export interface WaitingMessage {
  /** ID of the user message. */
  id: string;
  item?: QueuedMessage;
  entry?: StoredEntry;
}

/** Dependencies of a chat. */
export interface ChatSurroundings {
  api: Api;
  storage: Storage | undefined;
  outbox: Outbox;
  /** Called when the first message of a new chat is sent. */
  onFirstSend(conversationId: string): void;
  /** Returns the persona of chats that name none. */
  defaultPersonaId(): string | null | undefined;
  /** Called if that message was refused, so that the chat does not exist. */
  onFirstRefused(): void;
  /** Called if a message can't be queued. */
  onQueueFull(limit: number): void;
  /** Called if the server couldn't be given a queued message. */
  onNotHandedOver(error: ApiError): void;
}

/** The target of the model picker: the chat, the chat and a retry of a reply, or one version of a reply. */
export type PickerPurpose = { kind: "chat" } | { kind: "retry" | "version"; messageId: string };

/** Set in an unsaved chat for no persona, not even the default one. */
const NO_PERSONA = "";

/** One open conversation. */
export class OpenChat {
  readonly id: string;
  readonly isTemporary: boolean;
  readonly draft: Draft;
  readonly pages: MessagePages;
  readonly window: MessageWindow;
  readonly actions: MessageActions;
  readonly search: ChatSearch;
  readonly replies: ChatReplies;
  readonly images: ImageAttachments;
  readonly documents: DocumentAttachments;
  readonly recordings = new Recordings();
  /** Tool servers offer prompts or resources. */
  readonly hasServerTexts = signal(false);
  /** Set while they are shown. */
  readonly isInserting = signal(false);
  /** The prompt of the image dialog while it's open; empty to have one written. */
  readonly drawing = signal<string | undefined>(undefined);
  /** Set while a dialog about the chat in the list is open. */
  readonly question = signal<"rename" | "folder" | undefined>(undefined);
  /** Set while the model picker is open. */
  readonly picker = signal<PickerPurpose | undefined>(undefined);
  readonly load = signal<LoadState>({ kind: "loading" });
  readonly title = signal("");
  /** The options of the chat. */
  readonly options = signal<ChatOptions>({});
  /** The last known state of the conversation without its messages; undefined if the server has none. */
  readonly head = signal<ConversationHead | undefined>(undefined);
  /** The turn order of a group; undefined until needed, and with fewer than two characters. */
  readonly group = signal<TurnOrder | undefined>(undefined);
  /** Why the last action failed. */
  readonly problem = signal<ApiError | undefined>(undefined);
  /** The message to scroll to; a new object for every request. */
  readonly target = signal<{ messageId: string; words: string[] } | undefined>(undefined);
  /** The user's persona; an unsaved chat starts with the default. */
  readonly personaId = computed(() => {
    const chosen = this.options.value.persona_id ?? (this.#isNew ? this.#around.defaultPersonaId() : undefined);
    return chosen || undefined;
  });
  /**
   * Changes of this chat that the server doesn't have. The message that is being sent, the draft and its files show
   * themselves.
   */
  readonly unsent = computed(() => {
    const running = this.replies.run.value?.messageId ?? "";
    return this.#around.outbox.entries.value.filter(({ key, kind, conversationId, problem }) =>
      conversationId === this.id && kind !== "draft" && key !== replyKey(running) &&
      (kind !== "file" || problem !== undefined)
    );
  });
  /** Messages that wait for the end of a reply, in order. */
  readonly queued = computed((): readonly WaitingMessage[] => {
    const onServer = this.#queue.value?.items.map((item) => ({ id: item.message.id, item })) ?? [];
    const ids = new Set(onServer.map(({ id }) => id));
    const here = this.#around.outbox.queued.value.filter(({ conversationId }) => conversationId === this.id)
      .map((entry) => ({ id: entry.key.slice("queued ".length), entry })).filter(({ id }) => !ids.has(id));
    return [...onServer, ...here].filter(({ id }) => !this.pages.places.value.has(id));
  });
  /** Those that the server has. */
  readonly #queue = signal<MessageQueue | undefined>(undefined);
  /** What screen readers say about them. */
  readonly queueNews = signal("");
  readonly isGroup = computed(() => !this.isTemporary && (this.options.value.participants?.length ?? 0) > 1);
  /** Tool calls and their results among the loaded messages. */
  readonly tools = computed(() => findToolMessages(this.pages.items.value));
  readonly isEmpty = computed(() => this.pages.items.value.length === 0);
  readonly lastMessage = computed(() => this.pages.items.value.at(-1));
  /** True once the page shows another conversation. */
  isClosed = false;
  #around: ChatSurroundings;
  #isNew: boolean;
  #reloading: Promise<void> | undefined;
  /** Changes of options so far, and those the server hasn't answered yet. */
  #changeCount = 0;
  #openChanges = 0;
  readonly #changes = new ChangeQueue();

  constructor(id: string, kind: ChatKind, around: ChatSurroundings) {
    this.id = id;
    this.isTemporary = kind === "temporary";
    this.#isNew = kind !== "stored";
    this.#around = around;
    this.draft = new Draft(around.api, id, this.#isNew, this.isTemporary ? undefined : around.storage);
    this.pages = new MessagePages(around.api, id);
    this.window = new MessageWindow(this.pages);
    const store = this.isTemporary ? new LocalMessages(this.pages) : new ServerMessages(around.api, id, this.pages);
    this.actions = new MessageActions(this, store, around.api);
    this.images = new ImageAttachments(
      this.isTemporary ? undefined : (name, image) => around.api.putAttachment(name, image, id),
    );
    this.documents = new DocumentAttachments(around.api.client, around.outbox, id);
    this.search = new ChatSearch(this, around.api);
    this.replies = new ChatReplies(this, around);
    if (this.#isNew) this.load.value = { kind: "ready" };
  }

  /** True while the server does not have this conversation. */
  get isNew(): boolean {
    return this.#isNew;
  }

  /**
   * Loads the conversation and follows its running reply.
   *
   * @param ahead The prefetched conversation.
   */
  async open(ahead?: Promise<RecentConversation>): Promise<void> {
    if (!this.#isNew) await this.reload(ahead);
    void this.replies.handOverQueue();
  }

  /** Reloads the conversation. A failure keeps what is shown. Concurrent calls share one request. */
  reload(ahead?: Promise<RecentConversation>): Promise<void> {
    this.#reloading ??= this.reloadOnce({ ahead }).finally(() => this.#reloading = undefined);
    return this.#reloading;
  }

  /** Leaves the conversation: its reply continues on the server, its draft is saved. */
  close(options: { isLeavingPage?: boolean } = {}): void {
    void this.draft.save({ keepalive: options.isLeavingPage });
    if (options.isLeavingPage) return;
    this.isClosed = true;
    this.replies.run.value?.leave();
    // What waits in a temporary chat ends with it.
    if (!this.isTemporary) return;
    for (const { entry } of this.queued.peek()) if (entry) void this.#around.outbox.discard(entry.key);
  }

  /** Handles a change event of this conversation. */
  async onChanged(revision: number | undefined): Promise<void> {
    if (this.#isNew || this.replies.run.value) return;
    // The response in flight may be older than the event.
    await this.#reloading;
    if (revision === undefined || revision > (this.head.peek()?.revision ?? -1)) await this.reload();
  }

  /** Handles a draft event, perhaps of this page itself. */
  async onDraftChanged(version: number | undefined): Promise<void> {
    await this.#reloading;
    await this.draft.settled();
    if (this.draft.isNews(version)) await this.#reloadAfresh();
  }

  /** Handles a change of the messages that wait. */
  async onQueueChanged(version: number | undefined): Promise<void> {
    if (this.#isNew || (version ?? Infinity) <= (this.#queue.peek()?.version ?? 0)) return;
    await this.refreshQueue();
    // There may be space for what waits here.
    void this.replies.handOverQueue();
  }

  /** Reads the messages that wait. After a failure, the next change or the end of the outage does. */
  async refreshQueue(): Promise<void> {
    const queue = await this.#around.api.getQueue(this.id).catch(() => undefined);
    this.#receiveQueue(queue);
  }

  #receiveQueue(queue: MessageQueue | undefined): void {
    if (queue && queue.version >= (this.#queue.peek()?.version ?? 0)) this.#queue.value = queue;
  }

  /** Handles a change that was sent later. */
  onSent({ conversationId, kind, text }: StoredEntry): void {
    if (conversationId !== this.id) return;
    if (kind === "draft") this.draft.onSaved(text ?? "");
    if (this.load.peek().kind === "missing") void this.reload();
  }

  /** Sends the message again whose reply is awaited here. Returns false if it's another one. */
  sendAgain({ key }: StoredEntry): boolean {
    const run = this.replies.run.peek();
    if (!run || run.isAccepted || key !== replyKey(run.messageId)) return false;
    run.retryNow();
    return true;
  }

  /** Handles the list of running replies. */
  onReplies(replies: readonly RunningReply[]): void {
    if (!replies.some((reply) => reply.conversation_id === this.id)) return;
    // A model may take minutes to start. That the reply is listed means that the message is stored.
    if (this.replies.run.value) this.markStored();
    else if (!this.#isNew) void this.#reloadAfresh();
  }

  /** Scrolls to a message and loads what is between. Returns false if the conversation does not have it. */
  async show(messageId: string, words: string[] = []): Promise<boolean> {
    try {
      if (!await this.pages.loadUntil(messageId)) return false;
    } catch (thrown) {
      this.problem.value = asApiError(thrown);
      return true;
    }
    batch(() => {
      this.window.around(messageId);
      this.target.value = { messageId, words };
    });
    return true;
  }

  /** Changes options; null clears. An unsaved chat keeps them until it is stored. */
  async change(options: ChatOptions): Promise<void> {
    const before = this.options.peek();
    this.options.value = pickOptions({ ...before, ...options });
    if (this.#isNew) return;
    this.#changeCount++;
    this.#openChanges++;
    try {
      const head = await this.#changes.run(() => this.#around.api.changeConversation(this.id, options));
      if (this.#openChanges === 1) this.options.value = pickOptions(head);
    } catch (thrown) {
      if (!asApiError(thrown).isQueued) this.options.value = before;
      throw thrown;
    } finally {
      this.#openChanges--;
    }
  }

  /** Resolves when the server knows the options, or has refused them. */
  optionsSettled(): Promise<void> {
    return this.#changes.settled();
  }

  /** Sets one parameter of the requests; undefined clears it. @throws {ApiError} */
  async changeParam(name: string, value: unknown): Promise<void> {
    await this.change({ params: withParam(this.options.peek().params, name, value) });
  }

  /** Sets the user's persona from here on; null for none, even if there is a default. @throws {ApiError} */
  async speakAs(personaId: string | null): Promise<void> {
    await this.change({ persona_id: personaId ?? (this.#isNew ? NO_PERSONA : null) });
  }

  /** Returns the prompt that would be sent now, including the composer's text. @throws {ApiError} */
  preview(signal: AbortSignal): Promise<ChatPreview> {
    const text = this.draft.text.peek().trim();
    const documents = toDocumentUses(this.documents.items.peek());
    const turns = text === "" && documents === undefined ? [] : [{ role: "user", content: text, documents }];
    const { connection_id, model } = this.options.peek();
    // The server knows the model of a stored chat.
    return this.#around.api.previewChat(this.id, turns, signal, this.#isNew ? { connection_id, model } : {});
  }

  /** Renames the chat. @throws {ApiError} */
  async rename(title: string): Promise<void> {
    this.title.value = title;
    if (!this.#isNew) await this.#changes.run(() => this.#around.api.changeConversation(this.id, { title }));
  }

  /** Loads the turn order; undefined with fewer than two characters. */
  async loadTurnOrder(): Promise<TurnOrder | undefined> {
    if (!this.isGroup.peek()) return undefined;
    const { TurnOrder } = await import("./turn_order.ts");
    return this.group.value ??= new TurnOrder(this, this.#around.api);
  }

  /** A response in flight may be older than the event, so another request follows it. */
  async #reloadAfresh(): Promise<void> {
    if (this.#reloading) await this.#reloading;
    await this.reload();
  }

  /** Stores the options of a new chat. One without options is created with its first message. */
  async create(): Promise<void> {
    // Stored now, so that the chat keeps this persona when the default changes.
    const persona_id = this.personaId.peek();
    const options = pickOptions({ ...this.options.peek(), persona_id });
    if (Object.keys(options).length > 0) await this.#around.api.createConversation(this.id, options);
  }

  /** Records that the server has the conversation. */
  markStored(): void {
    if (this.isTemporary) return;
    this.#isNew = false;
    this.draft.becomeStored();
    void this.draft.save();
    void this.replies.handOverQueue();
  }

  /** @param isRefused Look for the conversation even if it seems new: the server may have stored it. */
  async reloadOnce(
    options: { isRefused?: boolean; ahead?: Promise<RecentConversation> } = {},
  ): Promise<void> {
    if (this.#isNew && !options.isRefused) return;
    const changeCount = this.#openChanges === 0 ? this.#changeCount : undefined;
    const { last, run } = this.replies;
    const isRunning = run.peek() !== undefined;
    try {
      // In a long chat, the server lists which older messages changed.
      const limit = this.pages.revision === undefined ? this.pages.firstLimit : PAGE;
      const recent = await (options.ahead ?? this.#around.api.getRecent(this.id, limit));
      const { messages: _, next_cursor: __, queue, ...head } = recent;
      this.#receiveQueue(queue);
      const found = await this.pages.read(recent);
      await this.#around.outbox.loaded;
      if (this.isClosed) return;
      if (options.isRefused) this.markStored();
      // A reply has ended meanwhile, and the chat is read once more for that. Here, it may still be running.
      if (!run.peek() && (isRunning || this.replies.last !== last)) return;
      // Options of a response that may be older than a change made here would undo it on the screen.
      this.#show(head, found, changeCount === this.#changeCount);
      if (!this.replies.run.value) await this.replies.followRunning();
    } catch (thrown) {
      const error = asApiError(thrown);
      if (error.status === 404 && !this.#isNew) this.load.value = { kind: "missing" };
      else if (this.load.value.kind !== "ready") this.load.value = { kind: "failed", error };
    }
  }

  #show(head: ConversationHead, found: ReadMessages, hasOptions: boolean): void {
    batch(() => {
      this.head.value = head;
      this.title.value = head.title;
      if (hasOptions) this.options.value = pickOptions(head);
      const isFirst = this.load.peek().kind !== "ready";
      this.draft.receive(head.draft ?? "", head.draft_version ?? 0);
      const waiting = this.#around.outbox.entries.peek().find(({ key }) => key === draftKey(this.id));
      if (isFirst && waiting) this.draft.restore(waiting.text ?? "", waiting.headers["if-match"]);
      this.load.value = { kind: "ready" };
      if (!this.replies.run.value) this.pages.show(found);
    });
  }
}
