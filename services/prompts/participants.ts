/** Loads the characters of a conversation from their cards. */
import type { Card } from "../characters/card/card.ts";
import { AppError } from "../errors.ts";
import type { PromptCharacter, PromptNote } from "./prompt_context.ts";

/** Source of cards; implemented by `Characters`. */
export interface CardSource {
  /** @throws {AppError} `not_found`; `unprocessable` or `too_large` for an unreadable card */
  get(id: string): Promise<{ character: { card: Card } }>;
}

/** A participant with its card. */
export interface LoadedParticipant {
  id: string;
  /** The nickname, if the card has one. */
  name: string;
  /** All names the character goes by. */
  names: string[];
  /** From 0, never speaks unprompted, to 1, always does. */
  talkativeness: number;
  isMuted: boolean;
  card: Card;
}

/** A participant as stored in a conversation. */
export interface Participant {
  character_id: string;
  muted?: boolean;
  talkativeness?: number;
}

const TALKATIVENESS = 0.5;
const NOTE_DEPTH = 4;

/**
 * Loads the cards of participants. Participants whose card was deleted are skipped.
 *
 * @throws {AppError} `unprocessable` or `too_large` for an unreadable card, since a reply without it would be out of
 *   character
 */
export async function loadParticipants(
  cards: CardSource,
  participants: readonly Participant[],
): Promise<LoadedParticipant[]> {
  const members = await Promise.all(participants.map(async (participant) => {
    const card = await findCard(cards, participant.character_id);
    return card === undefined ? [] : [toLoadedParticipant(participant, card)];
  }));
  return members.flat();
}

/** Returns the card fields that are used in prompts. */
export function toPromptCharacter({ id, name, card: { data } }: LoadedParticipant): PromptCharacter {
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
    note: parseDepthPrompt(data.extensions.depth_prompt),
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

function toLoadedParticipant({ character_id: id, muted, talkativeness }: Participant, card: Card): LoadedParticipant {
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

/** Parses `extensions.depth_prompt`, which other programs may leave empty or null. */
function parseDepthPrompt(value: unknown): PromptNote | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { prompt, depth, role } = value as Record<string, unknown>;
  if (typeof prompt !== "string" || prompt.trim() === "") return undefined;
  return {
    text: prompt,
    depth: typeof depth === "number" && depth >= 0 ? Math.floor(depth) : NOTE_DEPTH,
    role: role === "user" || role === "assistant" ? role : "system",
  };
}
