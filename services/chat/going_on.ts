/**
 * Replies that go on after a restart: read further at a model server that has kept them, or else continued after their text,
 * or asked anew if they had none.
 */
import { delay } from "../async/delay.ts";
import type { KeyedMutex } from "../async/locks.ts";
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import type { ConversationWriter } from "../conversations/conversation_writer.ts";
import { findUnendedReplies, type LiveReplies, renewGeneration, type ReplyRow } from "../conversations/live_replies.ts";
import { getContentText } from "../conversations/message.ts";
import { randomToken } from "../crypto/random.ts";
import { getErrorMessage, getErrorTrace } from "../errors.ts";
import { isPrivateUrl } from "../http/base_url.ts";
import { UpstreamError, type UpstreamErrorKind } from "../http/upstream_error.ts";
import type { CallOrigin, ChatEvent } from "../llm/chat_event.ts";
import type { ModelRoute, ModelRouter, RequestedModel } from "../llm/model_router.ts";
import { type ChatStream, getTargetDialect, type UpstreamTarget } from "../llm/provider.ts";
import { refusesPrefill } from "../llm/refused_fields.ts";
import type { Database } from "../storage/database/database.ts";
import { getRequestedModel } from "./call_builder.ts";
import { usesOwnTools } from "./call_tools.ts";
import type { StatefulChatRequest } from "./chat_service.ts";
import type { Journal, JournalBatch, KeptStream, ReplyPlan } from "./journal/journal.ts";
import type { UnfinishedReplies, UnfinishedReply } from "./journal/recovery.ts";
import { findMedia, Reply, withMedia } from "./reply.ts";
import type { ReplyRunner } from "./reply_runner.ts";
import { toRoundGeneration } from "./tools/tool_messages.ts";
import { ToolRun, type ToolRunDeps } from "./tools/tool_run.ts";

/** The model server doesn't have a reply anymore, or can't be reached. */
export class StreamLostError extends Error {
  override name = "StreamLostError";
}

/** How long a model server that is being started is waited for: a home server starts its programs in any order. */
const STARTING_TRIES = 60;
const TRY_EVERY_MS = 1000;
/** Errors of a server that isn't running yet, or loads its model. */
const STARTING_ERRORS: readonly UpstreamErrorKind[] = ["refused", "unresolved", "unreachable", "starting"];
/** Requests whose messages are longer aren't kept with each reply: a client that sends whole chats has them itself. */
const MAX_REQUEST_CHARS = 1_000_000;

/** A kept stream that is open again. */
export interface ReopenedStream {
  route: ModelRoute;
  stream: ChatStream;
}

/**
 * Opens a stream that a model server has kept. Waits for a server that is being started.
 *
 * @throws {StreamLostError}
 * @throws The reason of `signal`.
 */
export async function reopenStream(
  modelRouter: ModelRouter,
  { id, connectionId, model, after }: KeptStream,
  origin: CallOrigin,
  signal: AbortSignal,
): Promise<ReopenedStream> {
  try {
    const { route, stream } = await waitForServer(signal, async () => {
      const route = await modelRouter.route({ model, requestConnectionId: connectionId }, signal);
      return {
        route,
        stream: await modelRouter.client.reopenChatStream(route.target, { model, origin, streamId: id, after }, signal),
      };
    });
    if (stream !== undefined) return { route, stream };
  } catch (error) {
    signal.throwIfAborted();
    throw new StreamLostError(getErrorMessage(error), { cause: error });
  }
  throw new StreamLostError("The model server doesn't have the reply anymore");
}

/** Makes a call, again and again while its server is being started. @throws What the last call threw. */
async function waitForServer<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
  for (let tries = 1;; tries++) {
    try {
      return await call();
    } catch (error) {
      const isStarting = error instanceof UpstreamError && STARTING_ERRORS.includes(error.kind);
      if (!isStarting || tries === STARTING_TRIES) throw error;
    }
    await delay(TRY_EVERY_MS, signal);
  }
}

/** Leaves out the start of a reply that was read before. */
export async function* skipWritten(
  { text, reasoning, media = [] }: JournalBatch,
  batches: AsyncIterable<ChatEvent[]>,
): AsyncIterable<ChatEvent[]> {
  const left = {
    text: text.length,
    reasoning: reasoning.length,
    images: media.filter(({ type }) => type === "image_url").length,
  };
  const hasSound = media.some(({ type }) => type === "audio");
  for await (const events of batches) {
    yield events.flatMap((event): ChatEvent[] => {
      if (event.type === "text" || event.type === "reasoning") {
        const rest = event.text.slice(left[event.type]);
        left[event.type] = Math.max(0, left[event.type] - event.text.length);
        return rest === "" ? [] : [{ ...event, text: rest }];
      }
      if (event.type === "images") {
        const urls = event.urls.slice(left.images);
        left.images = Math.max(0, left.images - event.urls.length);
        return urls.length === 0 ? [] : [{ ...event, urls }];
      }
      return event.type === "audio" && hasSound ? [] : [event];
    });
  }
}

/** Returns a request as it's kept for a restart; `undefined` if it's too long. */
export function toKeptRequest(request: StatefulChatRequest): StatefulChatRequest | undefined {
  const chars = request.messages.reduce((sum, { content }) => sum + getContentText(content).length, 0);
  return chars > MAX_REQUEST_CHARS ? undefined : request;
}

/** Dependencies of `Repeats` and `resumeUnfinishedReplies`. */
export interface GoingOnDeps {
  store: ConversationStore;
  blocks: BlockStore;
  conversationWriter: ConversationWriter;
  live: LiveReplies<Reply>;
  locks: KeyedMutex;
  journal: Journal;
  modelRouter: ModelRouter;
  tools: ToolRunDeps;
  getRunner(): ReplyRunner;
  /** Where a reply may be asked for once more. */
  getSetting(): "private" | "always" | "never";
}

/** Repeats the calls of replies that no model server has kept. */
export class Repeats {
  readonly #deps: GoingOnDeps;

  constructor(deps: GoingOnDeps) {
    this.#deps = deps;
  }

  /** Whether a server may be asked once more by itself: the owner allows it, and the server is known to continue a text. */
  async isAllowed(target: UpstreamTarget): Promise<boolean> {
    const setting = this.#deps.getSetting();
    const dialect = getTargetDialect(target);
    if (setting === "never" || target.kind === "demo" || dialect.name === "generic" || !dialect.continues) return false;
    return setting === "always" || await isPrivateUrl(target.baseUrl);
  }

  /**
   * Continues a reply after its text with a new call, or asks anew if it has none. It becomes another run, to which its
   * clients connect again.
   *
   * @returns False if it can't be repeated, or must not be.
   */
  async repeat(reply: Reply, request: StatefulChatRequest): Promise<boolean> {
    const { store, conversationWriter, live, modelRouter, tools, getRunner } = this.#deps;
    const { conversationId, messageId, plan, written } = reply;
    const requested: RequestedModel = plan.stream == null
      ? getRequestedModel(request, store.find(conversationId)?.head)
      : { model: plan.stream.model, requestConnectionId: plan.stream.connectionId };
    if (reply.signal.aborted || plan.isRepeated === true) return false;
    try {
      const { target, model } = await modelRouter.route(requested, reply.signal);
      if (!await this.isAllowed(target)) return false;
      // A server without a list of models answers chat requests nevertheless.
      await waitForServer(reply.signal, () => modelRouter.client.listModels(target, reply.signal)).catch((error) => {
        if (error instanceof UpstreamError && STARTING_ERRORS.includes(error.kind)) throw error;
      });
      const isEmpty = written.text === "" && written.media!.length === 0;
      // A text that follows tool calls can't be sent as the start of a reply.
      if (!isEmpty && (reply.rounds.length > 0 || refusesPrefill(target, model))) return false;
      const text = reply.text;
      const generation = randomToken(9);
      let isRepeated = false;
      await conversationWriter.editMessage(conversationId, messageId, (before) => {
        if (isEmpty || reply.signal.aborted) return before;
        const media = [...findMedia(before.content), ...written.media!];
        const reasoning = (before.reasoning ?? "") + written.reasoning;
        return {
          ...before,
          content: withMedia(text, media),
          ...(reasoning !== "" && { reasoning }),
          continued_after_restart: true,
        };
      }, {
        byReply: true,
        extraStatements: () => [renewGeneration(conversationId, messageId, generation)],
        written: () => {
          if (reply.signal.aborted) return;
          reply.suspend();
          live.remove(reply);
          const next = createReply(this.#deps, {
            reply,
            generation,
            request: isEmpty ? request : toContinuation(request, text),
            base: isEmpty ? reply.base : { text, reasoning: reply.base.reasoning + written.reasoning },
          });
          next.reply.savePlan({ isRepeated: true, restarts: plan.restarts }).catch(() => {}); // The next batch reports it.
          getRunner().start(next.reply, next.request, requested);
          isRepeated = true;
        },
      });
      if (isRepeated) await reply.journal.settle();
      return isRepeated;
    } catch (error) {
      tools.log("warn", "Can't continue a reply after a restart", { error: getErrorMessage(error) });
      return reply.isSuspended;
    }
  }
}

interface NextRun {
  reply: Pick<Reply, "conversationId" | "messageId" | "startedAtMs" | "previousVariant" | "rounds" | "model">;
  generation: string;
  request: StatefulChatRequest;
  base: { text: string; reasoning: string };
  written?: JournalBatch;
}

/** Creates the run of a reply that goes on. */
function createReply(
  { journal, tools }: Pick<GoingOnDeps, "journal" | "tools">,
  { reply, generation, request, base, written }: NextRun,
): { reply: Reply; request: StatefulChatRequest } {
  const { conversationId, messageId, rounds } = reply;
  const count = rounds.filter(({ role }) => role === "assistant").length;
  const next = new Reply({
    conversationId,
    messageId,
    generation,
    model: reply.model,
    startedAtMs: reply.startedAtMs,
    base,
    previousVariant: reply.previousVariant,
    rounds,
    written,
    journal: journal.begin({ messageId, generation: count === 0 ? generation : toRoundGeneration(generation, count) }),
  });
  const resumed = tools.resumes.find(conversationId, messageId);
  if (usesOwnTools(request)) next.tools = new ToolRun(tools, next, request, resumed);
  return { reply: next, request };
}

/** Returns the request that continues a reply after its text. */
function toContinuation(request: StatefulChatRequest, text: string): StatefulChatRequest {
  if (request.context === "server") return { ...request, action: "continue" };
  // The client assembled the prompt: its messages end with the text to continue.
  const { messages } = request;
  const before = messages.at(-1)?.role === "assistant" ? messages.slice(0, -1) : messages;
  return { ...request, action: "continue", messages: [...before, { role: "assistant", content: text }] };
}

/** Starts the replies that were running when the process ended. Call it once, before any other reply starts. */
export async function resumeUnfinishedReplies(
  deps: GoingOnDeps,
  { replies, isJournalNeeded }: UnfinishedReplies,
): Promise<void> {
  const { locks, journal, tools } = deps;
  let areAllResumed = !isJournalNeeded;
  for (const unfinished of replies) {
    try {
      await locks.run(unfinished.row.conversation_id, () => resumeReply(deps, unfinished));
    } catch (error) {
      areAllResumed = false;
      tools.log("error", "Can't go on with a reply after a restart", { error: getErrorTrace(error) });
    }
  }
  if (areAllResumed && replies.length > 0) await journal.replaceEarlier();
}

async function resumeReply(deps: GoingOnDeps, { row, written }: UnfinishedReply): Promise<void> {
  const { store, blocks, getRunner } = deps;
  const { conversation_id: conversationId, mid: messageId, generation } = row;
  const stored = blocks.getMessage(conversationId, messageId);
  const plan: ReplyPlan = { ...written.plan, restarts: (written.plan.restarts ?? 0) + 1 };
  const { reply, request } = createReply(deps, {
    reply: toRun(blocks, row),
    generation,
    request: written.plan.request,
    base: { text: getContentText(stored.content), reasoning: stored.reasoning ?? "" },
    written: { ...written, plan },
  });
  await reply.copyToJournal();
  const requested = getRequestedModel(request, store.find(conversationId)?.head);
  getRunner().start(reply, request, requested, plan.stream ?? "lost");
}

/**
 * Continues the replies that were waiting for a decision when the server stopped. Call it once, before any reply
 * starts.
 */
export async function resumeWaitingReplies(db: Database, deps: GoingOnDeps): Promise<void> {
  const { store, blocks, live, locks, tools, getRunner } = deps;
  for (const row of findUnendedReplies(db)) {
    const { conversation_id: conversationId, mid: messageId } = row;
    if (live.findByMessage(conversationId, messageId) !== undefined) continue;
    try {
      await locks.run(conversationId, () => {
        const state = store.find(conversationId);
        const resumed = tools.resumes.find(conversationId, messageId);
        if (state === undefined || resumed === undefined) return;
        const { reply, request } = createReply(deps, {
          reply: toRun(blocks, row),
          generation: row.generation,
          request: resumed.request,
          base: { text: "", reasoning: "" },
        });
        getRunner().start(reply, request, getRequestedModel(request, state.head));
      });
    } catch (error) {
      tools.log("error", "Can't continue a reply that waits for a decision", {
        error: getErrorTrace(error),
      });
    }
  }
}

/** Returns what a run is from its row and its message. */
function toRun(blocks: BlockStore, row: ReplyRow): NextRun["reply"] {
  const { conversation_id: conversationId, mid: messageId } = row;
  return {
    conversationId,
    messageId,
    startedAtMs: row.started_at,
    previousVariant: row.previous_variant,
    rounds: blocks.getRounds(conversationId, messageId),
    model: blocks.getMessage(conversationId, messageId).model ?? "",
  };
}
