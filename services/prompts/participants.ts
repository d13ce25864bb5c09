/** The characters of a conversation, read from their cards. */
import type { Card } from "../characters/card/card.ts";
import { AppError } from "../errors.ts";
import type { SceneCharacter, SceneNote } from "./prompt_context.ts";

/** Where cards come from; implemented by the characters. */
export interface CardSource {
  /** @throws {AppError} `not_found`; `unprocessable` or `too_large` for what is no readable card */
  get(id: string): Promise<{ character: { card: Card } }>;
}

/** A character that takes part. */
export interface CastMember {
  id: string;
  /** What it is called: its nickname where it has one. */
  name: string;
  /** All it may be called by. */
  names: string[];
  /** From 0, says nothing of itself, to 1, always. */
  talkativeness: number;
  isMuted: boolean;
  card: Card;
}

/** A character as a conversation names it. */
export interface Participant {
  character_id: string;
  muted?: boolean;
  talkativeness?: number;
}

const TALKATIVENESS = 0.5;
const NOTE_DEPTH = 4;

/**
 * Reads the cards of the participants. One whose card is gone takes part no more.
 *
 * @throws {AppError} `unprocessable` or `too_large` for a card that is there and cannot be read: without it a reply would
 *   be somebody else's.
 */
export async function readCast(cards: CardSource, participants: readonly Participant[]): Promise<CastMember[]> {
  const members = await Promise.all(participants.map(async (participant) => {
    const card = await findCard(cards, participant.character_id);
    return card === undefined ? [] : [memberOf(participant, card)];
  }));
  return members.flat();
}

/** Gives what of a card reaches the prompt. */
export function sceneCharacter({ id, name, card: { data } }: CastMember): SceneCharacter {
  return {
    id,
    name,
    description: data.description,
    personality: data.personality,
    scenario: data.scenario,
    examples: data.mes_example,
    systemPrompt: data.system_prompt.trim(),
    instructions: data.post_history_instructions.trim(),
    version: data.character_version,
    note: noteOf(data.extensions.depth_prompt),
  };
}

async function findCard(cards: CardSource, id: string): Promise<Card | undefined> {
  try {
    return (await cards.get(id)).character.card;
  } catch (error) {
    if (error instanceof AppError && error.code === "not_found") return undefined;
    throw error;
  }
}

function memberOf({ character_id: id, muted, talkativeness }: Participant, card: Card): CastMember {
  const { name, nickname, extensions } = card.data;
  const called = nickname?.trim() || name;
  const own = talkativeness ?? Number.parseFloat(String(extensions.talkativeness));
  return {
    id,
    name: called,
    names: [...new Set([called, name])],
    talkativeness: Number.isFinite(own) ? Math.min(1, Math.max(0, own)) : TALKATIVENESS,
    isMuted: muted === true,
    card,
  };
}

/** `extensions.depth_prompt`: a note of the card, which other programs also leave empty or null. */
function noteOf(value: unknown): SceneNote | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { prompt, depth, role } = value as Record<string, unknown>;
  if (typeof prompt !== "string" || prompt.trim() === "") return undefined;
  return {
    text: prompt,
    depth: typeof depth === "number" && depth >= 0 ? Math.floor(depth) : NOTE_DEPTH,
    role: role === "user" || role === "assistant" ? role : "system",
  };
}
