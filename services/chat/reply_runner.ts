/** Runs replies: calls the model, collects its reply and saves the message. */
import { type ImagePartsDeps, listAttachmentNames, storeInlineImages, storeSound } from "../attachments/image_parts.ts";
import type { LiveReplies } from "../conversations/live_replies.ts";
import { getContentText } from "../conversations/message.ts";
import { randomToken } from "../crypto/random.ts";
import { AppError, getErrorMessage, getErrorTrace } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { CallOrigin, ChatCall, ChatEvent, ChatMessage, OpenAiCompletion, Usage } from "../llm/chat_event.ts";
import type { ModelRoute, ModelRouter, RequestedModel } from "../llm/model_router.ts";
import { answerWithReasoning } from "../llm/reasoning.ts";
import { learnPrefillRefusal } from "../llm/refused_fields.ts";
import { keepsStreams, namesStreams } from "../llm/provider.ts";
import type { ChatStream, ListenToNotices, UpstreamClient, UpstreamTarget } from "../llm/upstream_client.ts";
import type { Log } from "../log.ts";
import type { ToolOffer } from "../tools/tool_registry.ts";
import type { Prompt } from "../prompts/prompt.ts";
import type { CallBuilder, UpstreamCall } from "./call_builder.ts";
import type { StatefulChatRequest } from "./chat_service.ts";
import { continueText } from "./continuation.ts";
import { reopenStream, type Repeats, skipWritten, StreamLostError, toKeptRequest } from "./going_on.ts";
import type { KeptStream, ReplyPlan } from "./journal/journal.ts";
import type { OverflowRecovery, ShorterCall } from "./overflow_recovery.ts";
import type { MediaStore, Reply } from "./reply.ts";
import type { ReplySaver } from "./reply_saver.ts";
import type { ToolFallback } from "./call_tools.ts";
import { UpstreamError } from "../http/upstream_error.ts";
import { isTemplateRefusal, type RoleStrictness, toAlternatingRoles } from "../prompts/prompt_messages.ts";
import type { TokenRatios } from "../prompts/token_counter.ts";

/** A completed reply. */
export interface CompletedReply {
  conversationId: string;
  target: UpstreamTarget;
  /** The call as it was sent. */
  call: ChatCall;
  /** How the server assembled the call, if it did. */
  prompt?: Prompt;
  /** Text of the reply. */
  answer: string;
}

/** Stored pictures of a reply. */
export interface ReplyPictures {
  conversationId: string;
  messageId: string;
  model?: string;
  connectionId?: string;
  /** The user's message. */
  prompt: string;
  /** Names of the attachments. */
  names: string[];
}

/** Time limit for asking a model server to forget a reply. */
const RELEASE_MS = 5000;

/** Dependencies of a ReplyRunner. */
interface ReplyRunnerDeps {
  live: LiveReplies<Reply>;
  events: EventHub;
  log: Log;
  modelRouter: ModelRouter;
  calls: CallBuilder;
  sender: CallSender;
  saver: ReplySaver;
  fallback: ToolFallback;
  overflow: OverflowRecovery;
  images: ImagePartsDeps;
  /** Lists pictures in the gallery. */
  addToGallery(pictures: ReplyPictures): Promise<void>;
  /** Decides how replies go on whose model server doesn't have them anymore. */
  repeats: Pick<Repeats, "isAllowed" | "repeat">;
  /** Called for each reply whose end is saved, after its end was published. */
  onEnd(reply: Reply, request: StatefulChatRequest): void;
  /** Called for each completed reply. */
  listeners: readonly { replyCompleted(reply: CompletedReply): void }[];
}

/** A call that was answered. */
interface Round {
  sent: UpstreamCall;
  /** The tools that the model could call; `undefined` if there were none. */
  offer: ToolOffer | undefined;
  /** Whether the model calls tools. */
  hasCalls: boolean;
}

/** The tools for a call. */
interface Offered {
  listed: ToolOffer | undefined;
  /** The model doesn't support tools. */
  isRefused: boolean;
}

/** Runs replies. */
export class ReplyRunner {
  readonly #deps: ReplyRunnerDeps;
  readonly #running = new Set<Promise<void>>();

  constructor(deps: ReplyRunnerDeps) {
    this.#deps = deps;
  }

  /** Stores the pictures and sounds of a reply. */
  #openMedia({ conversationId, messageId, model, connectionId }: Reply, { call }: UpstreamCall): MediaStore {
    const { images, log, addToGallery } = this.#deps;
    const report = (error: unknown) =>
      log("error", "Couldn't store a picture or sound of a reply", { error: getErrorTrace(error) });
    const prompt = () => getContentText(call.messages.findLast(({ role }) => role === "user")?.content);
    return {
      async storeImages(parts) {
        try {
          const stored = await storeInlineImages(images, parts);
          const names = listAttachmentNames(stored);
          const pictures = {
            conversationId,
            messageId,
            model,
            connectionId,
            prompt: prompt(),
            names,
          } satisfies ReplyPictures;
          if (names.length > 0) await addToGallery(pictures).catch(report);
          return stored;
        } catch (error) {
          report(error);
          return [];
        }
      },
      storeSound: (bytes) =>
        storeSound(images, bytes).catch((error) => {
          report(error);
          return undefined;
        }),
    };
  }

  /**
   * Runs a reply to its end and saves it.
   *
   * @param kept Where the model server keeps a reply that goes on after a restart; `"lost"` if it doesn't.
   * @returns A promise that resolves when the model starts to answer, and rejects if it refuses before that.
   */
  start(
    reply: Reply,
    request: StatefulChatRequest,
    requestedModel: RequestedModel,
    kept?: KeptStream | "lost",
  ): Promise<void> {
    const { live, events, log } = this.#deps;
    live.add(reply);
    events.publish({ kind: "reply_started", id: reply.conversationId });
    const started = Promise.withResolvers<void>();
    started.promise.catch(() => {}); // A disconnected client doesn't see the error. The message has it.
    const running = this.#run(reply, request, requestedModel, started, kept).catch((error) =>
      log("error", "Couldn't finish a reply", { error: getErrorTrace(error) })
    );
    this.#running.add(running);
    running.finally(() => this.#running.delete(running));
    return started.promise;
  }

  /**
   * Suspends the replies that can go on at the next start. Interrupts the others and waits until they are saved.
   *
   * @returns The connections whose servers go on with replies.
   */
  async close(): Promise<ReadonlySet<string>> {
    this.#deps.saver.stopRetrying();
    const goingOn = new Set<string>();
    for (const reply of this.#deps.live.all()) {
      if (reply.canGoOn && reply.plan.stream != null) goingOn.add(reply.plan.stream.connectionId);
      if (reply.tools?.isWaiting || reply.canGoOn) reply.suspend();
      else reply.abort("interrupted");
    }
    await Promise.all(this.#running);
    return goingOn;
  }

  async #run(
    reply: Reply,
    request: StatefulChatRequest,
    requestedModel: RequestedModel,
    started: PromiseWithResolvers<void>,
    kept: KeptStream | "lost" | undefined,
  ): Promise<void> {
    const { saver, live, events, repeats } = this.#deps;
    let refusal: unknown;
    let sent: UpstreamCall | undefined;
    try {
      sent = await this.#write(reply, request, requestedModel, started, kept);
    } catch (error) {
      refusal = error;
      if (error instanceof StreamLostError) {
        if (await repeats.repeat(reply, request)) return started.resolve();
        reply.abort("interrupted");
      }
      reply.fail(error);
    }
    if (reply.isSuspended) {
      live.remove(reply);
      return started.resolve();
    }
    const isComplete = reply.end?.status === "complete";
    if (!isComplete) {
      this.#release(reply.plan.stream);
      // A restart before the message is saved must not ask for a reply that has ended.
      await reply.savePlan({ stream: null, isRepeated: true }).catch(() => {});
    }
    try {
      await reply.tools?.abandon();
      await saver.save(reply, sent?.prompt);
      if (isComplete) this.#release(reply.plan.stream);
    } finally {
      live.remove(reply);
      reply.markSettled();
      events.publish({ kind: "reply_ended", id: reply.conversationId });
    }
    this.#deps.onEnd(reply, request);
    if (sent !== undefined) this.#report(reply, sent);
    if (reply.end?.status === "failed") started.reject(refusal);
    else started.resolve();
  }

  /** Calls the model and runs its tool calls until it has answered. Returns the last call. */
  async #write(
    reply: Reply,
    request: StatefulChatRequest,
    requestedModel: RequestedModel,
    started: PromiseWithResolvers<void>,
    kept: KeptStream | "lost" | undefined,
  ): Promise<UpstreamCall | undefined> {
    const { tools } = reply;
    if (tools !== undefined && reply.rounds.length > 0 && tools.isResumed) {
      started.resolve();
      await tools.settleCalls();
    }
    for (;;) {
      if (reply.signal.aborted) {
        reply.fail(reply.signal.reason);
        return undefined;
      }
      const stream = kept;
      kept = undefined;
      const ask = () =>
        stream === undefined
          ? this.#ask(reply, request, requestedModel, started)
          : this.#reattach(reply, request, stream, started);
      const { sent, offer, hasCalls } = await (tools === undefined ? ask() : tools.measure(ask));
      if (!hasCalls || tools === undefined || offer === undefined) return sent;
      if (tools.isOver) throw new AppError("upstream_error", tools.overReason);
      const { stream: ended } = reply.plan;
      await tools.storeRound(offer, sent);
      this.#release(ended);
      await tools.settleCalls();
    }
  }

  /** Calls the model once. */
  async #ask(
    reply: Reply,
    request: StatefulChatRequest,
    requestedModel: RequestedModel,
    started: PromiseWithResolvers<void>,
  ): Promise<Round> {
    const { modelRouter, sender, fallback, overflow, repeats } = this.#deps;
    const { tools, signal } = reply;
    await reply.savePlan({
      stream: null,
      ...(reply.plan.request === undefined && { request: toKeptRequest(request) }),
    });
    const route = await modelRouter.route(requestedModel, signal);
    reply.model = route.model;
    reply.connectionId = route.connection.id;
    const streamId = keepsStreams(route.target) ? randomToken(18) : undefined;
    if (streamId !== undefined && !namesStreams(route.target)) {
      await reply.savePlan({ stream: { id: streamId, connectionId: route.connection.id, model: route.model } });
    } else if (!await repeats.isAllowed(route.target)) await reply.savePlan({ isRepeated: true });
    const listed = await tools?.listOffer();
    let refusal = fallback.find(route);
    const build = async (contextLimit?: number): Promise<UpstreamCall> => {
      const offered = { listed, isRefused: refusal !== undefined };
      const built = await this.#build(reply, { ...request, contextLimit }, route, offered);
      return { ...built, call: { ...built.call, origin: toOrigin(reply, request), streamId } };
    };
    const open = (call: UpstreamCall) =>
      sender.open(call, signal, (notice) => {
        reply.notify(notice);
        started.resolve(); // Lets clients see the notice while they wait.
      });
    let sent = await build();
    let shorter: ShorterCall | undefined;
    const openShorter = async (error: unknown) => {
      shorter = shorter === undefined ? await overflow.shorten(sent, error, build) : undefined;
      if (shorter === undefined) throw error;
      reply.notify(shorter.notice);
      return await open(sent = shorter.sent);
    };
    const stream = await open(sent).catch(async (error) => {
      const { target, call, prompt } = sent;
      const hasLearned = prompt !== undefined && learnPrefillRefusal(target, call.model, call.messages, error);
      refusal = hasLearned ? refusal : fallback.learn(route, sent.call, error, request);
      if (!hasLearned && refusal === undefined) return await openShorter(error);
      return await open(sent = await build()).catch(openShorter);
    });
    const leftOut = [
      ...shorter === undefined ? [] : [shorter.leftOut],
      ...stream.sent?.leftOut ?? [],
      ...(refusal === undefined || listed === undefined ? [] : [refusal]),
      ...(refusal !== undefined ? [] : listed?.leftOut ?? []).map(({ name, reason }) => ({
        field: `tools: ${name}`,
        status: 0,
        reason,
      })),
    ];
    reply.sent = leftOut.length > 0 ? { ...stream.sent, leftOut } : stream.sent;
    if (streamId !== undefined && reply.sent !== undefined) await reply.savePlan({ sent: reply.sent });
    started.resolve();
    // Some servers refuse a prompt after they have accepted the call.
    const batches = continueText(
      sent,
      reply.text,
      withSecondTry(stream, async (error) => {
        const second = await openShorter(error);
        reply.sent = { ...second.sent, leftOut: [shorter!.leftOut, ...leftOut] };
        return second;
      }),
    );
    const offer = toOffer({ listed, isRefused: refusal !== undefined });
    const media = this.#openMedia(reply, sent);
    const hasCalls = await reply.collect(batches, {
      media,
      runsTools: offer !== undefined,
      notesPosition: offer === undefined && isWhole(sent, reply.text),
    });
    return { sent, offer, hasCalls };
  }

  /** Builds the call of a reply's current round. */
  #build(reply: Reply, request: StatefulChatRequest, route: ModelRoute, { listed, isRefused }: Offered) {
    const { tools, messageId, signal } = reply;
    return this.#deps.calls.buildForReply(request, messageId, route, signal, {
      definitions: isRefused ? undefined : listed?.definitions,
      isLastRound: tools?.isOver === true,
      isWithoutTools: isRefused,
      rounds: tools?.ownRounds ?? [],
    });
  }

  /**
   * Goes on reading a reply that the model server has kept, after a restart.
   *
   * @throws {StreamLostError} if the server doesn't have it anymore, or can't be reached.
   */
  async #reattach(
    reply: Reply,
    request: StatefulChatRequest,
    kept: KeptStream | "lost",
    started: PromiseWithResolvers<void>,
  ): Promise<Round> {
    const { modelRouter, fallback } = this.#deps;
    const { tools, signal, written } = reply;
    started.resolve();
    reply.notify({ code: "reattaching", message: "Parlor was restarted. Looking for the reply at the model server" });
    if (kept === "lost") throw new StreamLostError();
    reply.model = kept.model;
    reply.connectionId = kept.connectionId;
    reply.sent = reply.plan.sent;
    const { route, stream } = await reopenStream(modelRouter, kept, toOrigin(reply, request), signal);
    reply.notify(undefined);
    const offered: Offered = { listed: await tools?.listOffer(), isRefused: fallback.find(route) !== undefined };
    // The same call as before the restart: what the server repeats of it is left out.
    const sent = await this.#build(reply, request, route, offered);
    const offer = toOffer(offered);
    const base = reply.text.slice(0, reply.text.length - written.text.length);
    const batches = kept.after === undefined
      ? skipWritten(written, continueText(sent, base, stream.batches()))
      : stream.batches();
    const hasCalls = await reply.collect(batches, {
      media: this.#openMedia(reply, sent),
      runsTools: offer !== undefined,
      notesPosition: kept.after !== undefined,
    });
    return { sent, offer, hasCalls };
  }

  /** Makes the model server stop writing a reply, and forget it. */
  #release(stream: ReplyPlan["stream"]): void {
    const { modelRouter, log } = this.#deps;
    const target = stream == null ? undefined : modelRouter.findTarget(stream.connectionId);
    if (target === undefined) return;
    const signal = AbortSignal.timeout(RELEASE_MS);
    const work = modelRouter.client.releaseChatStream(target, stream!.id, signal).catch((error) =>
      log("debug", "Can't release a reply at its model server", { error: getErrorMessage(error) })
    );
    this.#running.add(work);
    work.finally(() => this.#running.delete(work));
  }

  #report(reply: Reply, { target, call, prompt }: UpstreamCall): void {
    const { sender, listeners } = this.#deps;
    sender.learnUsage(call, reply.end?.usage);
    if (reply.end?.status !== "complete") return;
    const { conversationId, text: answer } = reply;
    for (const listener of listeners) listener.replyCompleted({ conversationId, target, call, prompt, answer });
  }
}

/** Returns what a call for a reply is for. */
function toOrigin({ conversationId, tools }: Reply, { use = "reply" }: StatefulChatRequest): CallOrigin {
  return { kind: use, conversationId, isFurtherRound: (tools?.ownRounds.length ?? 0) > 0 };
}

/** Returns the tools that the model can call, if there are any. */
function toOffer({ listed, isRefused }: Offered): ToolOffer | undefined {
  return !isRefused && (listed?.tools.length ?? 0) > 0 ? listed : undefined;
}

/** Whether the events of a call are the reply, without a start that was sent or stored. */
function isWhole({ call: { messages }, prefill }: UpstreamCall, before: string): boolean {
  return before === "" && prefill === undefined && messages.at(-1)?.role !== "assistant";
}

/** Yields the events of a stream. If it fails before the first one, those of another stream. */
async function* withSecondTry(
  stream: ChatStream,
  openSecond: (error: unknown) => Promise<ChatStream>,
): AsyncIterable<ChatEvent[]> {
  let hasBegun = false;
  try {
    for await (const events of stream.batches()) {
      hasBegun ||= events.some(({ type }) => type !== "progress" && type !== "kept");
      yield events;
    }
  } catch (error) {
    if (hasBegun) throw error;
    yield* (await openSecond(error)).batches();
  }
}

/** Maximum number of models whose requirements are remembered. */
const MAX_MODELS = 200;

function hasTools({ role, tool_calls }: ChatMessage): boolean {
  return role === "tool" || tool_calls !== undefined;
}

/** Sends calls to models in the form that each chat template accepts, and learns the form from refusals. */
export class CallSender {
  readonly #client: UpstreamClient;
  readonly #ratios: TokenRatios;
  readonly #strictness = new Map<string, RoleStrictness>();

  constructor({ client, ratios }: { client: UpstreamClient; ratios: TokenRatios }) {
    this.#client = client;
    this.#ratios = ratios;
  }

  /** Opens a stream. @throws {AppError} `upstream_error` and others, see `Provider`. */
  open(sent: UpstreamCall, signal: AbortSignal, onNotice?: ListenToNotices): Promise<ChatStream> {
    return this.#send(sent, (call) => this.#client.openChatStream(sent.target, call, signal, onNotice));
  }

  /**
   * Returns the whole reply as one object in OpenAI's format.
   *
   * @throws {AppError} `upstream_error` and others, see `Provider`.
   */
  async complete(sent: UpstreamCall, signal: AbortSignal): Promise<OpenAiCompletion> {
    const completion = await this.#send(sent, (call) => this.#client.completeChat(sent.target, call, signal));
    this.learnUsage(sent.call, completion.usage);
    return answerWithReasoning(completion);
  }

  /** Improves token estimates with the count that the server reported for a call. */
  learnUsage({ model, messages, params }: ChatCall, usage: Usage | undefined): void {
    // Tool definitions count, too, but aren't part of the messages.
    if (params.tools !== undefined) return;
    this.#ratios.learn(model, messages, usage);
  }

  /**
   * Sends a call. Messages that the client assembled are sent unchanged. If a chat template rejects the order of
   * messages that the server assembled, they're sent again in a stricter form, and `sent.call` is updated.
   */
  async #send<T>(sent: UpstreamCall, send: (call: ChatCall) => Promise<T>): Promise<T> {
    const { target, call, prompt } = sent;
    // Changed roles would separate tool calls from their results.
    if (prompt === undefined || call.messages.some(hasTools)) return await send(call);
    const key = `${target.baseUrl}\n${call.model}`;
    const first = target.dialect?.hasSystemMessages === false ? 2 : 0;
    for (let strictness = this.#strictness.get(key) ?? first;; strictness++) {
      const messages = toAlternatingRoles(call.messages, strictness as RoleStrictness);
      sent.call = { ...call, messages, ...(strictness > 0 && { stableMessages: undefined }) };
      try {
        const answer = await send(sent.call);
        if (strictness > 0) this.#remember(key, strictness as RoleStrictness);
        return answer;
      } catch (error) {
        const isRefusal = error instanceof UpstreamError && isTemplateRefusal(error.message);
        if (!isRefusal || strictness === 2) throw error;
      }
    }
  }

  #remember(key: string, strictness: RoleStrictness): void {
    if (this.#strictness.size >= MAX_MODELS) this.#strictness.clear();
    this.#strictness.set(key, strictness);
  }
}
