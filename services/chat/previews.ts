/** Previews of the call that a chat request would make, and of the lorebook entries that would be activated. */
import type { ConversationHead, ConversationState } from "../conversations/conversation.ts";
import { mergeFields } from "../llm/openai/openai_request.ts";
import type { ModelRoute } from "../llm/model_router.ts";
import { refusesPrefill } from "../llm/refused_fields.ts";
import { type Prompt, type PromptLimits, toPromptPreset } from "../prompts/prompt.ts";
import type { Presets } from "../presets/presets.ts";
import { type LoreSettings, toScanLimits } from "../prompts/compose_context.ts";
import type { PromptContextDeps, PromptPreset } from "../prompts/prompt_context.ts";
import type { ToolOffer } from "../tools/tool_registry.ts";
import {
  type CallBuilderDeps,
  continuesPrefill,
  findHistoryEnd,
  findMessage,
  getPromptLimits,
  getRequestedModel,
  mergeParams,
  refuseEmpty,
  toClientSource,
  withoutPositions,
} from "./call_builder.ts";
import { finishPrompt, NO_TOOLS, type ReplyTools, usesOwnTools, withTools } from "./call_tools.ts";
import type { AnyChatRequest, ChatRequest, StatefulChatRequest } from "./chat_service.ts";
import { type HistoryEnd, readHistory } from "./history.ts";
import { chooseNextSpeaker, listNextSpeakers, openReplyContext } from "./reply_context.ts";
import type { Card } from "../characters/card/card.ts";
import type { Characters } from "../characters/characters.ts";
import { createSeededRandom, findCharacterCard, toGreetingNames, toLoreCharacter } from "../prompts/participants.ts";
import type { ConversationStore } from "../conversations/conversation_store.ts";
import type { ParsedLorebook } from "../lorebooks/lorebook_file.ts";
import type { Lorebooks } from "../lorebooks/lorebooks.ts";
import {
  activate,
  type Activation,
  type ActivationInput,
  type KeyMatcher,
  type LorebookScanSource,
  type ScannedMessage,
} from "../lorebooks/activation.ts";
import type { Personas } from "../personas/personas.ts";
import { Macros } from "../prompts/macros/macros.ts";
import { estimateTokens, splitContent } from "../llm/token_count.ts";
import { AppError } from "../errors.ts";
import type { ActivationBook } from "../lorebooks/scan_entries.ts";

/** The call that a request would make. */
export interface ChatPreview {
  route: ModelRoute;
  context: "client" | "server";
  params: Record<string, unknown>;
  prompt: Prompt;
  /** Messages at the start of the conversation that don't fit, including hidden ones. */
  dropped: { count: number; lastMessageId?: string };
  /** The preset in use. */
  preset?: Pick<PromptPreset, "id" | "name">;
  /** Ids of the characters that would speak, in order. */
  speakers: string[];
  /** The tools of the request, and those that aren't offered. Their definitions are in `params`. */
  tools: Pick<ToolOffer, "tools" | "leftOut">;
}

/** Creates previews of calls. */
export class ChatPreviewer {
  readonly #deps: CallBuilderDeps;

  constructor(deps: CallBuilderDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the call that a request would make, without sending or storing anything.
   *
   * @throws {AppError} As `CallBuilder.buildUnstored`.
   */
  async preview(request: AnyChatRequest, signal: AbortSignal): Promise<ChatPreview> {
    const { store, modelRouter, prompts } = this.#deps;
    const { conversationId } = request;
    const head = conversationId === undefined ? undefined : store.find(conversationId)?.head;
    const route = await modelRouter.route(getRequestedModel(request, head), signal);
    const { offer, tools } = await this.#previewTools(request, route, signal);
    if (conversationId === undefined || request.context !== "server") {
      const { params } = tools === undefined ? request : withTools(request, tools);
      const source = toClientSource(request, head);
      const prompt = withoutPositions(
        await prompts.addDocuments(source, getPromptLimits(route, params), signal, false),
      );
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
    const stored = { ...request, conversationId, action: request.action ?? "send" } as StatefulChatRequest;
    const stateful = tools === undefined ? stored : withTools(stored, tools);
    refuseEmpty(store, stateful);
    const state = store.find(conversationId) ?? createConversation(conversationId);
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
    const limits = { ...getPromptLimits(route, params, contextTokens), isExact: true } satisfies PromptLimits;
    const prompt = await prompts.assemble(source, limits, signal, false);
    const dropped = this.#listDropped(conversationId, prompt);
    const extraBody = mergeFields(route.target.extraBody, scene.preset.extraBody);
    return {
      route,
      context: "server",
      params: mergeFields(extraBody, params),
      prompt: tools === undefined ? prompt : finishPrompt(prompt, { request: stored, route, tools }),
      dropped,
      preset: scene.preset,
      speakers,
      tools: offer,
    };
  }

  /** Returns the tools that would be offered to the model; `undefined` for a request whose reply isn't stored. */
  async #previewTools(
    request: AnyChatRequest,
    route: ModelRoute,
    signal: AbortSignal,
  ): Promise<{ offer: ChatPreview["tools"]; tools?: ReplyTools }> {
    const { conversationId, action } = request;
    const none = { tools: [], leftOut: [] };
    if (conversationId === undefined || action === "impersonate") return { offer: none };
    const listed = usesOwnTools(request) ? await this.#deps.tools.list(conversationId, signal) : undefined;
    const isWithoutTools = this.#deps.tools.isRefusedBy(route);
    if (isWithoutTools) return { offer: none, tools: { ...NO_TOOLS, isWithoutTools } };
    return { offer: listed ?? none, tools: { ...NO_TOOLS, definitions: listed?.definitions } };
  }

  async #previewSpeakers(
    request: StatefulChatRequest,
    state: ConversationState,
    { before, userMessage }: HistoryEnd,
  ): Promise<{ characterId?: string; speakers: string[] }> {
    if (before !== undefined && userMessage === undefined) {
      const characterId = this.#findSpeaker(state.id, before);
      return { characterId, speakers: characterId === undefined ? [] : [characterId] };
    }
    if (request.action === "impersonate") return { characterId: request.characterId, speakers: [] };
    const characterId = await chooseNextSpeaker(this.#deps, state, userMessage, request.characterId, before);
    const isGroup = state.head.participants.length > 1;
    const next = isGroup ? await listNextSpeakers(this.#deps, state, userMessage, before) : [];
    const others = next.filter((id) => id !== characterId);
    return { characterId, speakers: characterId === undefined ? [] : [characterId, ...others] };
  }

  /** Returns the ID of the character that wrote a message. */
  #findSpeaker(id: string, mid: string): string | undefined {
    const message = findMessage(this.#deps.blocks, id, mid);
    return typeof message?.character_id === "string" ? message.character_id : undefined;
  }

  #listDropped(id: string, { parts, isTrimmed }: Prompt): ChatPreview["dropped"] {
    const { blocks } = this.#deps;
    const oldest = parts.find(({ messageId }) => messageId !== undefined)?.messageId;
    if (!isTrimmed || oldest === undefined) return { count: 0 };
    return { count: blocks.countBefore(id, oldest), lastMessageId: blocks.getNeighbors(id, oldest).after };
  }
}

/** Returns a conversation that will exist once its first message is stored. */
function createConversation(id: string): ConversationState {
  return { id, revision: 0, createdAtMs: 0, updatedAtMs: 0, messageCount: 0, head: { title: "", participants: [] } };
}

/** Dependencies of `createLorebookTrial`. */
interface LorebookTestDeps extends Pick<CallBuilderDeps, "blocks" | "modelRouter" | "prompts"> {
  store: ConversationStore;
  lorebooks: Lorebooks;
  keyMatcher: KeyMatcher;
  characters: Characters;
  personas: Personas;
  presets: Pick<Presets, "resolve">;
  /** The owner's name without a persona, and the persona of conversations without one. */
  getOwner: PromptContextDeps["getOwner"];
  getLoreSettings: PromptContextDeps["getLoreSettings"];
}

/** Maximum number of messages to scan. The newest are scanned. */
const MAX_MESSAGES = 1_000;
/** Most time that a server may take to name its models. */
const ROUTE_TIMEOUT_MS = 3_000;

/** Tests lorebooks on conversations and texts; see `tryLorebook`. */
export type LorebookTest = (request: LorebookTestRequest) => Promise<Activation>;

/**
 * Creates the function that tests a lorebook on a text or a conversation, including its macros and the texts around the
 * messages. The result says which entries are activated by which key, and which are dropped.
 */
export function createLorebookTest(deps: LorebookTestDeps): LorebookTest {
  return (request) =>
    tryLorebook(request, {
      lorebooks: deps.lorebooks,
      matcher: deps.keyMatcher,
      countTokens: (text) => Math.ceil(estimateTokens(text)),
      getConversation: (id) => loadScannedConversation(id, deps),
      getLoreSettings: deps.getLoreSettings,
      findPromptTokens: (id) => findPromptTokens(id === undefined ? undefined : deps.store.get(id).head, deps),
    });
}

/** Finds the most tokens of the next prompt. @returns `Infinity` if no model can be asked. */
async function findPromptTokens(
  head: ConversationHead | undefined,
  { modelRouter, presets, prompts }: LorebookTestDeps,
): Promise<number> {
  const request: ChatRequest = { messages: [], params: {} };
  const requested = getRequestedModel(request, head);
  const route = await modelRouter.route(requested, AbortSignal.timeout(ROUTE_TIMEOUT_MS)).catch(() => undefined);
  if (route === undefined) return Infinity;
  const conversationPresetId = typeof head?.preset_id === "string" ? head.preset_id : undefined;
  const preset = toPromptPreset(await presets.resolve({ conversationPresetId, model: route.model }), "normal");
  const { params, contextTokens } = mergeParams(request, head, preset);
  return await prompts.findBudget(getPromptLimits(route, params, contextTokens));
}

/**
 * Loads the texts to scan: the same as for the next prompt of the conversation's first character.
 *
 * @throws {AppError} `not_found`
 */
async function loadScannedConversation(id: string, deps: LorebookTestDeps): Promise<ScannedConversation> {
  const { head, messageCount } = deps.store.get(id);
  const owner = deps.getOwner();
  const personaId = typeof head.persona_id === "string" ? head.persona_id : owner.personaId;
  const persona = personaId === undefined ? undefined : await deps.personas.find(personaId);
  const characterId = head.participants[0]?.character_id;
  const card = characterId === undefined ? undefined : await findCharacterCard(deps.characters, characterId);
  const names = toGreetingNames(card, persona?.name ?? owner.name);
  const { scansNames } = deps.getLoreSettings();
  const toScanned = ({ role, text }: ScannedMessage): ScannedMessage => ({
    ...{ role, text },
    ...(scansNames && { name: role === "user" ? names.user : names.char }),
  });
  const messages = readHistory(deps.blocks, id, {}, { now: Date.now }).take(MAX_MESSAGES)
    .filter(({ message }) => message.role !== "tool")
    .map(({ message }) => toScanned({ role: message.role, text: splitContent(message).text })).toArray().reverse();
  const texts: [LorebookScanSource, unknown][] = [
    ["persona", persona?.description],
    ["description", card?.data.description],
    ["personality", card?.data.personality],
    ["depth_prompt", (card?.data.extensions.depth_prompt as { prompt?: unknown } | null | undefined)?.prompt],
    ["scenario", card?.data.scenario],
    ["creator_notes", card?.data.creator_notes],
  ];
  const macros = new Macros({
    ...names,
    fields: { persona: persona?.description, ...getMacroFields(card) },
    clock: { nowMs: Date.now() },
    random: createSeededRandom(id),
    chat: {},
  });
  return {
    messages,
    messageCount,
    toScanned,
    scanTexts: texts.flatMap(([source, text]) => typeof text === "string" && text !== "" ? [{ source, text }] : []),
    character: toLoreCharacter(characterId === undefined || card === undefined ? undefined : { id: characterId, card }),
    expand: (text) => macros.expand(text, { location: `lore\n${text}` }),
  };
}

function getMacroFields(card: Card | undefined) {
  if (card === undefined) return {};
  const { description, personality, scenario, mes_example: mesexamples, creator_notes: creatornotes } = card.data;
  return { description, personality, scenario, mesexamples, creatornotes };
}

/** A conversation to scan. */
interface ScannedConversation {
  /** Oldest first, without hidden messages. The newest ones are enough. */
  messages: ScannedMessage[];
  /** Number of messages in the whole conversation. */
  messageCount: number;
  /** Adds the speaker's name, if names are scanned. */
  toScanned(message: ScannedMessage): ScannedMessage;
  /** Texts scanned besides the messages. */
  scanTexts: NonNullable<ActivationInput["scanTexts"]>;
  character: ActivationInput["character"];
  /** Expands macros as in a prompt. */
  expand(text: string): string;
}

/** What to test. */
interface LorebookTestRequest {
  /** A draft; alternatively the ID of a stored book. */
  draft?: ParsedLorebook;
  lorebookId?: string;
  /** The conversation to scan, and a text to scan as its last message or alone. */
  conversationId?: string;
  text?: string;
  budgetTokens?: number;
}

/** Dependencies of a trial. */
interface ActivationTestDeps {
  lorebooks: Lorebooks;
  matcher: KeyMatcher;
  /** @throws {AppError} `not_found` */
  getConversation(id: string): Promise<ScannedConversation>;
  countTokens(text: string): number;
  getLoreSettings(): LoreSettings;
  /** Returns the most tokens of the next prompt of a conversation, or of a new one. */
  findPromptTokens(conversationId?: string): Promise<number>;
}

/** Id of a draft in results. */
const DRAFT = "draft";

/**
 * Tests a book, with the owner's limits as in a prompt. Entries with a probability are always activated in a test, and the result includes it. Timed effects
 * don't apply.
 *
 * @throws {AppError} `invalid_request` without a book or anything to scan; `not_found`; `unprocessable`
 */
async function tryLorebook(request: LorebookTestRequest, deps: ActivationTestDeps): Promise<Activation> {
  const owner = await loadBook(request, deps.lorebooks);
  if (request.conversationId === undefined && request.text === undefined) {
    throw createInvalidTestError("conversation_id", "a conversation or a text to scan is required");
  }
  const scanned = request.conversationId === undefined ? undefined : await deps.getConversation(request.conversationId);
  const testMessages = request.text === undefined ? [] : [{ role: "user", text: request.text }];
  const settings = deps.getLoreSettings();
  const hasShare = request.budgetTokens === undefined && settings.budgetPercent > 0;
  const limits = toScanLimits(settings, hasShare ? await deps.findPromptTokens(request.conversationId) : Infinity);
  return await activate({
    ...limits,
    books: [owner],
    messages: [...scanned?.messages ?? [], ...testMessages.map((message) => scanned?.toScanned(message) ?? message)],
    messageCount: (scanned?.messageCount ?? 0) + testMessages.length,
    ...(scanned && { expand: scanned.expand, scanTexts: scanned.scanTexts, character: scanned.character }),
    countTokens: deps.countTokens,
    budgetTokens: request.budgetTokens ?? limits.budgetTokens,
    matcher: deps.matcher,
    random: () => 0,
  });
}

async function loadBook({ draft, lorebookId }: LorebookTestRequest, lorebooks: Lorebooks): Promise<ActivationBook> {
  if (draft !== undefined) return { id: DRAFT, name: draft.name ?? "", scope: "chat", book: draft.book };
  if (lorebookId === undefined) throw createInvalidTestError("book", "a book or its ID is required");
  const { id, head, body } = await lorebooks.get(lorebookId);
  return { id, name: head.name, scope: "chat", book: body };
}

function createInvalidTestError(path: string, message: string): AppError {
  return new AppError("invalid_request", `Can't test the lorebook: ${message}`, { issues: [{ path, message }] });
}
