/** Previews what a chat request would send. */
import type { ConversationState } from "../conversations/conversation.ts";
import { mergeFields } from "../llm/openai/openai_request.ts";
import type { ModelRoute } from "../llm/model_router.ts";
import { refusesPrefill } from "../llm/refusals/refused_fields.ts";
import type { Prompt } from "../prompts/prompt.ts";
import type { PromptPreset } from "../prompts/prompt_context.ts";
import type { ToolOffer } from "../tools/tool_registry.ts";
import {
  type CallBuilderDeps,
  continuesPrefill,
  findHistoryEnd,
  findMessage,
  limitsOf,
  mergeParams,
  refuseEmpty,
  toClientSource,
  wantedModel,
  withoutPositions,
} from "./call_builder.ts";
import { finishPrompt, NO_TOOLS, type ReplyTools, takesTools, withTools } from "./call_tools.ts";
import type { AnyChatRequest, StatefulChatRequest } from "./chat_request.ts";
import type { HistoryEnd } from "./history.ts";
import { chooseNextSpeaker, listNextSpeakers, openReplyContext } from "./reply_context.ts";

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
  /** The tools that go with the request, and what isn't offered. Their definitions are in `params`. */
  tools: Pick<ToolOffer, "tools" | "leftOut">;
}

/** Makes previews of calls. */
export class ChatPreviewer {
  readonly #deps: CallBuilderDeps;

  constructor(deps: CallBuilderDeps) {
    this.#deps = deps;
  }

  /**
   * Returns what a request would send. Sends and stores nothing.
   *
   * @throws {AppError} As `CallBuilder.buildPassThrough`.
   */
  async preview(request: AnyChatRequest, signal: AbortSignal): Promise<ChatPreview> {
    const { store, modelRouter, prompts } = this.#deps;
    const { conversationId } = request;
    const head = conversationId === undefined ? undefined : store.find(conversationId)?.head;
    const route = await modelRouter.route(wantedModel(request, head), signal);
    const { offer, tools } = await this.#previewTools(request, route, signal);
    if (conversationId === undefined || request.context !== "server") {
      const { params } = tools === undefined ? request : withTools(request, tools);
      const source = toClientSource(request, head);
      const prompt = withoutPositions(await prompts.addDocuments(source, limitsOf(route, params), signal, false));
      return {
        route,
        context: "client",
        params: mergeFields(route.target.extraBody, params),
        prompt: tools === undefined ? prompt : finishPrompt(prompt, { request, route, tools }),
        dropped: { count: 0 },
        speakers: [],
        tools: offer,
      };
    }
    const given = { ...request, conversationId, action: request.action ?? "send" } as StatefulChatRequest;
    const stateful = tools === undefined ? given : withTools(given, tools);
    refuseEmpty(store, stateful);
    const state = store.find(conversationId) ?? newConversation(conversationId);
    const end = findHistoryEnd(this.#deps.blocks, stateful);
    const { characterId, speakers } = await this.#previewSpeakers(stateful, state, end);
    const { source, scene } = await openReplyContext(this.#deps, state, {
      end,
      characterId,
      model: route.model,
      continuesPrefill: continuesPrefill(route),
      refusesPrefill: refusesPrefill(route.target, route.model),
      action: stateful.action,
      timeZone: stateful.timeZone,
    });
    const { params, contextTokens } = mergeParams(stateful, head, scene.preset);
    const limits = { ...limitsOf(route, params, contextTokens), isExact: true };
    const prompt = await prompts.assemble(source, limits, signal, false);
    const dropped = this.#droppedMessages(conversationId, prompt);
    const extraBody = mergeFields(route.target.extraBody, scene.preset.extraBody);
    return {
      route,
      context: "server",
      params: mergeFields(extraBody, params),
      prompt: tools === undefined ? prompt : finishPrompt(prompt, { request: given, route, tools }),
      dropped,
      preset: scene.preset,
      speakers,
      tools: offer,
    };
  }

  /** Returns the tools that a reply would be sent with, undefined for a request whose answer isn't stored. */
  async #previewTools(
    request: AnyChatRequest,
    route: ModelRoute,
    signal: AbortSignal,
  ): Promise<{ offer: ChatPreview["tools"]; tools?: ReplyTools }> {
    const { conversationId, action } = request;
    const none = { tools: [], leftOut: [] };
    if (conversationId === undefined || action === "impersonate") return { offer: none };
    const listed = takesTools(request) ? await this.#deps.tools.list(conversationId, signal) : undefined;
    const isWithoutTools = this.#deps.tools.areRefused(route);
    if (isWithoutTools) return { offer: none, tools: { ...NO_TOOLS, isWithoutTools } };
    return { offer: listed ?? none, tools: { ...NO_TOOLS, definitions: listed?.definitions } };
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
    const message = findMessage(this.#deps.blocks, id, mid);
    return typeof message?.character_id === "string" ? message.character_id : undefined;
  }

  #droppedMessages(id: string, { parts, isTrimmed }: Prompt): ChatPreview["dropped"] {
    const { blocks } = this.#deps;
    const oldest = parts.find(({ messageId }) => messageId !== undefined)?.messageId;
    if (!isTrimmed || oldest === undefined) return { count: 0 };
    return { count: blocks.countBefore(id, oldest), lastMessageId: blocks.neighboursOf(id, oldest).after };
  }
}

/** A conversation that will exist once its first message is stored. */
function newConversation(id: string): ConversationState {
  return { id, revision: 0, createdAtMs: 0, updatedAtMs: 0, messageCount: 0, head: { title: "", participants: [] } };
}
