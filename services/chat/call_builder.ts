/** What a model is asked: the messages as the client assembled them, or as the server assembles them, and a look at both. */
import { AppError } from "../errors.ts";
import type { ChatCall, ChatMessage } from "../llm/chat_event.ts";
import type { UpstreamTarget } from "../llm/upstream_client.ts";
import type { Prompt, PromptLimits, Prompts } from "../prompts/prompts.ts";
import type { ScenePreset } from "../prompts/scenes.ts";
import type { ChatRequest, ChatRoute, ChatUpstream, StatefulChatRequest } from "./chat_request.ts";
import type { ConversationHead, ConversationState } from "../conversations/conversation.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import type { HistoryEnd } from "./history.ts";
import { setStage, speakerOf, speakersOf, type StagedReply, type StagingParts } from "./prompt_context.ts";

/** What making a call needs. */
export interface CallParts extends StagingParts {
  store: ConversationStore;
  prompts: Prompts;
}

/** A call, ready to be sent. */
export interface UpstreamCall {
  target: UpstreamTarget;
  call: ChatCall;
  /** What is known of its messages, where the server assembled them. */
  prompt?: Prompt;
  /** What stands between an answer that is continued and what comes. */
  joint?: string;
}

/** What would be sent, and what not. */
export interface ChatPreview {
  route: ChatRoute;
  context: "client" | "server";
  params: Record<string, unknown>;
  prompt: Prompt;
  /** The messages at the begin of the conversation that do not fit, hidden ones among them. */
  dropped: { count: number; lastMessageId?: string };
  /** The preset that was used. */
  preset?: Pick<ScenePreset, "id" | "name">;
  /** Who speaks, and who would speak after that. */
  speakers: string[];
}

/**
 * Makes the call for a reply whose turn is stored.
 *
 * @throws {AppError} `unprocessable` for a card or persona that cannot be read; the reason of `signal`, when that fired
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
  const end: HistoryEnd = { before: messageId, isIncluded: request.action === "continue" };
  const characterId = writerOf(parts, request.conversationId, messageId);
  return await assembled(parts, request, route, { end, characterId }, signal);
}

/**
 * Makes the call for a text in the owner's name, which nobody stores.
 *
 * @throws {AppError} `not_found`, and as `callFor` does
 */
export async function impersonationFor(
  parts: CallParts,
  request: StatefulChatRequest,
  route: ChatRoute,
  signal: AbortSignal,
): Promise<UpstreamCall> {
  const { target, model } = route;
  if (request.context !== "server") {
    return { target, call: { model, messages: request.messages, params: request.params } };
  }
  const characterId = request.characterId;
  return await assembled(parts, request, route, { end: endFor(parts, request), characterId }, signal);
}

async function assembled(
  parts: CallParts,
  request: StatefulChatRequest,
  route: ChatRoute,
  { end, characterId }: Pick<StagedReply, "end" | "characterId">,
  signal: AbortSignal,
): Promise<UpstreamCall> {
  const { target, model } = route;
  const state = parts.store.get(request.conversationId);
  const staged = { end, characterId, model, action: request.action, timeZone: request.timeZone };
  const { source, scene, joint } = await setStage(parts, state, staged);
  const params = paramsOf(request, state.head, scene.preset);
  const prompt = await parts.prompts.assemble(source, limitsOf(route, params, scene.preset), signal);
  const { contextSize } = prompt;
  // So that the limit of the answer, where nobody named one, fits the model that was asked.
  const sized = contextSize.isAssumed ? target : { ...target, contextSize: contextSize.tokens };
  return { target: sized, call: { model, messages: prompt.messages, params }, prompt, joint };
}

/** Refuses a request that would send nothing, before anything is stored. @throws {AppError} `invalid_request` */
export function refuseNothing({ store }: Pick<CallParts, "store">, request: StatefulChatRequest): void {
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
  const { store, upstream, prompts } = parts;
  const { conversationId } = request;
  const head = conversationId === undefined ? undefined : store.find(conversationId)?.head;
  const wanted = { model: request.model, connectionId: head?.connection_id, conversationModel: head?.model };
  const route = await upstream.route(wanted, signal);
  if (conversationId === undefined || request.context !== "server") {
    const { params } = request;
    const prompt = await prompts.describe(request.messages, limitsOf(route, params), signal);
    return { route, context: "client", params, prompt, dropped: { count: 0 }, speakers: [] };
  }
  const stateful = { ...request, conversationId, action: request.action ?? "send" } as StatefulChatRequest;
  refuseNothing(parts, stateful);
  const state = store.find(conversationId) ?? newConversation(conversationId);
  const end = endFor(parts, stateful);
  const { characterId, speakers } = await speakersFor(parts, stateful, state, end);
  const staged = { end, characterId, model: route.model, action: stateful.action, timeZone: stateful.timeZone };
  const { source, scene } = await setStage(parts, state, staged);
  const params = paramsOf(stateful, head, scene.preset);
  const prompt = await prompts.assemble(
    source,
    { ...limitsOf(route, params, scene.preset), isExact: true },
    signal,
    false,
  );
  const dropped = droppedBefore(parts, conversationId, prompt);
  return { route, context: "server", params, prompt, dropped, preset: scene.preset, speakers };
}

/** As it will be once its first turn is stored. */
function newConversation(id: string): ConversationState {
  return { id, revision: 0, createdAtMs: 0, updatedAtMs: 0, messageCount: 0, head: { title: "", participants: [] } };
}

async function speakersFor(
  parts: CallParts,
  request: StatefulChatRequest,
  state: ConversationState,
  { before, turn }: HistoryEnd,
): Promise<{ characterId?: string; speakers: string[] }> {
  if (before !== undefined && turn === undefined) {
    const characterId = writerOf(parts, state.id, before);
    return { characterId, speakers: characterId === undefined ? [] : [characterId] };
  }
  if (request.action === "impersonate") return { characterId: request.characterId, speakers: [] };
  const characterId = await speakerOf(parts, state, turn, request.characterId, before);
  const wanting = state.head.participants.length > 1 ? await speakersOf(parts, state, turn, before) : [];
  const others = wanting.filter((id) => id !== characterId);
  return { characterId, speakers: characterId === undefined ? [] : [characterId, ...others] };
}

/** Gives the character whose message that is. */
function writerOf({ blocks }: CallParts, id: string, mid: string): string | undefined {
  const row = blocks.rowOf(id, mid);
  const message = row && blocks.messagesOf(id, row).find((one) => one.id === mid);
  return typeof message?.character_id === "string" ? message.character_id : undefined;
}

/** The same end that the history has once the turn is stored. */
function endFor({ blocks }: CallParts, request: StatefulChatRequest): HistoryEnd {
  const { conversationId: id, action, assistantMessageId: mid, userMessageId } = request;
  const place = mid !== undefined && blocks.rowOf(id, mid) !== undefined ? mid : undefined;
  if (action === "regenerate" || action === "continue") {
    if (place === undefined) throw new AppError("not_found", `Conversation "${id}" has no message "${mid}"`);
    return { before: place, isIncluded: action === "continue" };
  }
  const last: ChatMessage | undefined = request.messages.at(-1);
  if (action === "edit" && place === undefined) {
    blocks.requireOnPath(id, userMessageId!);
    if (blocks.rowOf(id, userMessageId!) === undefined) {
      throw new AppError("not_found", `Conversation "${id}" has no message "${userMessageId}"`);
    }
    return { before: userMessageId, turn: { ...last!, id: userMessageId } };
  }
  const isStored = place !== undefined ||
    (userMessageId !== undefined && blocks.rowOf(id, userMessageId) !== undefined);
  return { before: place, turn: last?.role === "user" && !isStored ? { ...last, id: userMessageId } : undefined };
}

function droppedBefore({ blocks }: CallParts, id: string, { parts, isTrimmed }: Prompt): ChatPreview["dropped"] {
  const oldest = parts.find(({ messageId }) => messageId !== undefined)?.messageId;
  if (!isTrimmed || oldest === undefined) return { count: 0 };
  return { count: blocks.countBefore(id, oldest), lastMessageId: blocks.neighboursOf(id, oldest).after };
}

/** What the preset says of sampling, what the conversation says over it, and the request over both. */
function paramsOf(
  request: ChatRequest,
  head: ConversationHead | undefined,
  preset: ScenePreset | undefined,
): Record<string, unknown> {
  const own = head?.params;
  return { ...preset?.params, ...(typeof own === "object" && own), ...request.params };
}

function limitsOf(
  { target, model }: ChatRoute,
  params: Record<string, unknown>,
  preset?: ScenePreset,
): PromptLimits {
  const limit = params.max_tokens ?? params.max_completion_tokens;
  const answerTokens = typeof limit === "number" ? limit : undefined;
  return { target, model, answerTokens, contextTokens: preset?.contextSize };
}
