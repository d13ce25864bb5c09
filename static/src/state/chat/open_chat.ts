/** The conversation on the screen: how far it is here, the reply that runs in it, and sending. What can be done to its messages is in message_actions.ts. */
import type {
  ChatOptions,
  ChatPreview,
  ChatRequest,
  ConversationHead,
  Message,
  RecentConversation,
  RunningReply,
} from "../../api/types.ts";
import { batch, computed, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { Api } from "../../api/api.ts";
import {
  buildContent,
  buildStoredRequest,
  buildTemporaryRequest,
  pickOptions,
  type ReplyParams,
} from "./reply_request.ts";
import { ChatSearch } from "./chat_search.ts";
import { Draft } from "./draft.ts";
import type { TurnOrder } from "./turn_order.ts";
import { newId } from "../app/ids.ts";
import { MessageActions } from "./message_actions.ts";
import { MessagePages, PAGE, type ReadMessages } from "./message_pages.ts";
import { LocalMessages, ServerMessages } from "./message_store.ts";
import { textOf } from "./message_text.ts";
import { MessageWindow } from "./message_window.ts";
import { type AttachedImage, ImageAttachments } from "./image_attachments.ts";
import { findReplyStart, type ReplyOutcome, ReplyStream, type ReplyTimes, toEndedMessage } from "./reply_stream.ts";

/** How far the conversation is here. */
export type LoadState = { kind: "loading" } | { kind: "ready" } | { kind: "missing" } | {
  kind: "failed";
  error: ApiError;
};

/** What kind of chat is opened: one the server has, one it will have, or one it never hears of. */
export type ChatKind = "stored" | "new" | "temporary";

/** What a chat needs from around it. */
export interface ChatSurroundings {
  api: Api;
  storage: Storage | undefined;
  /** Called when the first message of a new chat is on its way. */
  onFirstSend(conversationId: string): void;
  /** Who the owner is in a chat that names nobody. */
  defaultPersonaId(): string | null | undefined;
  /** Called when that message went nowhere, so that the chat is still none. */
  onFirstRefused(): void;
}

/** What the composer held when it was sent. */
interface SentDraft {
  turnId: string;
  typed: string;
  pictures: AttachedImage[];
}

/** Said of a chat that is not stored yet: no persona, not even the default one. */
const NO_PERSONA = "";

/** One conversation while it is open. */
export class OpenChat {
  readonly id: string;
  readonly isTemporary: boolean;
  readonly draft: Draft;
  readonly pages: MessagePages;
  readonly window: MessageWindow;
  readonly actions: MessageActions;
  readonly search: ChatSearch;
  readonly pictures: ImageAttachments;
  readonly isModelPickerOpen = signal(false);
  readonly load = signal<LoadState>({ kind: "loading" });
  readonly title = signal("");
  /** What the chat sets for itself. */
  readonly options = signal<ChatOptions>({});
  /** The last known state of the conversation without its messages; undefined while the server has none. */
  readonly head = signal<ConversationHead | undefined>(undefined);
  readonly run = signal<ReplyStream | undefined>(undefined);
  /** Who speaks when; undefined until it is wanted, and where fewer than two characters take part. */
  readonly group = signal<TurnOrder | undefined>(undefined);
  /** Ends the writing of a text in the owner's name, while one is written into the composer. */
  readonly ghostwriting = signal<AbortController | undefined>(undefined);
  /** Why the last thing that was asked for could not be done. */
  readonly problem = signal<ApiError | undefined>(undefined);
  /** The message to bring into view; a new object for every wish. */
  readonly target = signal<{ messageId: string; words: string[] } | undefined>(undefined);
  /** What this page saw of replies while they were written, by message; the server keeps no times of the model's. */
  readonly measured = signal<ReadonlyMap<string, ReplyTimes>>(new Map());
  /** Who the owner is here; a chat that is not stored yet begins with the default. */
  readonly personaId = computed(() => {
    const chosen = this.options.value.persona_id ?? (this.#isNew ? this.#around.defaultPersonaId() : undefined);
    return chosen || undefined;
  });
  readonly isRunning = computed(() => this.run.value !== undefined);
  readonly isGroup = computed(() => !this.isTemporary && (this.options.value.participants?.length ?? 0) > 1);
  readonly isEmpty = computed(() => this.pages.items.value.length === 0);
  readonly lastMessage = computed(() => this.pages.items.value.at(-1));
  #around: ChatSurroundings;
  #isClosed = false;
  #isNew: boolean;
  #reloading: Promise<void> | undefined;
  #following: Promise<void> | undefined;

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
    this.pictures = new ImageAttachments(this.isTemporary ? undefined : around.api.putAttachment);
    this.search = new ChatSearch(this, around.api);
    if (this.#isNew) this.load.value = { kind: "ready" };
  }

  /** True while the server knows nothing of this conversation. */
  get isNew(): boolean {
    return this.#isNew;
  }

  /**
   * Reads the conversation and follows the reply that runs in it, if one does.
   *
   * @param ahead The conversation, where it was asked for before it was opened.
   */
  async open(ahead?: Promise<RecentConversation>): Promise<void> {
    if (!this.#isNew) await this.reload(ahead);
  }

  /** Reads the conversation again; what is shown stays when that fails. Calls that come together share one request. */
  reload(ahead?: Promise<RecentConversation>): Promise<void> {
    this.#reloading ??= this.#reloadOnce({ ahead }).finally(() => this.#reloading = undefined);
    return this.#reloading;
  }

  /** Leaves the conversation; its reply runs on, its draft is saved. */
  close(options: { isLeavingPage?: boolean } = {}): void {
    void this.draft.save({ keepalive: options.isLeavingPage });
    if (options.isLeavingPage) return;
    this.#isClosed = true;
    this.run.value?.leave();
  }

  /** Takes word of a change of this conversation made by anybody. */
  onChanged(revision: number | undefined): void {
    if (this.#isNew || this.run.value) return;
    if (revision === undefined || revision > (this.head.peek()?.revision ?? -1)) void this.#reloadAfresh();
  }

  /** Takes word of a draft saved by anybody, perhaps by this page itself. */
  async onDraftChanged(version: number | undefined): Promise<void> {
    await this.#reloading;
    await this.draft.settled();
    if (this.draft.isNews(version)) await this.#reloadAfresh();
  }

  /** Takes word of the replies that run on the server now. */
  onReplies(replies: readonly RunningReply[]): void {
    if (!replies.some((reply) => reply.conversation_id === this.id)) return;
    // A model may take minutes to begin; that the reply is listed says already that the message is stored.
    if (this.run.value) this.#onAccepted();
    else if (!this.#isNew) void this.#reloadAfresh();
  }

  /** Brings a message into view, reading what lies between. False when the conversation does not have it. */
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

  /** Sets what the chat wants for itself; null clears. A chat that is not stored yet keeps it until it is. */
  async change(options: ChatOptions): Promise<void> {
    const before = this.options.peek();
    this.options.value = pickOptions({ ...before, ...options });
    if (this.#isNew) return;
    try {
      await this.#around.api.changeConversation(this.id, options);
    } catch (thrown) {
      this.options.value = before;
      throw thrown;
    }
  }

  /** Lets a persona speak from here on; null for none, also where one is the default. @throws {ApiError} */
  async speakAs(personaId: string | null): Promise<void> {
    await this.change({ persona_id: personaId ?? (this.#isNew ? NO_PERSONA : null) });
  }

  /** Tells what would be sent now, what stands in the composer included. @throws {ApiError} */
  preview(signal: AbortSignal): Promise<ChatPreview> {
    const text = this.draft.text.peek().trim();
    const turns = text === "" ? [] : [{ role: "user", content: text }];
    return this.#around.api.previewChat(this.id, turns, signal);
  }

  /** Renames the chat. @throws {ApiError} */
  async rename(title: string): Promise<void> {
    this.title.value = title;
    if (!this.#isNew) await this.#around.api.changeConversation(this.id, { title });
  }

  /** Sends what stands in the composer, and the pictures beside it. */
  send(): void {
    const text = this.draft.text.value.trim();
    const isEmpty = text === "" && this.pictures.items.peek().length === 0;
    if (isEmpty || this.pictures.isBusy.peek() || this.run.value || this.load.value.kind !== "ready") return;
    if (this.ghostwriting.peek()) return;
    const taken: SentDraft = { turnId: newId(), typed: this.draft.take(), pictures: this.pictures.take() };
    const turn: Message = {
      id: taken.turnId,
      role: "user",
      persona_id: this.personaId.peek(),
      content: buildContent(text, taken.pictures.map(({ url, shownUrl }) => url ?? shownUrl)),
      created_at: new Date().toISOString(),
      status: "complete",
    };
    batch(() => {
      this.pages.append(turn);
      this.window.toEnd();
    });
    if (this.#isNew && !this.isTemporary) this.#around.onFirstSend(this.id);
    void this.#ask(turn.id, taken);
  }

  /** Asks for the reply that the last turn of the user has not got. */
  askAgain(): void {
    const turn = this.lastMessage.value;
    if (turn?.role === "user" && !this.run.value) void this.#ask(turn.id);
  }

  /**
   * Asks for the reply to a new version of a user's message, which is shown already.
   *
   * @returns Whether the server took it.
   */
  askForVersion(messageId: string): Promise<boolean> {
    return this.#ask(messageId, undefined, undefined, this.isTemporary ? undefined : "edit");
  }

  /** Resolves when no reply is followed. */
  async replyEnded(): Promise<void> {
    await this.#following;
  }

  /** Asks for one reply more without a turn of the owner's. @param characterId Who is to speak. */
  speakOn(characterId?: string): void {
    if (!this.run.value) void this.#ask(undefined, undefined, characterId);
  }

  /** Makes known who speaks when; undefined where fewer than two characters take part. */
  async wantGroup(): Promise<TurnOrder | undefined> {
    if (!this.isGroup.peek()) return undefined;
    const { TurnOrder } = await import("./turn_order.ts");
    return this.group.value ??= new TurnOrder(this, this.#around.api);
  }

  /** Lets the model write the owner's next turn into the composer. */
  async writeForMe(): Promise<void> {
    if (this.isNew || this.run.peek() || this.ghostwriting.peek()) return;
    const { impersonate } = await import("./impersonation.ts");
    await impersonate(this, this.#around.api);
  }

  /** Asks for another text in place of a reply; the one there was stays as a variant. */
  regenerate(messageId: string): void {
    const message = this.pages.find(messageId);
    if (!message || this.run.value) return;
    this.pages.edit(messageId, {
      content: "",
      reasoning: undefined,
      status: "streaming",
      error: undefined,
      last_attempt: undefined,
      usage: undefined,
      timings: undefined,
    });
    void this.#start(messageId, { text: "", reasoning: "" }, { action: "regenerate" });
  }

  /** Asks for more behind a reply that ended too soon. */
  continueReply(messageId: string): void {
    const message = this.pages.find(messageId);
    if (!message || this.run.value) return;
    this.pages.edit(messageId, { status: "streaming", error: undefined });
    const base = { text: textOf(message.content), reasoning: message.reasoning ?? "" };
    void this.#start(messageId, base, { action: "continue" });
  }

  /** Stops the running reply, whoever started it. */
  async stop(): Promise<void> {
    this.ghostwriting.peek()?.abort();
    const run = this.run.value;
    if (!run || run.isStopping.value) return;
    // Nobody but this page follows the reply of a temporary chat: with it the server's call ends.
    if (this.isTemporary) return run.leave();
    run.isStopping.value = true;
    try {
      await this.#around.api.stopReply(run.messageId);
    } catch (thrown) {
      const error = asApiError(thrown);
      // Not known yet or not any more, or never sent: there is nothing to stop, so following it ends here.
      if (error.status === 404 || (error.isOffline && !run.isAccepted)) run.leave();
      else this.problem.value = error;
      run.isStopping.value = false;
    }
  }

  /** An answer that is on its way already may be older than what was just heard of: another one follows it. */
  async #reloadAfresh(): Promise<void> {
    if (this.#reloading) await this.#reloading;
    await this.reload();
  }

  #ask(
    userMessageId: string | undefined,
    taken?: SentDraft,
    characterId?: string,
    action?: ReplyParams["action"],
  ): Promise<boolean> {
    const messageId = newId();
    this.pages.append({
      id: messageId,
      role: "assistant",
      character_id: characterId,
      content: "",
      status: "streaming",
      created_at: new Date().toISOString(),
    });
    const asked = { user_message_id: userMessageId, character_id: characterId, action };
    return this.#start(messageId, { text: "", reasoning: "" }, asked, taken);
  }

  async #start(
    messageId: string,
    base: { text: string; reasoning: string },
    asked: ReplyParams,
    taken?: SentDraft,
  ): Promise<boolean> {
    const { api } = this.#around;
    this.problem.value = undefined;
    const run = new ReplyStream({
      messageId,
      startedAtMs: Date.now(),
      ...base,
      start: async (signal) => await api.startChat(await this.#requestFor(messageId, asked), signal),
      attach: (lastEventId, signal) => api.attachReply(messageId, lastEventId, signal),
      onAccepted: () => this.#onAccepted(),
      isLostWithConnection: this.isTemporary,
    });
    this.#following = this.#follow(run, taken);
    await this.#following;
    return run.isAccepted;
  }

  async #requestFor(messageId: string, asked: ReplyParams): Promise<ChatRequest> {
    const options = this.options.peek();
    if (this.isTemporary) {
      const items = this.pages.items.peek();
      const at = this.pages.places.peek().get(messageId) ?? items.length;
      // The message itself holds something only where it is to be continued.
      return buildTemporaryRequest(items.slice(0, at + 1), options);
    }
    if (this.#isNew) await this.#create();
    const turn = this.pages.find(asked.user_message_id ?? "");
    return buildStoredRequest(this.id, messageId, await this.#withSpeaker(messageId, asked, turn), turn);
  }

  /** The page names who speaks, so that the right name stands over the reply from its first word on. */
  async #withSpeaker(messageId: string, asked: ReplyParams, turn: Message | undefined): Promise<ReplyParams> {
    const isNewReply = asked.action === undefined || asked.action === "edit";
    if (!isNewReply || asked.character_id !== undefined) return asked;
    const character_id = await (await this.wantGroup())?.speakerFor(messageId, turn);
    this.pages.edit(messageId, { character_id });
    return { ...asked, character_id };
  }

  /** Stores what the new chat sets for itself; one that sets nothing comes into being with its first message. */
  async #create(): Promise<void> {
    // Named now, so that the chat stays with this persona when another one becomes the default.
    const persona_id = this.personaId.peek();
    const options = pickOptions({ ...this.options.peek(), persona_id });
    if (Object.keys(options).length > 0) await this.#around.api.createConversation(this.id, options);
  }

  #onAccepted(): void {
    if (this.isTemporary) return;
    this.#isNew = false;
    this.draft.becomeStored();
    void this.draft.save();
  }

  async #follow(run: ReplyStream, taken?: SentDraft): Promise<void> {
    this.run.value = run;
    const outcome = await run.follow();
    if (outcome.kind === "left" && this.#isClosed) return;
    // What the page saw stays on the screen until the server's own version of it is here.
    this.pages.edit(run.messageId, toEndedMessage(run, outcome));
    this.measured.value = new Map(this.measured.peek()).set(run.messageId, run.times);
    this.run.value = undefined;
    if (this.isTemporary) return this.#endTemporary(run, outcome, taken);
    await this.#reloadOnce({ isRefused: !run.isAccepted });
    if (!this.#isClosed) this.group.peek()?.goOn(this.pages.find(run.messageId));
    if (run.isAccepted) return;
    this.#onRefused(taken);
    if (outcome.kind === "refused" && !this.#isStored(run.messageId)) this.problem.value = outcome.error;
  }

  /** There is no other version of it: what is here is what there is. */
  #endTemporary(run: ReplyStream, outcome: ReplyOutcome, taken: SentDraft | undefined): void {
    if (outcome.kind === "refused") {
      const turn = this.pages.items.peek().at(-2);
      this.pages.keep(({ id }) => id !== run.messageId && (taken === undefined || id !== turn?.id));
      this.#putBack(taken);
      this.problem.value = outcome.error;
      return;
    }
    const status = { left: "stopped", lost: "interrupted" } as const;
    if (outcome.kind !== "ended") this.pages.edit(run.messageId, { status: status[outcome.kind] });
    this.pages.edit(run.messageId, { model: run.model, usage: run.usage, updated_at: new Date().toISOString() });
  }

  /** A request that began nothing: what the server did not keep goes back to where it came from. */
  #onRefused(taken: SentDraft | undefined): void {
    this.pages.keep((message) => this.#isStored(message.id));
    if (taken && !this.#isStored(taken.turnId)) this.#putBack(taken);
    if (this.#isNew) this.#around.onFirstRefused();
  }

  #putBack(taken: SentDraft | undefined): void {
    if (taken === undefined) return;
    this.draft.putBack(taken.typed);
    this.pictures.putBack(taken.pictures);
  }

  /** The server stamps what it keeps; what the page made itself has no stamp. */
  #isStored(messageId: string): boolean {
    return this.pages.find(messageId)?.updated_at !== undefined;
  }

  /** @param isRefused Look for the conversation even if it is thought new: the server may have stored it all the same. */
  async #reloadOnce(
    options: { isRefused?: boolean; ahead?: Promise<RecentConversation> } = {},
  ): Promise<void> {
    if (this.#isNew && !options.isRefused) return;
    try {
      // Of a long chat the server says which older messages changed.
      const limit = this.pages.revision === undefined ? this.pages.firstLimit : PAGE;
      const recent = await (options.ahead ?? this.#around.api.getRecent(this.id, limit));
      const { messages: _, next_cursor: __, ...head } = recent;
      const found = await this.pages.read(recent);
      if (this.#isClosed) return;
      if (options.isRefused) this.#onAccepted();
      this.#show(head, found);
      if (!this.run.value) await this.#followRunning();
    } catch (thrown) {
      const error = asApiError(thrown);
      if (error.status === 404 && !this.#isNew) this.load.value = { kind: "missing" };
      else if (this.load.value.kind !== "ready") this.load.value = { kind: "failed", error };
    }
  }

  #show(head: ConversationHead, found: ReadMessages): void {
    batch(() => {
      this.head.value = head;
      this.title.value = head.title;
      this.options.value = pickOptions(head);
      this.draft.receive(head.draft ?? "", head.draft_version ?? 0);
      this.load.value = { kind: "ready" };
      if (!this.run.value) this.pages.show(found);
    });
  }

  async #followRunning(): Promise<void> {
    const message = this.pages.items.peek().findLast((each) => each.status === "streaming");
    if (!message) return;
    const { api } = this.#around;
    const startedAtMs = await findReplyStart(api, message);
    if (this.#isClosed || this.run.value) return;
    const run = new ReplyStream({
      messageId: message.id,
      startedAtMs,
      text: textOf(message.content),
      reasoning: message.reasoning ?? "",
      attach: (lastEventId, signal) => api.attachReply(message.id, lastEventId, signal),
    });
    this.#following = this.#follow(run);
  }
}
