/** Answers chat requests: with a conversation, by a reply the server owns; without, by passing the model's stream on. */
import { moveIn, moveOut, type PictureParts } from "../attachments/image_parts.ts";
import { randomToken, uuidV7 } from "../crypto/random.ts";
import { AppError, traceOf } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { ChatEvent, OpenAiCompletion } from "../llm/chat_event.ts";
import type { ChatStream } from "../llm/upstream_client.ts";
import type { Log } from "../log.ts";
import type { ActivationState } from "../lorebooks/activation.ts";
import type { Prompts } from "../prompts/prompts.ts";
import type { Scenes } from "../prompts/scenes.ts";
import type { TokenRatios } from "../prompts/tokens/token_ratios.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import { attemptOf, settleAttempt } from "./attempts.ts";
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import type { ConversationState } from "../conversations/conversation.ts";
import type { Conversations } from "../conversations/conversations.ts";
import type { ChatRequest, ChatUpstream, StatefulChatRequest, WantedModel } from "./chat_request.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import type { Journal } from "./journal/journal.ts";
import type { LiveReplies } from "../conversations/live_replies.ts";
import { isEmptyFailure, isSameContent, type Message } from "../conversations/message.ts";
import { joined } from "./continuation.ts";
import { Reply } from "./reply.ts";
import type { ReplyPlace, ReplySource } from "./reply_source.ts";
import { conversationsOfReply, findReplyRow, replyEnded } from "../conversations/reply_rows.ts";
import { StoredReply } from "./stored_reply.ts";
import { TemplateForms } from "./call_sender.ts";
import { writeTurn } from "./message_writer.ts";
import { delay } from "../async/delay.ts";
import type { KeyedMutex } from "../async/keyed_mutex.ts";
import type { Replied } from "./titles.ts";
import { speakerOf } from "./prompt_context.ts";
import {
  callFor,
  type ChatPreview,
  impersonationFor,
  previewOf,
  refuseNothing,
  type UpstreamCall,
} from "./call_builder.ts";
import type { VariantStore } from "../conversations/variants.ts";

/** A reply to follow. */
export interface StartedReply {
  reply: ReplySource;
  /** The user's turn this reply answers, where the request named or made one. */
  userMessageId?: string;
  /** What the caller has already: nothing, or the text that this reply continues. */
  from: ReplyPlace;
  /** Resolves once the model has begun to answer or the reply was already there; rejects when it refused before that. */
  begun: Promise<void>;
}

/** What the chat service stands on. */
export interface ChatParts {
  db: Database;
  store: ConversationStore;
  blocks: BlockStore;
  variants: VariantStore;
  conversations: Conversations;
  live: LiveReplies<Reply>;
  locks: KeyedMutex;
  upstream: ChatUpstream;
  prompts: Prompts;
  scenes: Scenes;
  ratios: TokenRatios;
  /** Hear of every reply that is written to its end. */
  listeners: readonly { replied(reply: Replied): void }[];
  pictures: PictureParts;
  journal: Journal;
  events: EventHub;
  log: Log;
  now(): number;
  /** Pause before a reply that could not be saved is saved again. */
  retryMs?: number;
}

const RETRY_MS = 5000;
/** The place of a client that has nothing yet. */
export const START: ReplyPlace = { seq: 0, textLength: 0, reasoningLength: 0 };

/** Starts, finds and ends replies. */
export class ChatService {
  #parts: ChatParts;
  #running = new Set<Promise<void>>();
  #isClosing = false;
  #closing = new AbortController();
  #forms = new TemplateForms();

  constructor(parts: ChatParts) {
    this.#parts = parts;
  }

  /** Passes the model's stream on. The caller's signal ends the upstream call. */
  async stream(
    request: ChatRequest & Partial<StatefulChatRequest>,
    signal: AbortSignal,
  ): Promise<{ model: string; batches: AsyncIterable<ChatEvent[]>; cancel(): void }> {
    const sent = await this.#passing(request, signal);
    const stream = await this.#open(sent, signal);
    return { model: sent.call.model, batches: stream.batches(), cancel: () => stream.cancel() };
  }

  /** Gives the model's whole answer as one OpenAI-shaped object. */
  async complete(
    request: ChatRequest & Partial<StatefulChatRequest>,
    signal: AbortSignal,
  ): Promise<OpenAiCompletion> {
    const sent = await this.#passing(request, signal);
    const completion = await this.#forms.ask(
      sent,
      (call) => this.#parts.upstream.complete(sent.target, call, signal),
    );
    this.#parts.ratios.learn(sent.call.model, sent.call.messages, completion.usage);
    return completion;
  }

  /** Makes a call that nothing is stored of: without a conversation, or in the owner's name in one. */
  async #passing(request: ChatRequest & Partial<StatefulChatRequest>, signal: AbortSignal): Promise<UpstreamCall> {
    const { store, upstream, pictures } = this.#parts;
    const { conversationId } = request;
    const head = conversationId === undefined ? undefined : store.getForWrite(conversationId).head;
    const wanted = { model: request.model, connectionId: head?.connection_id, conversationModel: head?.model };
    const route = await upstream.route(wanted, signal);
    if (conversationId === undefined) {
      const { messages, params } = request;
      return { target: route.target, call: { model: route.model, messages, params } };
    }
    refuseNothing(this.#parts, request as StatefulChatRequest);
    const made = await impersonationFor(this.#parts, request as StatefulChatRequest, route, signal);
    return { ...made, call: { ...made.call, messages: await moveIn(pictures, made.call.messages) } };
  }

  /** Tells what a request would send. @throws {AppError} as `previewOf` does */
  preview(request: ChatRequest & Partial<StatefulChatRequest>, signal: AbortSignal): Promise<ChatPreview> {
    return previewOf(this.#parts, request, signal);
  }

  /**
   * Starts a reply in a conversation, or attaches to the one that the same ids already have.
   *
   * The user's message is stored before the model is looked up or asked, so that no failure of a model server loses it:
   * such a failure becomes the reply's.
   *
   * @throws {AppError} `conflict` when another reply runs there or an id is taken, `in_trash`, `not_available`, `not_found`
   */
  async start(request: StatefulChatRequest): Promise<StartedReply> {
    if (this.#isClosing) throw new AppError("not_available", "The server is shutting down");
    const { store, locks } = this.#parts;
    store.refuseRemoved(request.conversationId);
    const stored = await this.#withStoredPictures(request);
    // In turn: a reply that is just beginning shows in the database a moment before it can be followed.
    return await locks.run(request.conversationId, async () => {
      store.refuseRemoved(request.conversationId);
      this.#refuseOtherText(stored);
      const existing = this.#attach(request);
      if (existing !== undefined) return existing;
      refuseNothing(this.#parts, request);
      return await this.#begin(stored);
    });
  }

  /** Lists the replies that run now. */
  running(): Reply[] {
    return this.#parts.live.all();
  }

  /**
   * Finds the reply that wrote a message, running or done.
   *
   * @param conversationId Where the message is; without it, of several the one that runs or began last.
   * @throws {AppError} `not_found`
   */
  async get(mid: string, conversationId?: string): Promise<ReplySource> {
    const { live, db, locks } = this.#parts;
    for (const id of conversationId === undefined ? conversationsOfReply(db, mid) : [conversationId]) {
      // In turn, as in start(); a reply that runs already needs no waiting.
      const find = () => live.ofMessage(id, mid) ?? this.#stored(id, mid);
      const reply = live.ofMessage(id, mid) ?? await locks.run(id, find);
      if (reply !== undefined) return reply;
    }
    throw new AppError("not_found", `There is no reply "${mid}"`);
  }

  /** Stops a running reply and gives its message; one that is over already stays as it is. @throws {AppError} as `get` does */
  async stop(mid: string, conversationId?: string): Promise<Message> {
    const { conversationId: id } = await this.get(mid, conversationId);
    await this.#parts.live.ofMessage(id, mid)?.stop();
    return this.#parts.conversations.reader.message(id, mid);
  }

  /** Ends every reply, keeps what has come as `interrupted`, and waits until all is saved. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#closing.abort();
    for (const reply of this.#parts.live.all()) reply.abort("interrupted");
    await Promise.all(this.#running);
  }

  /** The last message is the one that is kept; pictures of others are the client's copies of what is stored already. */
  async #withStoredPictures(request: StatefulChatRequest): Promise<StatefulChatRequest> {
    const last = request.messages.at(-1);
    const isStored = request.action === "send" || request.action === "edit";
    if (!isStored || last?.role !== "user") return request;
    const content = await moveOut(this.#parts.pictures, last.content);
    return { ...request, messages: [...request.messages.slice(0, -1), { ...last, content }] };
  }

  /**
   * Refuses a user message under the id of another one, which would otherwise be dropped.
   *
   * @throws {AppError} `conflict`
   */
  #refuseOtherText({ conversationId, userMessageId: mid, action, messages }: StatefulChatRequest): void {
    const last = messages.at(-1);
    if (action !== "send" || mid === undefined || last?.role !== "user") return;
    const { blocks, store } = this.#parts;
    if (!store.exists(conversationId) || blocks.taken(conversationId, [mid]).size === 0) return;
    const stored = this.#parts.conversations.reader.message(conversationId, mid);
    if (stored.role === "user" && isSameContent(stored.content, last.content)) return;
    throw new AppError(
      "conflict",
      `Conversation "${conversationId}" already has a message "${mid}" with other content; send a new user_message_id`,
    );
  }

  #attach(request: StatefulChatRequest): StartedReply | undefined {
    const { assistantMessageId: mid, conversationId, userMessageId } = request;
    if (mid === undefined) return undefined;
    const live = this.#parts.live.ofMessage(conversationId, mid);
    const isSent = request.action === "send" || request.action === "edit";
    const reply = live ?? (isSent ? this.#stored(conversationId, mid, true) : undefined);
    if (reply === undefined) return undefined;
    if (live === undefined && isEmptyFailure(this.#parts.conversations.reader.message(conversationId, mid))) {
      return undefined;
    }
    return { reply, userMessageId, from: START, begun: Promise.resolve() };
  }

  #stored(conversationId: string, mid: string, isSent = false): StoredReply | undefined {
    const { db, store, conversations } = this.#parts;
    const row = findReplyRow(db, conversationId, mid);
    if (row === undefined || store.find(conversationId) === undefined) return undefined;
    const stored = conversations.reader.message(conversationId, mid);
    // Who sends again asks for the answer; who follows, for what the last run wrote.
    const isRun = !isSent && row.previous_variant !== null;
    const message = isRun ? attemptOf(this.#parts.variants, conversationId, stored) : stored;
    return new StoredReply(conversationId, row.generation, row.started_at, message);
  }

  /** Stores the user's turn and the place for the answer, then asks the model. The caller holds the turn. */
  async #begin(request: StatefulChatRequest): Promise<StartedReply> {
    const { conversationId } = request;
    const { live } = this.#parts;
    if (this.#isClosing) throw new AppError("not_available", "The server is shutting down");
    if (live.ofConversation(conversationId) !== undefined) {
      throw new AppError("conflict", `A reply is already being written in conversation "${conversationId}"`);
    }
    const messageId = request.assistantMessageId ?? uuidV7();
    const now = this.#parts.now();
    const generation = randomToken(9);
    const existing = this.#parts.store.find(conversationId);
    const characterId = await this.#speaker(request, existing);
    const head = existing?.head;
    const wanted = { model: request.model, connectionId: head?.connection_id, conversationModel: head?.model };
    // Where neither names one, the connection does, or its server, which may take its time to answer.
    const model = wanted.model ?? wanted.conversationModel;
    const run = { messageId, generation, model, now, characterId };
    const writing = writeTurn(this.#parts, request, run, existing);
    // While the turn is written, so that the model's first word waits for no file.
    const journal = this.#parts.journal.begin({ messageId, generation });
    setImmediate(journal.prepare);
    const { turn, base, previous } = await writing.catch(async (error) => {
      await journal.settle();
      throw error;
    });
    const reply = new Reply({
      ...{ conversationId, messageId, generation, model },
      startedAtMs: now,
      base,
      previous,
      journal,
    });
    live.add(reply);
    this.#parts.events.publish({ kind: "reply_started", id: conversationId });
    const begun = this.#run(reply, request, wanted);
    const from = { seq: 0, textLength: base.text.length, reasoningLength: base.reasoning.length };
    return { reply, userMessageId: turn?.id ?? request.userMessageId, from, begun };
  }

  /** A text that is written anew or continued keeps its character. */
  async #speaker(
    request: StatefulChatRequest,
    conversation: ConversationState | undefined,
  ): Promise<string | undefined> {
    const isNew = request.action === "send" || request.action === "edit";
    if (conversation === undefined || !isNew) return undefined;
    const last = request.messages.at(-1);
    const turn = last?.role === "user" ? last : undefined;
    const before = request.action === "edit" ? request.userMessageId : undefined;
    return await speakerOf(this.#parts, conversation, turn, request.characterId, before);
  }

  /** Runs a reply to its end and settles it. Gives a promise for its begin. */
  #run(reply: Reply, request: StatefulChatRequest, wanted: WantedModel): Promise<void> {
    let markBegun!: () => void;
    let markRefused!: (reason: unknown) => void;
    const begun = new Promise<void>((resolve, reject) => [markBegun, markRefused] = [resolve, reject]);
    begun.catch(() => {}); // A client that has left does not hear of it; the message does.
    const work = async () => {
      let refusal: unknown;
      let sent: UpstreamCall | undefined;
      try {
        const route = await this.#parts.upstream.route(wanted, reply.signal);
        reply.model = route.model;
        const made = await callFor(this.#parts, request, route, reply.messageId, reply.signal);
        sent = { ...made, call: { ...made.call, messages: await moveIn(this.#parts.pictures, made.call.messages) } };
        const stream = await this.#open(sent, reply.signal);
        markBegun();
        await reply.gather(joined(reply.text, made.joint, stream.batches()));
      } catch (error) {
        refusal = error;
        reply.fail(error);
      }
      await this.#settle(reply, sent?.prompt?.loreState);
      if (sent !== undefined) this.#learnFrom(reply, sent);
      if (reply.end?.status === "failed") markRefused(refusal);
      else markBegun();
    };
    const running = work().catch((error) =>
      this.#parts.log("error", "A reply could not be settled", { error: traceOf(error) })
    );
    this.#running.add(running);
    running.finally(() => this.#running.delete(running));
    return begun;
  }

  #open(sent: UpstreamCall, signal: AbortSignal): Promise<ChatStream> {
    return this.#forms.ask(sent, (call) => this.#parts.upstream.open(sent.target, call, signal));
  }

  #learnFrom(reply: Reply, { target, call, prompt }: UpstreamCall): void {
    const { ratios, listeners } = this.#parts;
    ratios.learn(call.model, call.messages, reply.end?.usage);
    if (reply.end?.status !== "complete") return;
    const replied: Replied = { conversationId: reply.conversationId, target, call, prompt, answer: reply.text };
    for (const listener of listeners) listener.replied(replied);
  }

  /** Saves the message as it ended. Until that works the journal stays, and so does the reply, for whoever asks. */
  async #settle(reply: Reply, loreState: ActivationState = {}): Promise<void> {
    const { conversations, variants, live, events, log } = this.#parts;
    const { conversationId, messageId } = reply;
    const kept = Object.keys(loreState).length === 0 ? {} : { lorebook_state: loreState };
    try {
      for (;;) {
        try {
          const now = new Date(this.#parts.now()).toISOString();
          const beside: Statement[] = [replyEnded(conversationId, messageId, this.#parts.now())];
          await conversations.editMessage(conversationId, messageId, (before) => {
            const ended = { ...reply.finalMessage(before), ...kept, updated_at: now };
            const { message, statements } = settleAttempt(variants, conversationId, ended, reply.previousVariant, now);
            beside.push(...statements);
            return message;
          }, { byReply: true, beside: () => beside, written: () => reply.markSaved() });
          break;
        } catch (error) {
          if (error instanceof AppError && error.code === "not_found") break;
          log("error", "Cannot save a finished reply", { error: traceOf(error) });
          reply.tellUnsaved(error, new Date(this.#parts.now()).toISOString());
          if (this.#isClosing) return; // its text lies in the journal
          await delay(this.#parts.retryMs ?? RETRY_MS, this.#closing.signal).catch(() => {});
        }
      }
      await reply.journal.settle();
    } finally {
      live.remove(reply);
      reply.markSettled();
      events.publish({ kind: "reply_ended", id: reply.conversationId });
    }
  }
}
