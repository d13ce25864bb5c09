/** What a model is asked: the messages as the client assembled them, or as the server assembles them, and a look at both. */
import { AppError } from "../errors.ts";
import type { ChatCall, ChatMessage } from "../llm/chat_event.ts";
import type { UpstreamTarget } from "../llm/upstream.ts";
import type { Prompt, PromptLimits, Prompts } from "../prompts/prompts.ts";
import type { BlockStore } from "./blocks.ts";
import type { ChatRequest, ChatRoute, ChatUpstream, StatefulChatRequest } from "./chat.ts";
import type { ConversationHead } from "./conversation.ts";
import type { ConversationStore } from "./conversation_store.ts";
import { type HistoryEnd, sourceOf } from "./history.ts";

/** What making a call needs. */
export interface CallParts {
  store: ConversationStore;
  blocks: BlockStore;
  prompts: Prompts;
}

/** A call, ready to be sent. */
export interface UpstreamCall {
  target: UpstreamTarget;
  call: ChatCall;
}

/** What would be sent, and what not. */
export interface ChatPreview {
  route: ChatRoute;
  context: "client" | "server";
  params: Record<string, unknown>;
  prompt: Prompt;
  /** The messages at the begin of the conversation that do not fit, hidden ones among them. */
  dropped: { count: number; lastMessageId?: string };
}

/**
 * Makes the call for a reply whose turn is stored.
 *
 * @throws The reason of `signal`, when that fired.
 */
export async function callFor(
  parts: CallParts,
  request: StatefulChatRequest,
  route: ChatRoute,
  messageId: string,
  signal: AbortSignal,
): Promise<UpstreamCall> {
  const { target, model } = route;
  if (request.context !== "server") {
    return { target, call: { model, messages: request.messages, params: request.params } };
  }
  const { blocks, store, prompts } = parts;
  const head = store.find(request.conversationId)?.head;
  const params = paramsOf(request, head);
  const end: HistoryEnd = { before: messageId, isIncluded: request.action === "continue" };
  const source = sourceOf(blocks, request.conversationId, head, end);
  const { messages, contextSize } = await prompts.assemble(source, limitsOf(route, params), signal);
  // So that the limit of the answer, where nobody named one, fits the model that was asked.
  const sized = contextSize.isAssumed ? target : { ...target, contextSize: contextSize.tokens };
  return { target: sized, call: { model, messages, params } };
}

/** Refuses a request that would send nothing, before anything is stored. @throws {AppError} `invalid_request` */
export function refuseNothing({ store }: CallParts, request: StatefulChatRequest): void {
  const isEmpty = request.messages.length === 0 && (store.find(request.conversationId)?.messageCount ?? 0) === 0;
  if (!isEmpty) return;
  const message = "the conversation has no messages yet, so there is nothing to answer";
  throw new AppError("invalid_request", message, { issues: [{ path: "messages", message }] });
}

/**
 * Tells what a request would send, and sends nothing.
 *
 * @throws {AppError} as a reply does before it begins: `not_available`, `not_found`, `upstream_error`
 */
export async function previewOf(
  parts: CallParts & { upstream: ChatUpstream },
  request: ChatRequest & Partial<StatefulChatRequest>,
  signal: AbortSignal,
): Promise<ChatPreview> {
  const { store, blocks, upstream, prompts } = parts;
  const { conversationId } = request;
  const head = conversationId === undefined ? undefined : store.find(conversationId)?.head;
  const wanted = { model: request.model, connectionId: head?.connection_id, conversationModel: head?.model };
  const route = await upstream.route(wanted, signal);
  if (conversationId === undefined || request.context !== "server") {
    const { params } = request;
    const prompt = await prompts.describe(request.messages, limitsOf(route, params), signal);
    return { route, context: "client", params, prompt, dropped: { count: 0 } };
  }
  const stateful = { ...request, conversationId, action: request.action ?? "send" } as StatefulChatRequest;
  refuseNothing(parts, stateful);
  const params = paramsOf(stateful, head);
  const end = endFor(blocks, stateful);
  const source = sourceOf(blocks, conversationId, head, end);
  const prompt = await prompts.assemble(source, { ...limitsOf(route, params), isExact: true }, signal, false);
  return { route, context: "server", params, prompt, dropped: droppedBefore(blocks, conversationId, prompt) };
}

/** The same end that the history has once the turn is stored. */
function endFor(blocks: BlockStore, request: StatefulChatRequest): HistoryEnd {
  const { conversationId: id, action, assistantMessageId: mid, userMessageId } = request;
  const place = mid !== undefined && blocks.rowOf(id, mid) !== undefined ? mid : undefined;
  if (action !== "send") {
    if (place === undefined) throw new AppError("not_found", `Conversation "${id}" has no message "${mid}"`);
    return { before: place, isIncluded: action === "continue" };
  }
  const last: ChatMessage | undefined = request.messages.at(-1);
  const isStored = place !== undefined ||
    (userMessageId !== undefined && blocks.rowOf(id, userMessageId) !== undefined);
  return { before: place, turn: last?.role === "user" && !isStored ? last : undefined };
}

function droppedBefore(blocks: BlockStore, id: string, { parts, isTrimmed }: Prompt): ChatPreview["dropped"] {
  const oldest = parts.find(({ messageId }) => messageId !== undefined)?.messageId;
  if (!isTrimmed || oldest === undefined) return { count: 0 };
  return { count: blocks.countBefore(id, oldest), lastMessageId: blocks.neighboursOf(id, oldest).after };
}

/** What the conversation says of sampling, and what the request says over it. */
function paramsOf(request: ChatRequest, head: ConversationHead | undefined): Record<string, unknown> {
  const own = head?.params;
  return typeof own === "object" && own !== null ? { ...own, ...request.params } : request.params;
}

function limitsOf({ target, model }: ChatRoute, params: Record<string, unknown>): PromptLimits {
  const limit = params.max_tokens ?? params.max_completion_tokens;
  return { target, model, answerTokens: typeof limit === "number" ? limit : undefined };
}
