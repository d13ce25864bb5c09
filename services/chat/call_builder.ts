/** Builds the call to the model: the messages as the client sent them, or as the server assembles them. */
import { type ImagePartsDeps, inlineImages } from "../attachments/image_parts.ts";
import type { ConversationHead, ConversationState } from "../conversations/conversation.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import { AppError } from "../errors.ts";
import type { ChatCall, ChatMessage } from "../llm/chat_event.ts";
import type { ModelRoute, ModelRouter, WantedModel } from "../llm/model_router.ts";
import type { UpstreamTarget } from "../llm/upstream_client.ts";
import type { Prompt, PromptLimits, Prompts } from "../prompts/prompts.ts";
import type { PromptPreset } from "../prompts/prompt_context.ts";
import type { AnyChatRequest, ChatRequest, StatefulChatRequest } from "./chat_request.ts";
import type { HistoryEnd } from "./history.ts";
import { chooseNextSpeaker, listNextSpeakers, openReplyContext, type ReplyContextDeps } from "./reply_context.ts";

/** Dependencies of a CallBuilder. */
export interface CallBuilderDeps extends ReplyContextDeps {
  store: ConversationStore;
  prompts: Prompts;
  modelRouter: ModelRouter;
  images: ImagePartsDeps;
}

/** A call to a model, ready to be sent. */
export interface UpstreamCall {
  target: UpstreamTarget;
  call: ChatCall;
  /** How the server assembled the messages. Absent if the client did. */
  prompt?: Prompt;
  /** Text between an answer that is continued and its continuation. */
  joint?: string;
}

/** What a request would send. */
export interface ChatPreview {
  route: ModelRoute;
  context: "client" | "server";
  params: Record<string, unknown>;
  prompt: Prompt;
  /** Messages at the beginning of the conversation that don't fit, including hidden ones. */
  dropped: { count: number; lastMessageId?: string };
  /** The preset in use. */
  preset?: Pick<PromptPreset, "id" | "name">;
  /** Ids of the characters that would speak, in order. */
  speakers: string[];
}

/** Builds calls and previews of them. */
export class CallBuilder {
  readonly #deps: CallBuilderDeps;

  constructor(deps: CallBuilderDeps) {
    this.#deps = deps;
  }

  /**
   * Builds the call for a reply whose message is stored already.
   *
   * @throws {AppError} `not_available` without a connection, `unprocessable` for a card or persona that can't be read,
   *   `upstream_error` if the server lists no model.
   * @throws The reason of `signal`.
   */
  async buildForReply(
    request: StatefulChatRequest,
    messageId: string,
    route: ModelRoute,
    signal: AbortSignal,
  ): Promise<UpstreamCall> {
    const end: HistoryEnd = { before: messageId, isIncluded: request.action === "continue" };
    return await this.#build(request, route, signal, () => ({
      end,
      characterId: this.#writerOf(request.conversationId, messageId),
    }));
  }

  /**
   * Builds a call whose answer isn't stored: a request without a conversation, or one that impersonates the user.
   *
   * @throws {AppError} As `buildForReply`, and `not_found`, `invalid_request`.
   * @throws The reason of `signal`.
   */
  async buildPassThrough(request: AnyChatRequest, signal: AbortSignal): Promise<UpstreamCall> {
    const { store, modelRouter } = this.#deps;
    const { conversationId } = request;
    const head = conversationId === undefined ? undefined : store.getForWrite(conversationId).head;
    const route = await modelRouter.route(wantedModel(request, head), signal);
    if (conversationId === undefined) {
      const { messages, params } = request;
      return { target: route.target, call: { model: route.model, messages, params } };
    }
    const stateful = request as StatefulChatRequest;
    this.refuseEmpty(stateful);
    return await this.#build(stateful, route, signal, () => ({
      end: this.#historyEnd(stateful),
      characterId: stateful.characterId,
    }));
  }

  /**
   * Returns what a request would send. Sends and stores nothing.
   *
   * @throws {AppError} As `buildPassThrough`.
   */
  async preview(request: AnyChatRequest, signal: AbortSignal): Promise<ChatPreview> {
    const { store, modelRouter, prompts } = this.#deps;
    const { conversationId } = request;
    const head = conversationId === undefined ? undefined : store.find(conversationId)?.head;
    const route = await modelRouter.route(wantedModel(request, head), signal);
    if (conversationId === undefined || request.context !== "server") {
      const { params } = request;
      const prompt = await prompts.describe(request.messages, limitsOf(route, params), signal);
      return { route, context: "client", params, prompt, dropped: { count: 0 }, speakers: [] };
    }
    const stateful = { ...request, conversationId, action: request.action ?? "send" } as StatefulChatRequest;
    this.refuseEmpty(stateful);
    const state = store.find(conversationId) ?? newConversation(conversationId);
    const end = this.#historyEnd(stateful);
    const { characterId, speakers } = await this.#previewSpeakers(stateful, state, end);
    const { source, scene } = await openReplyContext(this.#deps, state, {
      end,
      characterId,
      model: route.model,
      action: stateful.action,
      timeZone: stateful.timeZone,
    });
    const params = mergeParams(stateful, head, scene.preset);
    const limits = { ...limitsOf(route, params, scene.preset), isExact: true };
    const prompt = await prompts.assemble(source, limits, signal, false);
    const dropped = this.#droppedMessages(conversationId, prompt);
    return { route, context: "server", params, prompt, dropped, preset: scene.preset, speakers };
  }

  /** Refuses a request that would send no message. @throws {AppError} `invalid_request` */
  refuseEmpty(request: StatefulChatRequest): void {
    const { store } = this.#deps;
    const isEmpty = request.messages.length === 0 && (store.find(request.conversationId)?.messageCount ?? 0) === 0;
    if (!isEmpty) return;
    const message = "the conversation has no messages yet, so there is nothing to answer";
    throw new AppError("invalid_request", message, { issues: [{ path: "messages", message }] });
  }

  /**
   * Chooses the character that speaks in a new reply. `undefined` if the conversation has no characters, and for an action
   * that writes an existing message again: that keeps its character.
   *
   * @throws {AppError} `invalid_request` if no character may speak.
   */
  async chooseSpeaker(
    request: StatefulChatRequest,
    conversation: ConversationState | undefined,
  ): Promise<string | undefined> {
    const isNew = request.action === "send" || request.action === "edit";
    if (conversation === undefined || !isNew) return undefined;
    const last = request.messages.at(-1);
    const userMessage = last?.role === "user" ? last : undefined;
    const before = request.action === "edit" ? request.userMessageId : undefined;
    return await chooseNextSpeaker(this.#deps, conversation, userMessage, request.characterId, before);
  }

  async #build(
    request: StatefulChatRequest,
    route: ModelRoute,
    signal: AbortSignal,
    findEnd: () => { end: HistoryEnd; characterId?: string },
  ): Promise<UpstreamCall> {
    const { target, model } = route;
    const built = request.context === "server"
      ? await this.#assemble(request, route, findEnd(), signal)
      : { target, call: { model, messages: request.messages, params: request.params } };
    return { ...built, call: { ...built.call, messages: await inlineImages(this.#deps.images, built.call.messages) } };
  }

  async #assemble(
    request: StatefulChatRequest,
    route: ModelRoute,
    { end, characterId }: { end: HistoryEnd; characterId?: string },
    signal: AbortSignal,
  ): Promise<UpstreamCall> {
    const { store, prompts } = this.#deps;
    const { target, model } = route;
    const state = store.get(request.conversationId);
    const { source, scene, joint } = await openReplyContext(this.#deps, state, {
      end,
      characterId,
      model,
      action: request.action,
      timeZone: request.timeZone,
    });
    const params = mergeParams(request, state.head, scene.preset);
    const prompt = await prompts.assemble(source, limitsOf(route, params, scene.preset), signal);
    const { contextSize } = prompt;
    // Without a limit in the request, the provider derives the answer's limit from this size.
    const sized = contextSize.isAssumed ? target : { ...target, contextSize: contextSize.tokens };
    return { target: sized, call: { model, messages: prompt.messages, params }, prompt, joint };
  }

  async #previewSpeakers(
    request: StatefulChatRequest,
    state: ConversationState,
    { before, userMessage }: HistoryEnd,
  ): Promise<{ characterId?: string; speakers: string[] }> {
    if (before !== undefined && userMessage === undefined) {
      const characterId = this.#writerOf(state.id, before);
      return { characterId, speakers: characterId === undefined ? [] : [characterId] };
    }
    if (request.action === "impersonate") return { characterId: request.characterId, speakers: [] };
    const characterId = await chooseNextSpeaker(this.#deps, state, userMessage, request.characterId, before);
    const isGroup = state.head.participants.length > 1;
    const next = isGroup ? await listNextSpeakers(this.#deps, state, userMessage, before) : [];
    const others = next.filter((id) => id !== characterId);
    return { characterId, speakers: characterId === undefined ? [] : [characterId, ...others] };
  }

  /** Returns the id of the character whose message this is. */
  #writerOf(id: string, mid: string): string | undefined {
    const { blocks } = this.#deps;
    const row = blocks.rowOf(id, mid);
    const message = row && blocks.messagesOf(id, row).find((candidate) => candidate.id === mid);
    return typeof message?.character_id === "string" ? message.character_id : undefined;
  }

  /** Returns where the history ends, the same before and after the user message is stored. */
  #historyEnd(request: StatefulChatRequest): HistoryEnd {
    const { blocks } = this.#deps;
    const { conversationId: id, action, assistantMessageId: mid, userMessageId } = request;
    const reply = mid !== undefined && blocks.rowOf(id, mid) !== undefined ? mid : undefined;
    if (action === "regenerate" || action === "continue") {
      if (reply === undefined) throw new AppError("not_found", `Conversation "${id}" has no message "${mid}"`);
      return { before: reply, isIncluded: action === "continue" };
    }
    const last: ChatMessage | undefined = request.messages.at(-1);
    if (action === "edit" && reply === undefined) {
      blocks.requireOnPath(id, userMessageId!);
      if (blocks.rowOf(id, userMessageId!) === undefined) {
        throw new AppError("not_found", `Conversation "${id}" has no message "${userMessageId}"`);
      }
      return { before: userMessageId, userMessage: { ...last!, id: userMessageId } };
    }
    const isStored = reply !== undefined ||
      (userMessageId !== undefined && blocks.rowOf(id, userMessageId) !== undefined);
    const userMessage = last?.role === "user" && !isStored ? { ...last, id: userMessageId } : undefined;
    return { before: reply, userMessage };
  }

  #droppedMessages(id: string, { parts, isTrimmed }: Prompt): ChatPreview["dropped"] {
    const { blocks } = this.#deps;
    const oldest = parts.find(({ messageId }) => messageId !== undefined)?.messageId;
    if (!isTrimmed || oldest === undefined) return { count: 0 };
    return { count: blocks.countBefore(id, oldest), lastMessageId: blocks.neighboursOf(id, oldest).after };
  }
}

/** Returns the model and connection that a request and its conversation name. */
export function wantedModel(request: ChatRequest, head: ConversationHead | undefined): WantedModel {
  return { model: request.model, connectionId: head?.connection_id, conversationModel: head?.model };
}

/** A conversation that will exist once its first message is stored. */
function newConversation(id: string): ConversationState {
  return { id, revision: 0, createdAtMs: 0, updatedAtMs: 0, messageCount: 0, head: { title: "", participants: [] } };
}

/** Merges sampling parameters: the request's win over the conversation's, and those over the preset's. */
function mergeParams(
  request: ChatRequest,
  head: ConversationHead | undefined,
  preset: PromptPreset | undefined,
): Record<string, unknown> {
  const own = head?.params;
  return { ...preset?.params, ...(typeof own === "object" && own), ...request.params };
}

function limitsOf({ target, model }: ModelRoute, params: Record<string, unknown>, preset?: PromptPreset): PromptLimits {
  const limit = params.max_tokens ?? params.max_completion_tokens;
  const answerTokens = typeof limit === "number" ? limit : undefined;
  return { target, model, answerTokens, contextTokens: preset?.contextSize };
}
