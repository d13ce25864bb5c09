/** The replies of the open conversation: send, follow, stop, regenerate, continue. */
import type { ChatRequest, Message } from "../../api/types.ts";
import { batch, computed, signal } from "@preact/signals";
import { asApiError } from "../../api/client.ts";
import { newId } from "../app/ids.ts";
import { draftKey, replyKey, stopKey } from "../app/outbox.ts";
import type { OutboxEntry } from "../app/outbox_store.ts";
import { type AttachedDocument, type AttachedImage, type AttachedRecording, toDocumentUses } from "./attachments.ts";
import { getContentText } from "./message_text.ts";
import type { ChatSurroundings, OpenChat, WaitingMessage } from "./open_chat.ts";
import { buildContent, buildStoredRequest, buildTemporaryRequest, type ReplyParams } from "./reply_request.ts";
import { findReplyStart, type ReplyOutcome, ReplyStream, type ReplyTimes, toEndedMessage } from "./reply_stream.ts";
import { splitAtCalls, writeRounds } from "./tool_messages.ts";

/** The content of the composer when it was sent. */
export interface SentDraft {
  turnId: string;
  typed: string;
  images: AttachedImage[];
  documents: AttachedDocument[];
  recordings: AttachedRecording[];
}

/** What one version of a reply has of its own. */
type VersionParams = Pick<ReplyParams, "connection_id" | "model" | "context_size">;

/** Retries that start by themselves, and the delay before the first; each further one waits twice as long. */
const MAX_AUTO_RETRIES = 5;
const AUTO_RETRY_MS = 2_000;

/** Starts replies and follows the running one. */
export class ChatReplies {
  readonly run = signal<ReplyStream | undefined>(undefined);
  /** The last reply that ended while the chat was open, as the server has stored it. */
  readonly ended = signal<Message | undefined>(undefined);
  readonly isRunning = computed(() => this.run.value !== undefined);
  /** Aborts the impersonation that is being written into the composer. */
  readonly impersonation = signal<AbortController | undefined>(undefined);
  /** Times that this page measured, by message; the server stores none. */
  readonly measured = signal<ReadonlyMap<string, ReplyTimes>>(new Map());
  /** Retries that started by themselves, by message. */
  readonly #autoRetries = new Map<string, number>();
  readonly #chat: OpenChat;
  readonly #around: ChatSurroundings;
  /** The last one that was followed. */
  last: ReplyStream | undefined;
  /** The reply after which this page said that it lets others speak. */
  #spokenOn: string | undefined;
  #following: Promise<void> | undefined;

  constructor(chat: OpenChat, around: ChatSurroundings) {
    this.#chat = chat;
    this.#around = around;
  }

  /** Sends the composer's text and images. */
  send(): void {
    if (this.run.value) return;
    const taken = this.#takeDraft();
    if (!taken) return;
    const { sentDraft, turn } = taken;
    this.#dropDraft();
    this.#show(turn);
    void this.#ask(turn.id, { sentDraft });
  }

  /** Sends the composer's text and images after the running reply has ended well. */
  async queue(): Promise<void> {
    const { MAX_QUEUED, queueMessage } = await import("./message_queue.ts");
    if (this.#chat.queued.peek().length >= MAX_QUEUED) return this.#around.onQueueFull(MAX_QUEUED);
    const taken = this.#takeDraft();
    if (!taken) return;
    await queueMessage(this.#chat, this.#around.outbox, taken.turn, taken.sentDraft);
    void this.#chat.draft.save();
    if (!this.#chat.isTemporary) return await this.handOverQueue({ isReported: true });
    // It may have ended meanwhile.
    if (!this.run.peek()) await this.#sendNext();
  }

  /** Gives the server the queued messages that only this browser has. A failure keeps them. */
  async handOverQueue({ isReported = false }: { isReported?: boolean } = {}): Promise<void> {
    const isHere = this.#chat.queued.peek().some(({ entry }) => entry !== undefined);
    const run = this.run.peek();
    if (!isHere || this.#chat.isNew || this.#chat.isTemporary || run?.isAccepted === false) return;
    const { api, outbox } = this.#around;
    try {
      const { handOver } = await import("./message_queue.ts");
      await handOver(this.#chat.id, api, outbox, {
        startedKey: run && replyKey(run.messageId),
        onAdded: () => this.#chat.refreshQueue(),
      });
    } catch (thrown) {
      const error = asApiError(thrown);
      this.#around.onNotHandedOver(error);
      if (isReported && !error.isTransient && !this.#chat.isClosed) this.#chat.problem.value = error;
    }
  }

  /** Sends a queued message now, no matter how the last reply ended. */
  async sendQueued(waiting: WaitingMessage): Promise<void> {
    const { sendWaiting } = await import("./message_queue.ts");
    await sendWaiting(this.#chat, this.#around.outbox, waiting);
  }

  /** Returns a queued message to the composer. */
  async editQueued(id: string): Promise<void> {
    const { api, outbox } = this.#around;
    const { editQueued } = await import("./message_queue.ts");
    await editQueued(this.#chat, api, outbox, id).catch((thrown) => this.#chat.problem.value = asApiError(thrown));
  }

  /** Moves a message of the server's queue. @param position From 0. */
  async moveQueued(n: number, position: number): Promise<void> {
    const { moveQueued } = await import("./message_queue.ts");
    await moveQueued(this.#chat, this.#around.api, n, position)
      .catch((thrown) => this.#chat.problem.value = asApiError(thrown));
  }

  /** Removes a queued message. */
  async removeQueued(id: string): Promise<void> {
    const { api, outbox } = this.#around;
    const { takeOut } = await import("./message_queue.ts");
    await takeOut(this.#chat, api, outbox, id).catch((thrown) => this.#chat.problem.value = asApiError(thrown));
  }

  /** Sends the next queued message if the last reply has ended well. */
  async #sendNext(): Promise<void> {
    const [next] = this.#chat.queued.peek();
    if (!next) return;
    const { isWell } = await import("./message_queue.ts");
    if (isWell(this.#chat.lastMessage.peek())) await this.sendQueued(next);
  }

  /** Sends a message that isn't in the composer. Resolves when its reply has ended. */
  async sendTurn(turn: Message, replyId: string, onAccepted: () => void): Promise<"sent" | "refused" | "discarded"> {
    this.#show(turn);
    const isAccepted = await this.#ask(turn.id, { replyId, onAccepted });
    // Another page or device was faster.
    if (this.#chat.problem.peek()?.code === "conflict") this.#chat.problem.value = undefined;
    if (!isAccepted && this.#chat.isTemporary) this.#chat.pages.keep(({ id }) => id !== turn.id);
    return isAccepted ? "sent" : this.last?.isDiscarded ? "discarded" : "refused";
  }

  #takeDraft(): { sentDraft: SentDraft; turn: Message } | undefined {
    const text = this.#chat.draft.text.value.trim();
    const { images, documents, recordings } = this.#chat;
    const isEmpty = text === "" && images.items.peek().length === 0 && documents.items.peek().length === 0;
    if (
      isEmpty || images.isBusy.peek() || documents.isBusy.peek() || recordings.isBusy.peek() ||
      this.#chat.load.value.kind !== "ready" || this.impersonation.peek()
    ) {
      return undefined;
    }
    const sentDraft: SentDraft = {
      turnId: newId(),
      typed: this.#chat.draft.take(),
      images: images.take(),
      documents: documents.take(),
      recordings: recordings.take(),
    };
    const turn: Message = {
      id: sentDraft.turnId,
      role: "user",
      persona_id: this.#chat.personaId.peek(),
      documents: toDocumentUses(sentDraft.documents),
      attachments: sentDraft.recordings.length > 0 ? sentDraft.recordings.map(({ name }) => name) : undefined,
      content: buildContent(text, sentDraft.images.map(({ url, shownUrl }) => url ?? shownUrl)),
      created_at: new Date().toISOString(),
      status: "complete",
    };
    return { sentDraft, turn };
  }

  #show(turn: Message): void {
    batch(() => {
      this.#chat.pages.append(turn);
      this.#chat.window.toEnd();
    });
    if (this.#chat.isNew && !this.#chat.isTemporary) this.#around.onFirstSend(this.#chat.id);
  }

  /** Asks for the missing reply to the user's last message. */
  askAgain(): void {
    const turn = this.#chat.lastMessage.value;
    if (turn?.role === "user" && !this.run.value) void this.#ask(turn.id);
  }

  /**
   * Asks for the reply to a new version of a user message that is already shown.
   *
   * @param onAccepted Called when the server has it.
   * @returns True if the server accepted it.
   */
  askForVersion(messageId: string, onAccepted: () => void): Promise<boolean> {
    return this.#ask(messageId, { action: this.#chat.isTemporary ? undefined : "edit", onAccepted });
  }

  /** Doesn't send what the server doesn't have yet. @param isEdited Returns the text to its field. */
  withdraw(isEdited: boolean): void {
    const run = this.run.peek();
    if (!run || run.isAccepted) return;
    run.isDiscarded = !isEdited;
    void this.#around.outbox.discard(replyKey(run.messageId));
    run.leave();
  }

  /** Resolves when no reply is followed. */
  async replyEnded(): Promise<void> {
    await this.#following;
  }

  /** Requests another reply without a user message. @param characterId The speaker. */
  speakOn(characterId?: string): void {
    if (!this.run.value) void this.#ask(undefined, { characterId });
  }

  /** Lets the model write the user's next message into the composer. */
  async impersonate(): Promise<void> {
    if (this.#chat.isNew || this.run.peek() || this.impersonation.peek()) return;
    const { impersonate } = await import("./impersonation.ts");
    await impersonate(this.#chat, this.#around.api);
  }

  /**
   * Asks for another version of a reply; the current one stays as a variant.
   *
   * @param only For this version: another connection and model, or a limit of the context in tokens.
   */
  regenerate(messageId: string, only?: VersionParams): void {
    const message = this.#chat.pages.find(messageId);
    if (!message || this.run.value) return;
    this.#chat.pages.edit(messageId, {
      content: "",
      reasoning: undefined,
      status: "streaming",
      error: undefined,
      last_attempt: undefined,
      usage: undefined,
      timings: undefined,
      finish_reason: undefined,
      output_limit: undefined,
      left_out: undefined,
    });
    const started = this.#start(messageId, { text: "", reasoning: "" }, { action: "regenerate", ...only });
    void started.then((isAccepted) => this.#restore(message, isAccepted));
  }

  /**
   * Returns the next retry that may start by itself; undefined after several that failed: then a server responds to
   * tests but not to chats.
   *
   * @param messageId Undefined for a message that isn't stored yet.
   */
  findAutoRetry(messageId = ""): { delayMs: number; count: () => void } | undefined {
    const n = this.#autoRetries.get(messageId) ?? 0;
    if (n >= MAX_AUTO_RETRIES) return undefined;
    return { delayMs: AUTO_RETRY_MS * 2 ** n, count: () => this.#autoRetries.set(messageId, n + 1) };
  }

  /** Asks for more text of a reply that ended too soon. */
  continueReply(messageId: string): void {
    const message = this.#chat.pages.find(messageId);
    if (!message || this.run.value) return;
    this.#chat.pages.edit(messageId, {
      status: "streaming",
      error: undefined,
      last_attempt: undefined,
      finish_reason: undefined,
    });
    const base = { text: getContentText(message.content), reasoning: message.reasoning ?? "" };
    void this.#start(messageId, base, { action: "continue" })
      .then((isAccepted) => this.#restore(message, isAccepted));
  }

  /** Shows a reply again whose change wasn't sent. */
  #restore(message: Message, isAccepted: boolean): void {
    const shown = this.#chat.pages.find(message.id);
    if (isAccepted || this.#chat.isClosed || shown?.updated_at !== message.updated_at) return;
    // The server has it as it was, and says why the attempt failed.
    if (shown?.last_attempt !== undefined) return;
    this.#chat.pages.items.value = this.#chat.pages.items.peek().map((each) => each === shown ? message : each);
  }

  /** Stops the running reply, no matter who started it. */
  async stop(): Promise<void> {
    this.impersonation.peek()?.abort();
    const run = this.run.value;
    if (!run || run.isStopping.value) return;
    // Only this page follows the reply of a temporary chat: closing the stream ends the server's call.
    if (this.#chat.isTemporary) return run.leave();
    run.isStopping.value = true;
    try {
      await this.#around.api.stopReply(run.messageId, this.#chat.id);
    } catch (thrown) {
      const error = asApiError(thrown);
      // Sent when the server is back: the reply may be going on at the model.
      if (error.isQueued && run.isAccepted) return;
      // Not known yet, no longer known, or never sent: there is nothing to stop, so following ends here.
      if (!run.isAccepted && (error.status === 404 || error.isOffline || error.isQueued)) {
        void this.#around.outbox.discard(stopKey(run.messageId, this.#chat.id));
        this.withdraw(true);
      } else if (error.status === 404) run.leave();
      else this.#chat.problem.value = error;
      run.isStopping.value = false;
    }
  }

  async followRunning(): Promise<void> {
    const message = this.#chat.pages.items.peek().findLast((each) => each.status === "streaming");
    if (!message) return;
    const { api } = this.#around;
    const startedAtMs = await findReplyStart(api, message);
    if (this.#chat.isClosed || this.run.value) return;
    const hasRounds = this.#chat.tools.peek().rounds.has(message.id);
    const run = new ReplyStream({
      messageId: message.id,
      startedAtMs,
      // The stream of a reply with tool calls starts with its first text; the message has only the last text.
      text: hasRounds ? "" : getContentText(message.content),
      reasoning: hasRounds ? "" : message.reasoning ?? "",
      attach: (lastEventId, signal) => api.attachReply(message.id, lastEventId, signal),
      hasNext: () => this.#chat.queued.peek().length > 0,
    });
    this.#following = this.#follow(run);
  }

  #ask(
    userMessageId: string | undefined,
    { sentDraft, replyId: messageId = newId(), characterId, action, onAccepted }: {
      sentDraft?: SentDraft;
      replyId?: string;
      characterId?: string;
      action?: ReplyParams["action"];
      onAccepted?: () => void;
    } = {},
  ): Promise<boolean> {
    this.#chat.pages.append({
      id: messageId,
      role: "assistant",
      character_id: characterId,
      content: "",
      status: "streaming",
      created_at: new Date().toISOString(),
    });
    const params = { user_message_id: userMessageId, character_id: characterId, action } satisfies ReplyParams;
    return this.#start(messageId, { text: "", reasoning: "" }, params, { sentDraft, onAccepted });
  }

  async #start(
    messageId: string,
    base: { text: string; reasoning: string },
    params: ReplyParams,
    { sentDraft, onAccepted }: { sentDraft?: SentDraft; onAccepted?: () => void } = {},
  ): Promise<boolean> {
    const { api } = this.#around;
    const key = newId();
    const next = sentDraft && this.#emptyDraft();
    this.#chat.problem.value = undefined;
    const run = new ReplyStream({
      messageId,
      startedAtMs: Date.now(),
      ...base,
      start: async (signal) => await api.startChat(await this.#requestFor(messageId, params), signal, key, next),
      attach: (lastEventId, signal) => api.attachReply(messageId, lastEventId, signal),
      onAccepted: () => {
        this.#chat.markStored();
        onAccepted?.();
      },
      // In a group, another character may speak after this one.
      hasNext: () => (this.#chat.group.peek()?.waiting.peek().length ?? 0) > 0 || this.#chat.queued.peek().length > 0,
      canEdit: sentDraft !== undefined || params.action === "edit",
      isLostWithConnection: this.#chat.isTemporary,
    });
    this.#following = this.#follow(run, sentDraft);
    await this.#following;
    return run.isAccepted;
  }

  async #requestFor(messageId: string, params: ReplyParams): Promise<ChatRequest> {
    const options = this.#chat.options.peek();
    if (this.#chat.isTemporary) {
      const items = this.#chat.pages.items.peek();
      const at = this.#chat.pages.places.peek().get(messageId) ?? items.length;
      // The message itself has content only if it is to be continued.
      return buildTemporaryRequest(items.slice(0, at + 1), options, params);
    }
    if (this.#chat.isNew) await unlessUnreachable(this.#chat.create());
    const turn = this.#chat.pages.find(params.user_message_id ?? "");
    return buildStoredRequest(this.#chat.id, messageId, await this.#withSpeaker(messageId, params, turn), turn);
  }

  /** The page chooses who speaks, so that the reply shows the right name from its first word. */
  async #withSpeaker(messageId: string, params: ReplyParams, turn: Message | undefined): Promise<ReplyParams> {
    const isNewReply = params.action === undefined || params.action === "edit";
    if (!isNewReply) return params;
    let { character_id } = params;
    if (character_id === undefined) {
      // If it can't be known now, the server chooses.
      character_id = await unlessUnreachable(
        this.#chat.loadTurnOrder().then((order) => order?.speakerFor(messageId, turn)),
      );
      this.#chat.pages.edit(messageId, { character_id });
    }
    const next_speakers = this.#chat.group.peek()?.waiting.peek() ?? [];
    if (next_speakers.length === 0) return { ...params, character_id };
    this.#spokenOn = messageId;
    return { ...params, character_id, next_speakers: [...next_speakers] };
  }

  async #follow(run: ReplyStream, sentDraft?: SentDraft): Promise<void> {
    this.run.value = this.last = run;
    const outcome = await run.follow();
    if (outcome.kind === "left" && this.#chat.isClosed) return;
    // The received text stays on screen until the server's version is loaded.
    if (run.calls.peek().length > 0) this.#keepRounds(run);
    this.#chat.pages.edit(run.messageId, toEndedMessage(run, outcome));
    this.measured.value = new Map(this.measured.peek()).set(run.messageId, run.times);
    this.run.value = undefined;
    if (this.#chat.isTemporary) {
      this.#endTemporary(run, outcome, sentDraft);
      this.#announce(run);
      if (run.isAccepted) void this.#sendNext();
      return;
    }
    await this.#chat.reloadOnce({ isRefused: !run.isAccepted });
    this.#announce(run);
    if (!this.#chat.isClosed) this.#chat.group.peek()?.goOn(this.#chat.pages.find(run.messageId));
    // The server waits for those that the user has told not to speak after all.
    if (run.isAccepted && this.#spokenOn === run.messageId && !this.run.peek()) void this.#sendNext();
    if (run.isAccepted) return;
    this.#onRefused(sentDraft, run.isDiscarded);
    if (outcome.kind === "refused" && !this.#isStored(run.messageId)) this.#chat.problem.value = outcome.error;
  }

  #announce(run: ReplyStream): void {
    const message = this.#chat.pages.find(run.messageId);
    if (run.isAccepted && message !== undefined && !this.#chat.isClosed) this.ended.value = message;
  }

  /** Shows the tool calls that a reply made before its last text. */
  #keepRounds(run: ReplyStream): void {
    const rounds = splitAtCalls(run.calls.peek(), run.text.peek(), run.reasoning.peek());
    const message = this.#chat.pages.find(run.messageId);
    if (message) this.#chat.pages.setRounds(run.messageId, writeRounds(message, rounds));
  }

  /** There is no server version, so the page's version is final. */
  #endTemporary(run: ReplyStream, outcome: ReplyOutcome, sentDraft: SentDraft | undefined): void {
    if (outcome.kind === "refused") {
      const turn = this.#chat.pages.items.peek().at(-2);
      this.#chat.pages.keep(({ id }) => id !== run.messageId && (sentDraft === undefined || id !== turn?.id));
      this.#putBack(sentDraft);
      this.#chat.problem.value = outcome.error;
      return;
    }
    const status = { left: "stopped", lost: "interrupted" } as const;
    if (outcome.kind !== "ended") this.#chat.pages.edit(run.messageId, { status: status[outcome.kind] });
    this.#chat.pages.edit(run.messageId, { model: run.model, usage: run.usage, updated_at: new Date().toISOString() });
  }

  /** After a refused request, what the server did not store returns to the composer. */
  #onRefused(sentDraft: SentDraft | undefined, isDiscarded: boolean): void {
    this.#chat.pages.keep((message) => this.#isStored(message.id));
    if (sentDraft && !isDiscarded && !this.#isStored(sentDraft.turnId)) this.#putBack(sentDraft);
    if (this.#chat.isNew) this.#around.onFirstRefused();
  }

  /** The text is in the message from now on. A browser that can't keep the message keeps the draft. */
  #dropDraft(): void {
    const { outbox } = this.#around;
    if (this.#chat.isTemporary || !outbox.isAvailable.peek()) return;
    if (this.#chat.isNew) void this.#chat.draft.save();
    else void outbox.discard(draftKey(this.#chat.id));
  }

  /** The request that empties the stored draft, for a message that is sent when this page is gone. */
  #emptyDraft(): OutboxEntry["next"] {
    const { version } = this.#chat.draft;
    if (this.#chat.isNew || version === undefined) return undefined;
    const [method, path] = draftKey(this.#chat.id).split(" ") as [string, string];
    return { method, path, headers: { "if-match": `"${version}"` }, body: { draft: "" } };
  }

  #putBack(sentDraft: SentDraft | undefined): void {
    if (sentDraft === undefined) return;
    this.#chat.draft.putBack(sentDraft.typed);
    this.#chat.images.putBack(sentDraft.images);
    this.#chat.documents.putBack(sentDraft.documents);
    this.#chat.recordings.putBack(sentDraft.recordings);
  }

  /** The server sets `updated_at`; messages that only the page has lack it. */
  #isStored(messageId: string): boolean {
    return this.#chat.pages.find(messageId)?.updated_at !== undefined;
  }
}

/** Resolves with undefined if the server can't be reached. */
async function unlessUnreachable<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (thrown) {
    if (asApiError(thrown).isTransient || asApiError(thrown).isQueued) return undefined;
    throw thrown;
  }
}
