/**
 * Answers chat requests. In a conversation, the server owns the reply and stores it; otherwise it passes the model's
 * stream on.
 */
import type { ChatEvent, ChatMessage, OpenAiCompletion, Usage } from "../llm/chat_event.ts";
import { estimateUsage, getReplyText } from "../llm/token_count.ts";
import type { KeyedMutex } from "../async/locks.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import type { MessageQueues } from "../conversations/message_queues.ts";
import { createUuidV7, randomToken } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import { type CallBuilder, getRequestedModel, refuseEmpty, type UpstreamCall } from "./call_builder.ts";
import type { CallSender, ReplyRunner } from "./reply_runner.ts";
import { continueText, continueWholeText } from "./continuation.ts";
import type { Journal } from "./journal/journal.ts";
import type { MessageWriter, NewReply } from "./message_writer.ts";
import type { OverflowRecovery } from "./overflow_recovery.ts";
import { Reply } from "./reply.ts";
import { usesOwnTools } from "./call_tools.ts";
import { ToolRun, type ToolRunDeps } from "./tools/tool_run.ts";
import type { WithheldContext } from "../prompts/prompt_context.ts";
import { type Replies, type ReplyCursor, type ReplySource, toGeneration } from "./replies.ts";

/** A chat request after parsing. */
export interface ChatRequest {
  messages: ChatMessage[];
  model?: string;
  /** Selects the connection for this request. */
  connectionId?: string;
  /** Sampling parameters and other fields that pass through to the model. */
  params: Record<string, unknown>;
  /**
   * Who assembles the prompt: the client (the default), the server from the stored conversation, or the server, which
   * adds everything of the character `characterId` to the client's messages.
   */
  context?: "client" | "server" | "character";
  /** The character that speaks: in a group, or with the context `character`. */
  characterId?: string;
  /** What the prompt of a character leaves out, because the client mustn't read it. */
  withheld?: WithheldContext;
  /** Maximum tokens of prompt and reply, after a server refused more. */
  contextLimit?: number;
  /** `api` for a program's request. */
  use?: "reply" | "api";
}

/** Earlier messages of a new conversation, before the one that the request adds. */
export interface ConversationStart {
  participants: { character_id: string }[];
  messages: ChatMessage[];
}

/** A chat request that belongs to a conversation. */
export interface StatefulChatRequest extends ChatRequest {
  conversationId: string;
  userMessageId?: string;
  assistantMessageId?: string;
  /** Repetitions of a request with the same key return its reply, so that a reply isn't regenerated or continued twice. */
  idempotencyKey?: string;
  /**
   * `edit` adds a version to an earlier user message and answers it. `impersonate` writes a message in the user's name and
   * stores nothing.
   */
  action: "send" | "edit" | "regenerate" | "continue" | "impersonate";
  /**
   * Whether the request offers Parlor's tools. Has no effect if the request has its own tools or the conversation turns
   * them off.
   */
  usesTools?: boolean;
  /** In a group: the characters that speak after this reply if it's complete, in order. Until then, queued messages wait. */
  nextSpeakers?: string[];
  /** Whether the server lets them speak. Otherwise, the client asks for their replies. */
  runsRound?: boolean;
  /** Ignored if the conversation exists. */
  opening?: ConversationStart;
  /** IANA name of the client's time zone. */
  timeZone?: string;
}

/** A chat request with or without a conversation. */
export type AnyChatRequest = ChatRequest & Partial<StatefulChatRequest>;

/** A reply to follow. */
export interface StartedReply {
  reply: ReplySource;
  /** The user message that the reply answers, if the request contains or names one. */
  userMessageId?: string;
  /** The client's position: at the start, or after the text that the reply continues. */
  from: ReplyCursor;
  /**
   * Resolves when the model starts to answer, or at once if the reply already existed. Rejects if the model refuses.
   */
  started: Promise<void>;
}

/** The position of a client that has nothing yet. */
export const START: ReplyCursor = { seq: 0, textLength: 0, reasoningLength: 0 };

/** A reply that isn't stored. */
export interface StatelessStream {
  /** The model at its server. */
  model: string;
  batches: AsyncIterable<ChatEvent[]>;
  cancel(): void;
  /** Estimates the token counts, for servers that send none. */
  estimateUsage(reply: string): Usage;
}

/** Answers requests that store nothing. */
export class StatelessChat {
  readonly #calls: CallBuilder;
  readonly #sender: CallSender;
  readonly #overflow: OverflowRecovery;

  constructor({ calls, sender, overflow }: { calls: CallBuilder; sender: CallSender; overflow: OverflowRecovery }) {
    this.#calls = calls;
    this.#sender = sender;
    this.#overflow = overflow;
  }

  /** Returns the model's stream. `signal` ends the upstream call. */
  async stream(
    request: AnyChatRequest,
    signal: AbortSignal,
  ): Promise<StatelessStream> {
    const { sent, answer: stream } = await this.#send(request, signal, (call) => this.#sender.open(call, signal));
    return {
      model: sent.call.model,
      batches: continueText(sent, "", stream.batches()),
      cancel: () => stream.cancel(),
      estimateUsage: (reply) => estimateUsage(sent.call, reply),
    };
  }

  /** Returns the model's whole reply as one object in OpenAI's format. It always has a usage. */
  async complete(request: AnyChatRequest, signal: AbortSignal): Promise<OpenAiCompletion> {
    const { sent, answer: completion } = await this.#send(
      request,
      signal,
      (call) => this.#sender.complete(call, signal),
    );
    const choices = completion.choices.map((choice) => {
      const { content } = choice.message;
      if (!content) return choice;
      return { ...choice, message: { ...choice.message, content: continueWholeText(sent, content) } };
    });
    return { ...completion, choices, usage: completion.usage ?? estimateUsage(sent.call, getReplyText(completion)) };
  }

  /** Sends a request, and once more with a shorter prompt if the server refuses it as too long. */
  async #send<T>(
    request: AnyChatRequest,
    signal: AbortSignal,
    send: (sent: UpstreamCall) => Promise<T>,
  ): Promise<{ sent: UpstreamCall; answer: T }> {
    const { use = "reply", conversationId } = request;
    const build = async (contextLimit = request.contextLimit): Promise<UpstreamCall> => {
      const built = await this.#calls.buildUnstored({ ...request, contextLimit }, signal);
      return { ...built, call: { ...built.call, origin: { kind: use, conversationId } } };
    };
    const sent = await build();
    try {
      return { sent, answer: await send(sent) };
    } catch (error) {
      const shorter = await this.#overflow.shorten(sent, error, build);
      if (shorter === undefined) throw error;
      return { sent: shorter.sent, answer: await send(shorter.sent) };
    }
  }
}

/** Dependencies of a ChatService. */
interface ChatServiceDeps {
  store: ConversationStore;
  locks: KeyedMutex;
  journal: Journal;
  writer: MessageWriter;
  calls: CallBuilder;
  runner: ReplyRunner;
  replies: Replies;
  queues: Pick<MessageQueues, "planRemoval">;
  /** Dependencies for running tools in replies. */
  tools: ToolRunDeps;
  now(): number;
}

/** Starts replies in conversations. */
export class ChatService {
  readonly #deps: ChatServiceDeps;
  #isClosing = false;

  constructor(deps: ChatServiceDeps) {
    this.#deps = deps;
  }

  /**
   * Starts a reply in a conversation, or returns the one that a request with the same ids started.
   *
   * The user message is stored before the model is chosen or asked, so that it isn't lost if the model server fails.
   * Such a failure ends the reply.
   *
   * @throws {AppError} `conflict` if another reply is running there or an ID is taken, `in_trash`, `not_available`,
   *   `not_found`
   */
  async start(request: StatefulChatRequest): Promise<StartedReply> {
    const { store, locks, writer, replies } = this.#deps;
    const { conversationId } = request;
    this.#refuseClosing();
    store.refuseRemoved(conversationId);
    const stored = await writer.storeImages(request);
    // Holds the lock, because a reply that is about to start is in the database before it's in the list of live
    // replies.
    return await locks.run(conversationId, async () => {
      store.refuseRemoved(conversationId);
      writer.refuseOtherContent(stored);
      const reply = replies.findStarted(request);
      if (reply !== undefined) {
        return { reply, userMessageId: request.userMessageId, from: START, started: Promise.resolve() };
      }
      refuseEmpty(store, request);
      return await this.startNew(stored);
    });
  }

  /** Ends all replies and waits until their text is saved; see `ReplyRunner.close`. */
  async close(): Promise<ReadonlySet<string>> {
    this.#isClosing = true;
    return await this.#deps.runner.close();
  }

  /**
   * Stores the user message and the empty reply, then asks the model. A message that was queued no longer is. The caller
   * holds the conversation's lock.
   *
   * @param request With stored images.
   * @throws {AppError} like `start`
   */
  async startNew(request: StatefulChatRequest): Promise<StartedReply> {
    const { store, journal, writer, calls, runner, replies, queues } = this.#deps;
    const { conversationId } = request;
    this.#refuseClosing();
    if (replies.isRunningIn(conversationId)) {
      throw new AppError(
        "conflict",
        `Conversation "${conversationId}" already has a running reply. Wait for it or stop it`,
      );
    }
    const messageId = request.assistantMessageId ?? createUuidV7();
    const { idempotencyKey: key } = request;
    const generation = key === undefined ? randomToken(9) : toGeneration(key, messageId);
    const startedAtMs = this.#deps.now();
    const existing = store.find(conversationId);
    const characterId = await calls.chooseSpeaker(request, existing);
    const requested = getRequestedModel(request, existing?.head);
    // If neither selects a model, the connection does, or else its server, which may take time to answer.
    const model = requested.model ?? requested.conversationModel;
    const queued = request.action === "send" && request.userMessageId !== undefined
      ? queues.planRemoval(conversationId, request.userMessageId)
      : undefined;
    const newReply = {
      messageId,
      generation,
      model,
      now: startedAtMs,
      characterId,
      also: queued?.statements,
    } satisfies NewReply;
    const writing = writer.write(request, newReply, existing);
    // Opened while the messages are written, so that the first token doesn't wait for the file.
    const replyJournal = journal.begin({ messageId, generation });
    setImmediate(replyJournal.prepare);
    const { userMessage, base, previous } = await writing.catch(async (error) => {
      await replyJournal.settle();
      throw error;
    });
    queued?.publish();
    const reply = new Reply({
      conversationId,
      messageId,
      generation,
      model,
      startedAtMs,
      base,
      previous,
      rounds: request.action === "continue" ? previous?.tool_rounds : undefined,
      journal: replyJournal,
    });
    if (usesOwnTools(request)) reply.tools = new ToolRun(this.#deps.tools, reply, request);
    const from = reply.position;
    const started = runner.start(reply, request, requested);
    return { reply, userMessageId: userMessage?.id ?? request.userMessageId, from, started };
  }

  #refuseClosing(): void {
    if (this.#isClosing) throw new AppError("not_available", "The server is shutting down");
  }
}
