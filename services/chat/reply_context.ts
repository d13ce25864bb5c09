/**
 * Collects the parts of a prompt: the scene, the character that speaks, and the history. In groups, decides who speaks
 * next.
 */
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import { type DocumentUseStore, parseDocumentUses } from "../documents/document.ts";
import type { ConversationState } from "../conversations/conversation.ts";
import { getContentText, type Message, readPinnedMessages } from "../conversations/message.ts";
import type { ChatMessage } from "../llm/chat_event.ts";
import { createSeededRandom, type LoadedParticipant } from "../prompts/participants.ts";
import type { PromptSource } from "../prompts/prompt.ts";
import type { OpenPromptContext, PromptContexts } from "../prompts/prompt_context.ts";
import { createMessageScripts } from "./message_scripts.ts";
import type { StatefulChatRequest } from "./chat_service.ts";
import { type HistoryEnd, type HistoryMessage, readHistory } from "./history.ts";
import { AppError } from "../errors.ts";

/** Dependencies of a prompt context. */
export interface ReplyContextDeps {
  blocks: BlockStore;
  scenes: PromptContexts;
  uses: Pick<DocumentUseStore, "get" | "hasDocuments">;
  now(): number;
}

/** The reply that a prompt is for. */
interface ReplyRequest {
  end: HistoryEnd;
  action: StatefulChatRequest["action"];
  /** The character that speaks. */
  characterId?: string;
  model: string;
  /** False if the server doesn't continue a partial reply sent as the last message. */
  continuesPrefill?: boolean;
  /** True if the model refuses a prefilled reply. */
  refusesPrefill?: boolean;
  timeZone?: string;
}

/** The parts of a prompt. */
interface ReplyContext {
  source: PromptSource;
  scene: OpenPromptContext;
  /** Text between a reply and its continuation; empty if the model continues a prefilled reply. */
  joint: string;
}

/** Number of the newest messages that decide who speaks next. */
const SPEAKER_LOOKBACK = 200;

/**
 * Opens the scene and the history of a reply.
 *
 * @throws {AppError} As `PromptContexts.open` and `PromptContexts.loadParticipants`.
 */
export async function openReplyContext(
  { blocks, scenes, uses, now }: ReplyContextDeps,
  conversation: ConversationState,
  { end, action, characterId, model, timeZone, continuesPrefill, refusesPrefill }: ReplyRequest,
): Promise<ReplyContext> {
  const { id: conversationId, head } = conversation;
  const participants = await scenes.loadParticipants(head);
  const scene = await scenes.open({
    conversationId,
    fields: head,
    participants,
    model,
    continuesPrefill,
    refusesPrefill,
    timeZone,
    messageCount: countUpTo(blocks, conversation, end),
    getGreetingIndex: () => findGreetingIndex(blocks, conversationId),
    countUserMessages: () => countUserMessages(blocks, conversationId, end),
    action: action === "continue" || action === "impersonate" ? action : "reply",
    generation: action === "send" || action === "edit" ? "normal" : action,
    // A character that has left doesn't speak anymore. Its name stays in earlier messages.
    characterId: participants.some(({ id }) => id === characterId) ? characterId : undefined,
  });
  const { hasNames, persona, layout: { names } } = scene.context;
  const getSpeaker = (message: HistoryMessage) => findName(message, participants, persona.name);
  // As in SillyTavern, a preset that names speakers only in groups leaves out the persona's own name.
  const isOwn = (message: HistoryMessage) =>
    names === "group" && message.role === "user" && getSpeaker(message) === persona.name;
  const getName = hasNames ? (message: HistoryMessage) => isOwn(message) ? undefined : getSpeaker(message) : undefined;
  const getNameField = names === "field" && participants.length > 0
    ? (message: HistoryMessage) => toNameField(getSpeaker(message))
    : undefined;
  const { continuation } = scene.preset.layout;
  const isPrefilled = action === "continue" && continuation === undefined;
  const history = readHistory(blocks, conversationId, end, {
    expand: scene.expand,
    getName,
    getNameField,
    getSpeaker,
    isPrefilled,
    now,
  });
  const source: PromptSource = {
    conversationId,
    history,
    compose: (seen) => scene.compose(seen),
    runScripts: createMessageScripts(scene, action === "continue" ? 1 : 0),
    continuesLast: isPrefilled,
    pinned: readPinned(blocks, conversation, end).map((message) => ({
      id: message.id,
      name: message.role === "user" ? persona.name : findName(message, participants, persona.name) ?? "Assistant",
      text: getContentText(message.content),
    })).filter(({ text }) => text !== ""),
    documents: [
      ...scene.context.character === undefined ? [] : uses.get("character", scene.context.character.id),
      ...scene.personaId === undefined ? [] : uses.get("persona", scene.personaId),
      ...parseDocumentUses(head.documents),
    ],
    hasEarlierDocuments: uses.hasDocuments(),
  };
  return { source, scene, joint: action === "continue" ? continuation?.separator ?? "" : "" };
}

/** Lists the characters that speak next, in order. See `chooseNextSpeakers`. */
export async function listNextSpeakers(
  deps: ReplyContextDeps,
  conversation: ConversationState,
  userMessage: ChatMessage | undefined,
  before?: string,
): Promise<string[]> {
  const participants = await deps.scenes.loadParticipants(conversation.head);
  return chooseNextSpeakers(createSpeakerQuestion(deps, conversation, participants, userMessage, before));
}

/**
 * Lists the characters that answer a user message one after the other without being asked. In manual order, it's the one
 * that spoke last. Empty unless several characters take part.
 */
export async function listRound(
  deps: ReplyContextDeps,
  conversation: ConversationState,
  userMessage: ChatMessage,
): Promise<string[]> {
  if (conversation.head.participants.length < 2) return [];
  const participants = await deps.scenes.loadParticipants(conversation.head);
  const question = createSpeakerQuestion(deps, conversation, participants, userMessage);
  if (question.order !== "manual") return chooseNextSpeakers(question);
  const present = participants.filter(({ isMuted }) => !isMuted);
  return [present.find(({ id }) => id === question.lastSpeaker) ?? present[0]].flatMap((member) => member?.id ?? []);
}

/**
 * Chooses the character that speaks in a new reply.
 *
 * @param selectedId The character that the request selects.
 * @param before The message that the user message replaces.
 * @throws {AppError} `invalid_request` if no character can speak.
 */
export async function chooseNextSpeaker(
  deps: ReplyContextDeps,
  conversation: ConversationState,
  userMessage: ChatMessage | undefined,
  selectedId: string | undefined,
  before?: string,
): Promise<string | undefined> {
  const { participants } = conversation.head;
  // There is nothing to choose with a single character, so its card isn't read.
  if (participants.length === 0 && selectedId === undefined) return undefined;
  if (participants.length === 1 && (selectedId ?? participants[0]!.character_id) === participants[0]!.character_id) {
    return participants[0]!.character_id;
  }
  const loaded = await deps.scenes.loadParticipants(conversation.head);
  const question = createSpeakerQuestion(deps, conversation, loaded, userMessage, before);
  return chooseSpeaker(question, selectedId) ?? participants[0]?.character_id;
}

/** Counts the messages up to the reply. The result is the same before and after the user message is stored. */
function countUpTo(blocks: BlockStore, { id, messageCount }: ConversationState, end: HistoryEnd): number {
  const stored = end.before === undefined
    ? messageCount
    : blocks.countBefore(id, end.before) + (end.isIncluded ? 1 : 0);
  return stored + (end.userMessage === undefined ? 0 : 1);
}

/** Counts the user's messages up to the reply, without hidden ones. */
function countUserMessages(blocks: BlockStore, id: string, { before, isIncluded, userMessage }: HistoryEnd): number {
  let count = userMessage === undefined ? 0 : 1;
  for (let row = blocks.next(id); row !== undefined; row = blocks.next(id, row)) {
    for (const message of blocks.openMessages(id, row)) {
      const isEnd = message.id === before;
      if (isEnd && !isIncluded) return count;
      if (message.role === "user") count++;
      if (isEnd) return count;
    }
  }
  return count;
}

/** Reads the pinned messages before the end of the history. */
function readPinned(blocks: BlockStore, { id, head }: ConversationState, { before }: HistoryEnd): Message[] {
  const pinned = readPinnedMessages(blocks, id, head);
  if (before === undefined || pinned.length === 0) return pinned;
  const end = blocks.countBefore(id, before);
  return pinned.filter((message) => blocks.countBefore(id, message.id) < end);
}

/** Returns the number of the greeting that the conversation starts with. */
function findGreetingIndex(blocks: BlockStore, id: string): number | undefined {
  const row = blocks.next(id);
  const first = row && blocks.openMessages(id, row)[0];
  return first?.role === "assistant" ? first.active_variant : undefined;
}

function createSpeakerQuestion(
  { blocks }: ReplyContextDeps,
  { id, head, messageCount }: ConversationState,
  participants: readonly LoadedParticipant[],
  userMessage: ChatMessage | undefined,
  before?: string,
): SpeakerChoiceInput {
  const order = (["list", "manual"] as ReplyOrder[]).find((known) => known === head.reply_order) ?? "natural";
  const messages = userMessage === undefined ? listNewestMessages(blocks, id) : [];
  const sinceUser = messages.slice(0, Math.max(0, messages.findIndex(({ role }) => role === "user")));
  const last = userMessage === undefined ? messages[0] : undefined;
  const earlier = userMessage === undefined ? messages : listNewestMessages(blocks, id, before);
  const count = before === undefined ? messageCount : blocks.countBefore(id, before);
  return {
    participants,
    order,
    seed: `${id}\n${count + (userMessage === undefined ? 0 : 1)}`,
    lastText: getContentText((userMessage ?? last)?.content),
    lastSpeaker: earlier.map(findSpeaker).find((speaker) => speaker !== undefined),
    wroteLastMessage: last !== undefined && findSpeaker(last) !== undefined,
    spokenIds: sinceUser.map(findSpeaker).filter((speaker) => speaker !== undefined),
  };
}

/** Reads the newest messages, the last one first. */
function listNewestMessages(blocks: BlockStore, id: string, before?: string): Message[] {
  const found: Message[] = [];
  let row = before === undefined ? blocks.findPrevious(id) : blocks.findRow(id, before);
  for (; row !== undefined; row = blocks.findPrevious(id, row)) {
    const messages = blocks.openMessages(id, row);
    const end = messages.findIndex((message) => message.id === before);
    found.push(...(end < 0 ? messages : messages.slice(0, end)).toReversed());
    if (found.length > SPEAKER_LOOKBACK) break;
  }
  return found.filter(({ hidden, status }) => hidden !== true && status !== "failed");
}

function findSpeaker({ role, character_id: id }: HistoryMessage): string | undefined {
  return role === "assistant" && typeof id === "string" ? id : undefined;
}

/** Characters that OpenAI doesn't accept in names, and their most. */
const OUTSIDE_NAMES = /[^a-zA-Z0-9_]/g;
const MAX_NAME_CHARS = 64;

/** Returns a name as the field `name` of messages may have it, changed as SillyTavern does. */
function toNameField(name: string | undefined): string | undefined {
  return name?.replace(OUTSIDE_NAMES, "_").slice(0, MAX_NAME_CHARS) || undefined;
}

function findName(
  message: HistoryMessage,
  participants: readonly LoadedParticipant[],
  userName: string,
): string | undefined {
  // A message of another persona keeps its name.
  if (message.role === "user") return typeof message.name === "string" && message.name !== "" ? message.name : userName;
  const speaker = findSpeaker(message);
  return participants.find(({ id }) => id === speaker)?.name;
}

/** How the next speaker of a group is chosen: by mentions and talkativeness, in order, or manually. */
type ReplyOrder = "natural" | "list" | "manual";

/** What the choice of the next speaker depends on. */
export interface SpeakerChoiceInput {
  participants: readonly LoadedParticipant[];
  order: ReplyOrder;
  /** Text of the last message. */
  lastText: string;
  /** ID of the character that spoke last, if any. */
  lastSpeaker?: string;
  /** True if that character wrote the last message. */
  wroteLastMessage: boolean;
  /** IDs of the characters that have spoken since the last user message. */
  spokenIds: readonly string[];
  /** Seed of random choices, so that they stay the same until the next message. */
  seed: string;
}

/** Matches scripts without spaces between words, where a name can end anywhere. */
const HAS_WIDE = /[\u2e80-\uffff]/;
/** Minimum length of a name part to look for. Shorter ones are often articles. */
const SHORTEST_PART = 3;
/** Maximum number of parts per name to look for, since each is a pattern: the name on a card may have a megabyte. */
const MAX_PARTS = 20;
const LONGEST_PART = 200;

/**
 * Returns the characters that speak next, in order. With several characters, no mention and manual order, that is none.
 */
export function chooseNextSpeakers(question: SpeakerChoiceInput): string[] {
  const { participants, order, lastSpeaker } = question;
  const present = participants.filter(({ isMuted }) => !isMuted);
  if (participants.length <= 1) return present.map(({ id }) => id);
  if (order === "manual") return [];
  if (order === "list") {
    const last = participants.findIndex(({ id }) => id === lastSpeaker);
    const inTurn = [...participants.slice(last + 1), ...participants.slice(0, last + 1)].filter(({ isMuted }) =>
      !isMuted
    );
    const silent = inTurn.filter(({ id }) => !question.spokenIds.includes(id));
    // Each of them replies once to a user message. A request for another reply gets the next in order.
    return (silent.length > 0 ? silent : inTurn.slice(0, 1)).map(({ id }) => id);
  }
  return chooseNaturally(question, present);
}

/**
 * Chooses the character that speaks.
 *
 * @param selectedId ID of a character selected by the user; it may be muted.
 * @throws {AppError} `invalid_request` if no character can speak
 */
export function chooseSpeaker(question: SpeakerChoiceInput, selectedId: string | undefined): string | undefined {
  const { participants } = question;
  if (selectedId !== undefined) {
    if (participants.some(({ id }) => id === selectedId)) return selectedId;
    throw createRefusal(`Character "${selectedId}" isn't part of this conversation`);
  }
  if (participants.length === 0) return undefined;
  const [first] = chooseNextSpeakers(question);
  if (first !== undefined) return first;
  throw createRefusal(
    participants.every(({ isMuted }) => isMuted)
      ? "All characters of this conversation are muted"
      : "This conversation uses manual order: select the character that speaks",
  );
}

function chooseNaturally(
  { lastText, lastSpeaker, wroteLastMessage, spokenIds, seed }: SpeakerChoiceInput,
  present: LoadedParticipant[],
) {
  const random = createSeededRandom(`speakers\n${seed}`);
  const others = present.filter(({ id }) => !wroteLastMessage || id !== lastSpeaker);
  const silent = others.filter(({ id }) => !spokenIds.includes(id));
  const mentioned = silent.map((member) => ({ member, at: findMention(member, lastText) })).filter(({ at }) => at >= 0)
    .sort((a, b) => a.at - b.at).map(({ member }) => member);
  const talkative = silent.filter((member) => !mentioned.includes(member))
    .map((member) => ({ member, drawn: random(member.id) }))
    .filter(({ member, drawn }) => drawn < member.talkativeness)
    .sort((a, b) => a.drawn - b.drawn).map(({ member }) => member);
  const wanting = [...mentioned, ...talkative];
  // A character replies to the user's message, and to a request for another reply.
  const fallback = silent.length > 0 ? silent : others.length > 0 ? others : present;
  if (wanting.length === 0 && fallback.length > 0) wanting.push(chooseWeighted(fallback, random("nobody")));
  return wanting.map(({ id }) => id);
}

/** Returns the position at which a text mentions a participant; -1 if it doesn't. */
function findMention({ names }: LoadedParticipant, text: string): number {
  const parts = names.flatMap((name) => [
    name,
    ...name.split(/\s+/, MAX_PARTS).filter((part) => part.length >= SHORTEST_PART),
  ]).filter((part) => part.length <= LONGEST_PART);
  const indexes = parts.map((part) => indexOfName(part, text)).filter((index) => index >= 0);
  return indexes.length === 0 ? -1 : Math.min(...indexes);
}

function indexOfName(name: string, text: string): number {
  if (HAS_WIDE.test(name)) return text.indexOf(name);
  const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return text.search(new RegExp(`(?<![\\p{L}\\p{N}_])${escaped}(?![\\p{L}\\p{N}_])`, "iu"));
}

function chooseWeighted(members: readonly LoadedParticipant[], chance: number): LoadedParticipant {
  const weights = members.map(({ talkativeness }) => Math.max(talkativeness, 0.01));
  let left = chance * weights.reduce((sum, weight) => sum + weight, 0);
  return members.find((_, n) => (left -= weights[n]!) < 0) ?? members.at(-1)!;
}

function createRefusal(message: string): AppError {
  return new AppError("invalid_request", message, { issues: [{ path: "character_id", message }] });
}
