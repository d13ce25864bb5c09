/** `/api/chat`: sending messages to a model, and following, listing and stopping the replies that the server stores. */
import type { ToolDecision } from "../services/chat/tools/tool_round.ts";
import type { Services } from "../services/services.ts";
import { type AppContext, getClientSignal, type Identity } from "../middleware/env.ts";
import {
  type AnyChatRequest,
  START,
  type StartedReply,
  type StatefulChatRequest,
  type StatelessChat,
} from "../services/chat/chat_service.ts";
import type { ReplyCursor, ReplySource, ReplyStep } from "../services/chat/replies.ts";
import { toCallJson } from "../services/chat/tools/tool_messages.ts";
import { getContentText } from "../services/conversations/message.ts";
import { randomToken } from "../services/crypto/random.ts";
import { createEventStream, EVENT_STREAM_HEADERS } from "./http/event_stream.ts";
import { passRawResponse } from "./http/raw_response.ts";
import { createRouter } from "./http/router.ts";
import {
  chatRoute,
  followRoute,
  previewRoute,
  repliesRoute,
  stopRoute,
  toChatRequest,
  toPreviewJson,
} from "./schemas/chat/chat.ts";
import { callRoute, decideRoute } from "./schemas/tools.ts";
import {
  ChunkFrames,
  createDoneFrame,
  createErrorFrame,
  createNoticeFrame,
  createProgressFrame,
  createRestartingFrame,
  parseLastEventId,
  ReplyFrames,
  toCompletion,
  toReplyError,
} from "./schemas/chat/chat_frames.ts";

/**
 * How long a response waits for the model's first output, in milliseconds. Then it starts as a stream that is kept
 * alive.
 */
const FIRST_OUTPUT_TIMEOUT_MS = 10_000;

/** Routes of chat and replies. @param options.firstOutputTimeoutMs See FIRST_OUTPUT_TIMEOUT_MS. */
export function chatRoutes(
  services: Services,
  { firstOutputTimeoutMs = FIRST_OUTPUT_TIMEOUT_MS }: { firstOutputTimeoutMs?: number } = {},
) {
  return createRouter()
    .openapi(chatRoute, async (c) => {
      const { chat, stateless } = await services.chat();
      const body = c.req.valid("json");
      const idempotencyKey = c.req.valid("header")["idempotency-key"];
      const request = {
        ...toChatRequest(body),
        ...(idempotencyKey !== undefined && { idempotencyKey }),
      } satisfies AnyChatRequest;
      if (request.conversationId === undefined || request.action === "impersonate") {
        const isStream = body.stream ?? request.action === "impersonate";
        return isStream
          ? await streamAnswer(c, stateless, request)
          : c.json(await stateless.complete(request, getClientSignal(c)), 200);
      }
      const started = await chat.start(request as StatefulChatRequest);
      nameMessages(c, started);
      // A failure that the client gets in the answer counts as read.
      const leave = started.reply.follow?.();
      try {
        if (body.stream === false) return c.json(await collectReply(started), 200);
        await waitForStart(started, getClientSignal(c), firstOutputTimeoutMs);
        return streamReply(c, started.reply, started.from);
      } finally {
        leave?.();
      }
    })
    .openapi(previewRoute, async (c) => {
      const { previewer } = await services.chat();
      const preview = await previewer.preview(toChatRequest(c.req.valid("json")), getClientSignal(c));
      return passRawResponse(c.json(toPreviewJson(preview), 200));
    })
    .openapi(repliesRoute, async (c) => {
      const { replies } = await services.chat();
      const running = replies.listRunning().map((reply) => ({
        assistant_message_id: reply.messageId,
        conversation_id: reply.conversationId,
        started_at: new Date(reply.startedAtMs).toISOString(),
        status: reply.isReattaching ? "reattaching" as const : "streaming" as const,
        connection_id: reply.connectionId,
        is_waiting: reply.tools?.isWaiting ?? false,
        pending_calls: (reply.tools?.pending ?? []).map(toCallJson),
      }));
      return c.json(running, 200);
    })
    .openapi(followRoute, async (c) => {
      const { replies } = await services.chat();
      const reply = await replies.get(c.req.valid("param").mid, c.req.valid("query").conversation_id);
      nameMessages(c, { reply });
      return streamReply(c, reply, parseLastEventId(c.req.valid("header")["last-event-id"], reply.generation) ?? START);
    })
    .openapi(decideRoute, async (c) => {
      const { replies } = await services.chat();
      const { mid, call_id } = c.req.valid("param");
      const { decision, arguments: args, remember } = c.req.valid("json");
      const input = {
        decision,
        by: describeCaller(c.var.identity),
        ...(args != null && { arguments: args }),
        ...(remember != null && { remember }),
      } satisfies ToolDecision;
      const record = await replies.decide(mid, call_id, input, c.req.valid("query").conversation_id);
      return passRawResponse(c.json(toCallJson(record), 200));
    })
    .openapi(callRoute, async (c) => {
      const { replies } = await services.chat();
      const { mid, call_id } = c.req.valid("param");
      const record = replies.findCall(mid, call_id, c.req.valid("query").conversation_id);
      return passRawResponse(c.json({ ...toCallJson(record), result_full: record.fullResult ?? record.result }, 200));
    })
    .openapi(stopRoute, async (c) => {
      const { replies } = await services.chat();
      const message = await replies.stop(c.req.valid("param").mid, c.req.valid("query").conversation_id);
      return passRawResponse(c.json(message, 202));
    });
}

/** Returns a name for the caller who decides about a call, for the list of calls: for a token, its label. */
function describeCaller(identity: Identity): string {
  if (identity.method === "token") return `token ${identity.label}`;
  return identity.method ?? "local";
}

/** Adds the IDs of stored items to the response headers. */
export function nameMessages(
  c: AppContext,
  { reply, userMessageId }: Pick<StartedReply, "reply" | "userMessageId">,
): void {
  c.header("X-Parlor-Conversation-Id", reply.conversationId);
  c.header("X-Parlor-Assistant-Message-Id", reply.messageId);
  if (userMessageId !== undefined) c.header("X-Parlor-User-Message-Id", userMessageId);
}

/**
 * Waits until the model responds, so that an error gets an ordinary error response. Limited, because proxies close
 * silent connections.
 */
export async function waitForStart(
  started: StartedReply,
  client: AbortSignal,
  firstOutputTimeoutMs = FIRST_OUTPUT_TIMEOUT_MS,
): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const patience = new Promise<void>((resolve) => timer = setTimeout(resolve, firstOutputTimeoutMs));
  const left = new Promise<void>((resolve) => client.addEventListener("abort", () => resolve(), { once: true }));
  try {
    await Promise.race([started.started, patience, left]);
  } finally {
    clearTimeout(timer);
  }
}

/** Streams a reply from a position to its end. If the client disconnects, the reply continues. */
function streamReply(c: AppContext, reply: ReplySource, from: ReplyCursor) {
  const frames = new ReplyFrames(reply);
  const leave = reply.follow?.();
  let cursor: ReplyCursor | undefined;
  let hasEnded = false;
  const formatStep = (step: ReplyStep) => {
    if ("end" in step) {
      hasEnded = true;
      return frames.end(step.end, c.var.requestId);
    }
    if ("suspended" in step) {
      hasEnded = true;
      return createRestartingFrame();
    }
    if ("notice" in step) {
      cursor = step.after;
      return createNoticeFrame(step.notice);
    }
    if ("progress" in step) {
      cursor = step.after;
      return createProgressFrame(step.progress);
    }
    if ("calls" in step) {
      cursor = step.after;
      return frames.calls(step.calls);
    }
    cursor = { ...step.batch.at(-1)!, calls: cursor?.calls };
    return frames.batch(step.batch);
  };
  const next = () => {
    if (hasEnded) return undefined;
    if (cursor === undefined) {
      cursor = from;
      return frames.begin(cursor);
    }
    const step = reply.next(cursor);
    return step instanceof Promise ? step.then(formatStep) : formatStep(step);
  };
  return passRawResponse(c.body(createEventStream({ next, close: leave }), 200, EVENT_STREAM_HEADERS));
}

/** Streams a model's response. If the client disconnects, the upstream call is aborted immediately. */
async function streamAnswer(c: AppContext, chat: StatelessChat, request: AnyChatRequest) {
  const { model, batches, cancel } = await chat.stream(request, getClientSignal(c));
  const frames = new ChunkFrames({ id: `chatcmpl-${randomToken(12)}`, created: Math.floor(Date.now() / 1000), model });
  const iterator = batches[Symbol.asyncIterator]();
  let state: "begin" | "body" | "ended" = "begin";
  const next = async () => {
    if (state === "ended") return undefined;
    if (state === "begin") {
      state = "body";
      return new TextEncoder().encode(frames.role());
    }
    try {
      for (;;) {
        const { done, value } = await iterator.next();
        if (done) {
          state = "ended";
          return createDoneFrame();
        }
        if (value.length > 0) return frames.events(value);
      }
    } catch (error) {
      state = "ended";
      return createErrorFrame(error, c.var.requestId);
    }
  };
  return passRawResponse(c.body(createEventStream({ next, close: cancel }), 200, EVENT_STREAM_HEADERS));
}

/** Waits for the end of a reply and returns it as one object. A failed reply is an ordinary error. */
export async function collectReply({ reply, from, started }: StartedReply) {
  await started;
  let [text, reasoning, cursor] = ["", "", from];
  for (;;) {
    const step = await reply.next(cursor);
    if ("suspended" in step) throw toReplyError(step.suspended.error!);
    if ("end" in step) {
      if (step.end.error !== undefined) throw toReplyError(step.end.error);
      const stored = step.end.message;
      return stored === undefined
        ? toCompletion(reply, text, reasoning, step.end)
        : toCompletion(reply, getContentText(stored.content), stored.reasoning ?? "", step.end);
    }
    if ("notice" in step || "progress" in step) {
      cursor = step.after;
      continue;
    }
    if ("calls" in step) {
      // The text so far belongs to the message with the calls.
      [text, reasoning, cursor] = ["", "", step.after];
      continue;
    }
    for (const event of step.batch) {
      if (event.type === "text") text += event.delta;
      else reasoning += event.delta;
    }
    cursor = { ...step.batch.at(-1)!, calls: cursor.calls };
  }
}
