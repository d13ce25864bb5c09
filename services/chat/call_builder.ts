/** Builds the call to the model: the messages as the client sent them, or as the server assembled them. */
import { type ImagePartsDeps, inlineImages } from "../attachments/image_parts.ts";
import type { ConversationHead, ConversationState } from "../conversations/conversation.ts";
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import { getContentText, type Message } from "../conversations/message.ts";
import { parseDocumentUses } from "../documents/document.ts";
import { AppError } from "../errors.ts";
import type { ChatCall, ChatMessage } from "../llm/chat_event.ts";
import { getTargetDialect } from "../llm/provider.ts";
import type { ModelRoute, ModelRouter, RequestedModel } from "../llm/model_router.ts";
import { refusesPrefill } from "../llm/refused_fields.ts";
import { estimateTokens } from "../llm/token_count.ts";
import type { UpstreamTarget } from "../llm/upstream_client.ts";
import type { ClientPromptSource, Prompt, PromptLimits } from "../prompts/prompt.ts";
import type { Prompts } from "../prompts/prompts.ts";
import type { PromptPreset } from "../prompts/prompt_context.ts";
import type { AnyChatRequest, ChatRequest, StatefulChatRequest } from "./chat_service.ts";
import type { ToolOffer } from "../tools/tool_registry.ts";
import { finishMessages, NO_TOOLS, type ReplyTools, withTools } from "./call_tools.ts";
import { type HistoryEnd, openClientContext, toPromptMessages, withoutOrphanedResults } from "./history.ts";
import { chooseNextSpeaker, listRound, openReplyContext, type ReplyContextDeps } from "./reply_context.ts";

/** Dependencies of a CallBuilder. */
export interface CallBuilderDeps extends ReplyContextDeps {
  store: ConversationStore;
  prompts: Prompts;
  modelRouter: ModelRouter;
  images: ImagePartsDeps;
  tools: {
    /** Lists the tools for the next request of a chat. Returns undefined if it has none. */
    list(conversationId: string, signal: AbortSignal): Promise<ToolOffer | undefined>;
    /** Whether the model is known not to support tools. */
    isRefusedBy(route: ModelRoute): boolean;
  };
}

/** A call to a model, ready to be sent. */
export interface UpstreamCall {
  target: UpstreamTarget;
  call: ChatCall;
  /** How the server assembled the messages. Absent if the client did. */
  prompt?: Prompt;
  /** Text between a reply and its continuation. */
  joint?: string;
  /** The start of the reply that the preset sends. */
  prefill?: string;
}

/** Builds calls. */
export class CallBuilder {
  readonly #deps: CallBuilderDeps;

  constructor(deps: CallBuilderDeps) {
    this.#deps = deps;
  }

  /**
   * Builds the call for a reply whose message is stored already.
   *
   * @throws {AppError} `not_available` without a connection, `unprocessable` if a card or persona can't be read,
   *   `upstream_error` if the server doesn't list a model.
   * @throws The reason of `signal`.
   */
  async buildForReply(
    request: StatefulChatRequest,
    messageId: string,
    route: ModelRoute,
    signal: AbortSignal,
    tools: ReplyTools = NO_TOOLS,
  ): Promise<UpstreamCall> {
    const stored = findMessage(this.#deps.blocks, request.conversationId, messageId);
    // A reply that consists of tool calls only has no text to continue.
    const isContinued = request.action === "continue" && stored !== undefined && getContentText(stored.content) !== "";
    const end: HistoryEnd = { before: messageId, isIncluded: isContinued };
    const action = request.action === "continue" && !isContinued ? "send" : request.action;
    const built = await this.#build({ ...withTools(request, tools), action }, route, signal, () => ({
      end,
      characterId: typeof stored?.character_id === "string" ? stored.character_id : undefined,
    }));
    const { messages, stableMessages: stable } = built.call;
    const finished = finishMessages(messages, { request, route, tools });
    const added = finished.length - messages.length;
    return {
      ...built,
      call: { ...built.call, messages: finished, ...(stable !== undefined && { stableMessages: stable + added }) },
    };
  }

  /**
   * Builds a call whose reply isn't stored: for a request without a conversation, or one that impersonates the user.
   *
   * @throws {AppError} As `buildForReply`, and `not_found`, `invalid_request`.
   * @throws The reason of `signal`.
   */
  async buildUnstored(request: AnyChatRequest, signal: AbortSignal): Promise<UpstreamCall> {
    const { store, modelRouter } = this.#deps;
    const { conversationId } = request;
    const head = conversationId === undefined ? undefined : store.getForWrite(conversationId).head;
    const route = await modelRouter.route(getRequestedModel(request, head), signal);
    if (conversationId === undefined) {
      return request.context === "character"
        ? await this.#assembleClientMessages(request, route, undefined, signal)
        : await this.#buildClientPrompt(request, route, undefined, signal);
    }
    const stateful = request as StatefulChatRequest;
    refuseEmpty(this.#deps.store, stateful);
    return await this.#build(stateful, route, signal, () => ({
      end: findHistoryEnd(this.#deps.blocks, stateful),
      characterId: stateful.characterId,
    }));
  }

  /**
   * Chooses the character that speaks in a new reply. Returns `undefined` if the conversation has no characters, or if
   * the action rewrites an existing message, whose character stays.
   *
   * @throws {AppError} `invalid_request` if no character can speak.
   */
  async chooseSpeaker(
    request: StatefulChatRequest,
    conversation: ConversationState | undefined,
  ): Promise<string | undefined> {
    if (request.context === "character") return request.characterId;
    const isNew = request.action === "send" || request.action === "edit";
    if (conversation === undefined || !isNew) return undefined;
    const last = request.messages.at(-1);
    const userMessage = last?.role === "user" ? last : undefined;
    const before = request.action === "edit" ? request.userMessageId : undefined;
    return await chooseNextSpeaker(this.#deps, conversation, userMessage, request.characterId, before);
  }

  /** Lists the characters that answer a user message one after the other; see `listRound`. */
  listSpeakers(conversation: ConversationState, userMessage: ChatMessage): Promise<string[]> {
    return listRound(this.#deps, conversation, userMessage);
  }

  async #build(
    request: StatefulChatRequest,
    route: ModelRoute,
    signal: AbortSignal,
    findEnd: () => { end: HistoryEnd; characterId?: string },
  ): Promise<UpstreamCall> {
    const findHead = () => this.#deps.store.find(request.conversationId)?.head;
    const built = request.context === "server"
      ? await this.#assemble(request, route, findEnd(), signal)
      : request.context === "character"
      ? await this.#assembleClientMessages(request, route, findHead(), signal)
      : await this.#buildClientPrompt(request, route, findHead(), signal);
    return { ...built, call: { ...built.call, messages: await inlineImages(this.#deps.images, built.call.messages) } };
  }

  /**
   * Builds the call of a request whose messages the client assembled. Adds the documents of the messages and of the conversation.
   *
   * @param head Of the conversation that the reply belongs to.
   */
  async #buildClientPrompt(
    request: AnyChatRequest,
    route: ModelRoute,
    head: ConversationHead | undefined,
    signal: AbortSignal,
  ): Promise<UpstreamCall> {
    const { prompts } = this.#deps;
    const { target, model } = route;
    const { params } = request;
    const source = toClientSource(request, head);
    const limits = getPromptLimits(route, params, request.contextLimit);
    if (source.documents.length > 0 || source.history.some(({ documents = [] }) => documents.length > 0)) {
      const prompt = await prompts.addDocuments(source, limits, signal);
      const { userMessageId } = request;
      const askedId = source.history.findLast(({ message }) => message.role === "user")?.id;
      const parts = prompt.parts.map(({ messageId, ...part }) =>
        messageId === askedId && userMessageId !== undefined ? { ...part, messageId: userMessageId } : part
      );
      return toCall(route, { ...prompt, parts }, params, {});
    }
    const call: ChatCall = { model, messages: source.history.map(({ message }) => message), params };
    // Only calls that set the context size need an estimate of their size.
    if (target.kind !== "ollama") return { target, call };
    const { neededTokens } = await prompts.describe(call.messages, limits, signal);
    return { target, call: { ...call, neededTokens } };
  }

  async #assemble(
    request: StatefulChatRequest,
    route: ModelRoute,
    { end, characterId }: { end: HistoryEnd; characterId?: string },
    signal: AbortSignal,
  ): Promise<UpstreamCall> {
    const { store, prompts } = this.#deps;
    const { model } = route;
    const state = store.get(request.conversationId);
    const { source, scene, joint } = await openReplyContext(this.#deps, state, {
      end,
      characterId,
      model,
      continuesPrefill: continuesPrefill(route),
      refusesPrefill: refusesPrefill(route.target, model),
      action: request.action,
      timeZone: request.timeZone,
    });
    const { params, contextTokens } = mergeParams(request, state.head, scene.preset);
    const prompt = await prompts.assemble(source, getPromptLimits(route, params, contextTokens), signal);
    return { ...toCall(route, prompt, params, scene.preset), joint };
  }

  /** Builds the prompt of a character around the client's messages. @param head Of the conversation that the reply belongs to. */
  async #assembleClientMessages(
    request: ChatRequest,
    route: ModelRoute,
    head: ConversationHead | undefined,
    signal: AbortSignal,
  ): Promise<UpstreamCall> {
    const { prompts } = this.#deps;
    const { source, scene } = await openClientContext(this.#deps, request, { head, model: route.model });
    const { params, contextTokens } = mergeParams(request, head, scene.preset);
    const prompt = await prompts.assemble(source, getPromptLimits(route, params, contextTokens), signal);
    const messages = withoutOrphanedResults(prompt.messages);
    return toCall(route, { ...withoutPositions(prompt), messages }, params, scene.preset);
  }
}

/** Rejects a request that would send no messages. @throws {AppError} `invalid_request` */
export function refuseEmpty(store: ConversationStore, request: StatefulChatRequest): void {
  const isEmpty = request.messages.length === 0 && (store.find(request.conversationId)?.messageCount ?? 0) === 0;
  if (!isEmpty) return;
  const message = "the conversation has no messages yet, so there's nothing to reply to";
  throw new AppError("invalid_request", message, { issues: [{ path: "messages", message }] });
}

/** Finds a message of the active path. */
export function findMessage(blocks: BlockStore, id: string, mid: string): Message | undefined {
  const row = blocks.findRow(id, mid);
  return row && blocks.openMessages(id, row).find((candidate) => candidate.id === mid);
}

/** Returns where the history ends. The result is the same before and after the user message is stored. */
export function findHistoryEnd(blocks: BlockStore, request: StatefulChatRequest): HistoryEnd {
  const { conversationId: id, action, assistantMessageId: mid, userMessageId } = request;
  const reply = mid !== undefined && blocks.findRow(id, mid) !== undefined ? mid : undefined;
  if (action === "regenerate" || action === "continue") {
    if (reply === undefined) throw new AppError("not_found", `Message "${mid}" not found in conversation "${id}"`);
    return { before: reply, isIncluded: action === "continue" };
  }
  const last: ChatMessage | undefined = request.messages.at(-1);
  if (action === "edit" && reply === undefined) {
    blocks.requireOnPath(id, userMessageId!);
    if (blocks.findRow(id, userMessageId!) === undefined) {
      throw new AppError("not_found", `Message "${userMessageId}" not found in conversation "${id}"`);
    }
    return { before: userMessageId, userMessage: { ...last!, id: userMessageId } };
  }
  const isStored = reply !== undefined ||
    (userMessageId !== undefined && blocks.findRow(id, userMessageId) !== undefined);
  const userMessage = last?.role === "user" && !isStored ? { ...last, id: userMessageId } : undefined;
  return { before: reply, userMessage };
}

/** Returns the model and connection that a request or its conversation selects. */
export function getRequestedModel(request: ChatRequest, head: ConversationHead | undefined): RequestedModel {
  return {
    model: request.model,
    requestConnectionId: request.connectionId,
    connectionId: head?.connection_id,
    conversationModel: head?.model,
  };
}

/** Creates the call for a prompt that the server assembled. */
function toCall(
  { target, model }: ModelRoute,
  prompt: Prompt,
  params: Record<string, unknown>,
  { extraBody }: Pick<PromptPreset, "extraBody">,
): UpstreamCall {
  const { contextSize, neededTokens, messages } = prompt;
  // Without a limit in the request, the provider derives the reply's limit from this size. Where calls set the size,
  // the target's size is the owner's limit.
  const isKnown = !contextSize.isAssumed && target.kind !== "ollama";
  const sized = isKnown ? { ...target, contextSize: contextSize.tokens } satisfies UpstreamTarget : target;
  const stableMessages = countStable(prompt);
  const prefill = prompt.parts.at(-1)?.part === "prefill" ? getContentText(messages.at(-1)?.content ?? "") : undefined;
  return { target: sized, call: { model, messages, params, extraBody, neededTokens, stableMessages }, prompt, prefill };
}

/** Returns a client's messages, oldest first, and the documents of the conversation. */
export function toClientSource({ messages }: ChatRequest, head: ConversationHead | undefined): ClientPromptSource {
  return { history: toPromptMessages(messages), documents: parseDocumentUses(head?.documents) };
}

/** Removes IDs that are only positions in the request: no stored message has them. */
export function withoutPositions(prompt: Prompt): Prompt {
  return { ...prompt, parts: prompt.parts.map(({ messageId: _, ...part }) => part) };
}

/**
 * Merges sampling parameters: the request overrides the conversation, which overrides the preset. `context_size` isn't
 * sent: it limits the prompt, like a preset's. The smaller one applies.
 */
export function mergeParams(
  request: ChatRequest,
  head: ConversationHead | undefined,
  preset: PromptPreset | undefined,
): { params: Record<string, unknown>; contextTokens?: number } {
  const own = head?.params;
  const sampler = Object.entries(preset?.params ?? {}).filter(([name]) =>
    !Object.hasOwn(preset?.extraBody ?? {}, name)
  );
  const merged = { ...Object.fromEntries(sampler), ...(typeof own === "object" && own), ...request.params };
  const { context_size: contextSize, ...params } = merged as Record<string, unknown>;
  const isLimit = typeof contextSize === "number" && Number.isInteger(contextSize) && contextSize > 0;
  const limits = [isLimit ? contextSize : undefined, preset?.contextSize, request.contextLimit];
  const least = Math.min(...limits.map((limit) => limit ?? Infinity));
  return { params, ...(least < Infinity && { contextTokens: least }) };
}

/** Returns whether the server continues a partial reply sent as the last message. */
export function continuesPrefill({ target }: ModelRoute): boolean {
  return target.kind === "demo" || getTargetDialect(target).continues;
}

/** Returns the model and the token limits of a request. */
export function getPromptLimits(
  { target, model }: ModelRoute,
  params: Record<string, unknown>,
  contextTokens?: number,
): PromptLimits {
  const limit = params.max_tokens ?? params.max_completion_tokens;
  const replyTokens = typeof limit === "number" ? limit : undefined;
  const toolTokens = Array.isArray(params.tools) ? Math.ceil(estimateTokens(JSON.stringify(params.tools))) : undefined;
  return { target, model, replyTokens, contextTokens, toolTokens };
}

/**
 * Counts the messages at the start of a prompt that will be the same in the next one. They end at the first block that
 * is placed within or after the history, because such blocks move with every message.
 */
function countStable({ parts, messages }: Prompt): number {
  const first = parts.findIndex(({ part }) => part === "history");
  const end = first < 0 ? -1 : parts.findIndex(({ part }, index) => index > first && part !== "history");
  // Messages that were removed after the prompt was assembled were at its start.
  return (end < 0 ? parts.length : end) - (parts.length - messages.length);
}
