/** The conversation on the screen: its messages, the reply that runs in it, and what can be done. */
import { batch, computed, signal } from "@preact/signals";
import { ApiError, asApiError } from "../api/client.ts";
import type { Api } from "../api/endpoints.ts";
import type { ChatRequest, Conversation, Message, RunningReply } from "../api/types.ts";
import { Draft } from "./draft.ts";
import { newId } from "./ids.ts";
import { sentMessages, textOf } from "./message_text.ts";
import { type ReplyOutcome, ReplyRun } from "./reply_run.ts";

/** How far the conversation is here. */
export type LoadState = { kind: "loading" } | { kind: "ready" } | { kind: "missing" } | {
  kind: "failed";
  error: ApiError;
};

/** What a chat needs from around it. */
export interface ChatSurroundings {
  api: Api;
  storage: Storage | undefined;
  /** Called when the first message of a new chat is on its way. */
  onFirstSend(conversationId: string): void;
  /** Called when that message went nowhere, so that the chat is still none. */
  onFirstRefused(): void;
}

/** One conversation while it is open. */
export class OpenChat {
  readonly id: string;
  readonly draft: Draft;
  readonly load = signal<LoadState>({ kind: "loading" });
  readonly title = signal("");
  readonly messages = signal<Message[]>([]);
  readonly run = signal<ReplyRun | undefined>(undefined);
  /** Why the last thing that was asked for could not be done. */
  readonly problem = signal<ApiError | undefined>(undefined);
  /** Messages that are hidden while their deletion can be undone. */
  readonly hiddenIds = signal<ReadonlySet<string>>(new Set());
  readonly shown = computed(() => this.messages.value.filter((m) => !this.hiddenIds.value.has(m.id) && !m.hidden));
  readonly isRunning = computed(() => this.run.value !== undefined);
  #around: ChatSurroundings;
  #revision = -1;
  #isClosed = false;
  #isNew: boolean;
  #reloading: Promise<void> | undefined;

  constructor(id: string, isNew: boolean, around: ChatSurroundings) {
    this.id = id;
    this.#isNew = isNew;
    this.#around = around;
    this.draft = new Draft(around.api, id, isNew, around.storage);
    if (isNew) this.load.value = { kind: "ready" };
  }

  /** True while the server knows nothing of this conversation. */
  get isNew(): boolean {
    return this.#isNew;
  }

  /** Reads the conversation and follows the reply that runs in it, if one does. */
  async open(): Promise<void> {
    if (this.#isNew) return;
    await this.reload();
  }

  /** Reads the conversation again; what is shown stays when that fails. Calls that come together share one request. */
  reload(): Promise<void> {
    this.#reloading ??= this.#reloadOnce().finally(() => this.#reloading = undefined);
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
    if (this.#isNew || this.run.value || (revision !== undefined && revision <= this.#revision)) return;
    void this.#reloadAfresh();
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

  /** Sends what stands in the composer. */
  send(): void {
    const text = this.draft.text.value.trim();
    if (text === "" || this.run.value || this.load.value.kind !== "ready") return;
    const typed = this.draft.take();
    const now = new Date().toISOString();
    const turn: Message = { id: newId(), role: "user", content: text, created_at: now, status: "complete" };
    this.messages.value = [...this.messages.value, turn];
    if (this.#isNew) this.#around.onFirstSend(this.id);
    void this.#ask(turn.id, typed);
  }

  /** Asks for the reply that the last turn of the user has not got. */
  askAgain(): void {
    const turn = this.messages.value.at(-1);
    if (turn?.role === "user" && !this.run.value) void this.#ask(turn.id, undefined);
  }

  /** Asks for another text in place of a reply. */
  regenerate(messageId: string): void {
    const at = this.messages.value.findIndex((message) => message.id === messageId);
    if (at < 0 || this.run.value) return;
    this.#edit(messageId, {
      content: "",
      reasoning: undefined,
      status: "streaming",
      error: undefined,
      usage: undefined,
    });
    void this.#start(messageId, { text: "", reasoning: "" }, {
      action: "regenerate",
      messages: sentMessages(this.messages.value.slice(0, at)),
    });
  }

  /** Asks for more behind a reply that ended too soon. */
  continueReply(messageId: string): void {
    const at = this.messages.value.findIndex((message) => message.id === messageId);
    const message = this.messages.value[at];
    if (!message || this.run.value) return;
    this.#edit(messageId, { status: "streaming", error: undefined });
    void this.#start(messageId, { text: textOf(message.content), reasoning: message.reasoning ?? "" }, {
      action: "continue",
      messages: sentMessages(this.messages.value.slice(0, at + 1)),
    });
  }

  /** Stops the running reply, whoever started it. */
  async stop(): Promise<void> {
    const run = this.run.value;
    if (!run || run.isStopping.value) return;
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

  /** Hides a message; the deletion itself comes with `removeMessage`. */
  hideMessage(messageId: string, isHidden: boolean): void {
    const ids = new Set(this.hiddenIds.value);
    if (isHidden) ids.add(messageId);
    else ids.delete(messageId);
    this.hiddenIds.value = ids;
  }

  /** Deletes a message for good. */
  async removeMessage(messageId: string, keepalive: boolean): Promise<void> {
    try {
      await this.#around.api.deleteMessage(this.id, messageId, { keepalive });
      this.messages.value = this.messages.value.filter((message) => message.id !== messageId);
    } catch (thrown) {
      this.problem.value = asApiError(thrown);
    }
    this.hideMessage(messageId, false);
  }

  /** An answer that is on its way already may be older than what was just heard of: another one follows it. */
  async #reloadAfresh(): Promise<void> {
    if (this.#reloading) await this.#reloading;
    await this.reload();
  }

  #ask(userMessageId: string, typed: string | undefined): Promise<void> {
    const messages = sentMessages(this.shown.value);
    const messageId = newId();
    const now = new Date().toISOString();
    this.messages.value = [...this.messages.value, {
      id: messageId,
      role: "assistant",
      content: "",
      status: "streaming",
      created_at: now,
    }];
    return this.#start(messageId, { text: "", reasoning: "" }, { user_message_id: userMessageId, messages }, typed);
  }

  async #start(
    messageId: string,
    base: { text: string; reasoning: string },
    request: Partial<ChatRequest> & Pick<ChatRequest, "messages">,
    typed?: string,
  ): Promise<void> {
    const { api } = this.#around;
    this.problem.value = undefined;
    const run = new ReplyRun({
      messageId,
      startedAtMs: Date.now(),
      ...base,
      start: (signal) =>
        api.startChat({ conversation_id: this.id, assistant_message_id: messageId, stream: true, ...request }, signal),
      attach: (lastEventId, signal) => api.attachReply(messageId, lastEventId, signal),
      onAccepted: () => this.#onAccepted(),
    });
    await this.#follow(run, typed);
  }

  #onAccepted(): void {
    this.#isNew = false;
    this.draft.becomeStored();
    void this.draft.save();
  }

  async #follow(run: ReplyRun, typed?: string): Promise<void> {
    this.run.value = run;
    const outcome = await run.follow();
    if (outcome.kind === "left" && this.#isClosed) return;
    this.#keepText(run, outcome);
    this.run.value = undefined;
    await this.#reloadOnce({ isRefused: !run.isAccepted });
    if (run.isAccepted) return;
    this.#onRefused(typed);
    if (outcome.kind === "refused" && !this.#isStored(run.messageId)) this.problem.value = outcome.error;
  }

  /** What the page saw stays on the screen until the server's own version of it is here. */
  #keepText(run: ReplyRun, outcome: ReplyOutcome): void {
    const error = outcome.kind === "ended" ? outcome.error : undefined;
    const status = error ? (error.code === "interrupted" ? "interrupted" : "failed") : "complete";
    const message = error?.message ?? "";
    this.#edit(run.messageId, {
      content: run.text.value,
      reasoning: run.reasoning.value || undefined,
      status: outcome.kind === "refused" ? "failed" : status,
      error: error ? { code: error.code, message, request_id: error.requestId } : undefined,
    });
  }

  /** A request that began nothing: what the server did not keep goes back to where it came from. */
  #onRefused(typed: string | undefined): void {
    const isTurnLost = this.messages.value.some((message) => message.role === "user" && !this.#isStored(message.id));
    this.messages.value = this.messages.value.filter((message) => this.#isStored(message.id));
    if (typed !== undefined && isTurnLost) this.draft.putBack(typed);
    if (this.#isNew) this.#around.onFirstRefused();
  }

  /** The server stamps what it keeps; what the page made itself has no stamp. */
  #isStored(messageId: string): boolean {
    return this.messages.value.some((message) => message.id === messageId && message.updated_at !== undefined);
  }

  #edit(messageId: string, changes: Partial<Message>): void {
    this.messages.value = this.messages.value.map((message) =>
      message.id === messageId ? { ...message, ...changes } : message
    );
  }

  /** @param isRefused Look for the conversation even if it is thought new: the server may have stored it all the same. */
  async #reloadOnce(options: { isRefused?: boolean } = {}): Promise<void> {
    if (this.#isNew && !options.isRefused) return;
    try {
      const conversation = await this.#around.api.getConversation(this.id);
      if (this.#isClosed) return;
      if (options.isRefused) this.#onAccepted();
      this.#show(conversation);
      if (!this.run.value) await this.#followRunning(conversation);
    } catch (thrown) {
      const error = asApiError(thrown);
      if (error.status === 404 && !this.#isNew) this.load.value = { kind: "missing" };
      else if (this.load.value.kind !== "ready") this.load.value = { kind: "failed", error };
    }
  }

  #show(conversation: Conversation): void {
    batch(() => {
      this.#revision = conversation.revision;
      this.title.value = conversation.title;
      this.draft.receive(conversation.draft ?? "", conversation.draft_version ?? 0);
      this.load.value = { kind: "ready" };
      if (this.run.value) return;
      // Unchanged messages keep their object, so that nothing is rendered again for them.
      const known = new Map(this.messages.value.map((message) => [message.id, message]));
      this.messages.value = conversation.messages.map((message) => {
        const before = known.get(message.id);
        return before && JSON.stringify(before) === JSON.stringify(message) ? before : message;
      });
    });
  }

  async #followRunning(conversation: Conversation): Promise<void> {
    const message = conversation.messages.find((each) => each.status === "streaming");
    if (!message) return;
    const { api } = this.#around;
    const startedAtMs = await this.#startOf(message);
    if (this.#isClosed || this.run.value) return;
    const run = new ReplyRun({
      messageId: message.id,
      startedAtMs,
      text: textOf(message.content),
      reasoning: message.reasoning ?? "",
      attach: (lastEventId, signal) => api.attachReply(message.id, lastEventId, signal),
    });
    void this.#follow(run);
  }

  async #startOf(message: Message): Promise<number> {
    const fallback = Date.parse(message.updated_at ?? "") || Date.now();
    try {
      const replies = await this.#around.api.listReplies();
      const reply = replies.find((each) => each.assistant_message_id === message.id);
      return reply ? Date.parse(reply.started_at) : fallback;
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown;
      return fallback;
    }
  }
}
