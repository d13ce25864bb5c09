/** Sets the stage for a reply the server assembles: who speaks, in which scene, after which messages. */
import type { ChatMessage } from "../llm/chat_event.ts";
import type { CastMember } from "../prompts/participants.ts";
import type { PromptSource } from "../prompts/prompts.ts";
import type { OpenScene, Scenes } from "../prompts/scenes.ts";
import type { BlockStore } from "../conversations/blocks/block_store.ts";
import type { ConversationState } from "../conversations/conversation.ts";
import { type HistoryEnd, type SaidMessage, turnsOf } from "./history.ts";
import { type Message, textOfContent } from "../conversations/message.ts";
import { chooseSpeaker, nextSpeakers, type ReplyOrder, type SpeakerQuestion } from "./turn_order.ts";

/** What staging needs. */
export interface StagingParts {
  blocks: BlockStore;
  scenes: Scenes;
  now(): number;
}

/** Which reply is asked for. */
export interface StagedReply {
  end: HistoryEnd;
  action: "send" | "edit" | "regenerate" | "continue" | "impersonate";
  /** Who speaks. */
  characterId?: string;
  model: string;
  timeZone?: string;
}

/** A stage that is set. */
export interface OpenStage {
  source: PromptSource;
  scene: OpenScene;
  /** What stands between the answer that is continued and what is added; nothing where the model goes on by itself. */
  joint: string;
}

/** Messages that are looked through for who has spoken since the owner did. */
const LOOKED_THROUGH = 200;

/** Reads the scene and gives what there is to send. @throws {AppError} as `Scenes.open` and `Scenes.cast` do */
export async function setStage(
  { blocks, scenes, now }: StagingParts,
  conversation: ConversationState,
  { end, action, characterId, model, timeZone }: StagedReply,
): Promise<OpenStage> {
  const { id: conversationId, head } = conversation;
  const cast = await scenes.cast(head);
  const scene = await scenes.open({
    ...{ conversationId, fields: head, cast, model, timeZone },
    messageCount: countUpTo(blocks, conversation, end),
    greetingIndex: () => greetingOf(blocks, conversationId),
    action: action === "continue" || action === "impersonate" ? action : "reply",
    generation: action === "send" || action === "edit" ? "normal" : action,
    // A character that has left speaks no more; what it said stays under its name.
    characterId: cast.some(({ id }) => id === characterId) ? characterId : undefined,
  });
  const { hasNames, persona } = scene.scene;
  const nameOf = hasNames ? (said: SaidMessage) => nameIn(said, cast, persona.name) : undefined;
  const { continuation } = scene.preset.layout;
  const isPrefilled = action === "continue" && continuation === undefined;
  const history = turnsOf(blocks, conversationId, end, { expand: scene.expand, nameOf, isPrefilled, now });
  const source: PromptSource = {
    conversationId,
    history,
    compose: (seen) => scene.compose(seen),
    continuesLast: isPrefilled,
  };
  return { source, scene, joint: action === "continue" ? continuation?.joint ?? "" : "" };
}

/** Gives how many messages there are up to the reply; the same before and after its turn is stored. */
function countUpTo(blocks: BlockStore, { id, messageCount }: ConversationState, end: HistoryEnd): number {
  const stored = end.before === undefined
    ? messageCount
    : blocks.countBefore(id, end.before) + (end.isIncluded ? 1 : 0);
  return stored + (end.turn === undefined ? 0 : 1);
}

/** Gives which greeting stands first. */
function greetingOf(blocks: BlockStore, id: string): number | undefined {
  const row = blocks.next(id);
  const first = row && blocks.messagesOf(id, row)[0];
  return first?.role === "assistant" ? first.active_variant : undefined;
}

/** Gives who wants to speak, the first at once; see `nextSpeakers`. */
export async function speakersOf(
  parts: StagingParts,
  conversation: ConversationState,
  turn: ChatMessage | undefined,
  before?: string,
): Promise<string[]> {
  const cast = await parts.scenes.cast(conversation.head);
  return nextSpeakers(questionOf(parts, conversation, cast, turn, before));
}

/**
 * Gives who speaks in a new reply.
 *
 * @param wanted Named by hand.
 * @param before The message in whose place the turn stands, where it is no new one.
 * @throws {AppError} `invalid_request` when nobody can
 */
export async function speakerOf(
  parts: StagingParts,
  conversation: ConversationState,
  turn: ChatMessage | undefined,
  wanted: string | undefined,
  before?: string,
): Promise<string | undefined> {
  const { participants } = conversation.head;
  // One character needs no choice, and its card not be read for it.
  if (participants.length === 0 && wanted === undefined) return undefined;
  if (participants.length === 1 && (wanted ?? participants[0]!.character_id) === participants[0]!.character_id) {
    return participants[0]!.character_id;
  }
  const cast = await parts.scenes.cast(conversation.head);
  return chooseSpeaker(questionOf(parts, conversation, cast, turn, before), wanted) ?? participants[0]?.character_id;
}

function questionOf(
  { blocks }: StagingParts,
  { id, head, messageCount }: ConversationState,
  cast: readonly CastMember[],
  turn: ChatMessage | undefined,
  before?: string,
): SpeakerQuestion {
  const order = (["list", "manual"] as ReplyOrder[]).find((known) => known === head.reply_order) ?? "natural";
  const said = turn === undefined ? newest(blocks, id) : [];
  const since = said.slice(0, Math.max(0, said.findIndex(({ role }) => role === "user")));
  const last = turn === undefined ? said[0] : undefined;
  const earlier = turn === undefined ? said : newest(blocks, id, before);
  const count = before === undefined ? messageCount : blocks.countBefore(id, before);
  return {
    ...{ cast, order, seed: `${id}\n${count + (turn === undefined ? 0 : 1)}` },
    lastText: textOfContent((turn ?? last)?.content),
    lastSpeaker: earlier.map(speakerIn).find((speaker) => speaker !== undefined),
    isLastMessageTheirs: last !== undefined && speakerIn(last) !== undefined,
    spokenSince: since.map(speakerIn).filter((speaker) => speaker !== undefined),
  };
}

function newest(blocks: BlockStore, id: string, before?: string): Message[] {
  const found: Message[] = [];
  let row = before === undefined ? blocks.previous(id) : blocks.rowOf(id, before);
  for (; row !== undefined; row = blocks.previous(id, row)) {
    const messages = blocks.messagesOf(id, row);
    const end = messages.findIndex((message) => message.id === before);
    found.push(...(end < 0 ? messages : messages.slice(0, end)).toReversed());
    if (found.length > LOOKED_THROUGH) break;
  }
  return found.filter(({ hidden, status }) => hidden !== true && status !== "failed");
}

function speakerIn({ role, character_id: id }: SaidMessage): string | undefined {
  return role === "assistant" && typeof id === "string" ? id : undefined;
}

function nameIn(said: SaidMessage, cast: readonly CastMember[], userName: string): string | undefined {
  if (said.role === "user") return userName;
  const speaker = speakerIn(said);
  return cast.find(({ id }) => id === speaker)?.name;
}
