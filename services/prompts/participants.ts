/**
 * The characters of a conversation: loads their cards, expands their greetings, and provides reproducible random
 * numbers, so that assembling a prompt twice produces the same prompt.
 */
import type { Card } from "../characters/card/card.ts";
import { AppError } from "../errors.ts";
import { asObject } from "../json/type_guards.ts";
import type { CharacterAuthorNote, PromptCharacter, PromptNote } from "./prompt_context.ts";
import { Macros, type SeededRandom } from "./macros/macros.ts";
import { NO_CARD } from "../characters/card/card_file.ts";
import type { LoreCharacter } from "../lorebooks/activation.ts";
import type { Characters } from "../characters/characters.ts";
import { createHash, type Hash } from "node:crypto";

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
  /** From 0 (never speaks unprompted) to 1 (always does). */
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
/** SillyTavern's default depth of notes, and of entries around an author's note that doesn't exist. */
export const NOTE_DEPTH = 4;

/**
 * Loads the cards of participants. Participants whose card was deleted are skipped.
 *
 * @throws {AppError} `unprocessable` or `too_large` for an unreadable card, because a reply without it would be out of
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
    creatorNotes: data.creator_notes,
    greetings: [data.first_mes, ...data.alternate_greetings],
    note: parseDepthPrompt(data.extensions.depth_prompt),
    authorNote: parseAuthorNote(asObject(data.extensions.parlor).note),
  };
}

/** Returns what entries of lorebooks may be limited to: all names, the ID, and the tags of a character. */
export function toLoreCharacter(speaker: Pick<LoadedParticipant, "id" | "card"> | undefined): LoreCharacter {
  if (speaker === undefined) return { names: [], tags: [] };
  const { name, nickname = "", tags } = speaker.card.data;
  return { names: [name, nickname, speaker.id], tags };
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

/** Parses the author's note of a character, which is stored in its card as `extensions.parlor.note`. */
function parseAuthorNote(value: unknown): CharacterAuthorNote | undefined {
  const { text, place } = asObject(value);
  if (typeof text !== "string" || text.trim() === "") return undefined;
  return { text, place: place === "before" || place === "after" ? place : "replace" };
}

/**
 * Expands the macros of greetings. They share the macro budget of one prompt; a greeting that exceeds it isn't
 * expanded.
 *
 * @param seed Different for each conversation.
 */
export function expandGreetings(
  texts: readonly string[],
  { char, user }: { char: string; user: string },
  { seed, nowMs }: { seed: string; nowMs: number },
): string[] {
  const macros = new Macros({ char, user, fields: {}, clock: { nowMs }, random: createSeededRandom(seed), chat: {} });
  return texts.map((text, n) => macros.expand(text, { location: `greeting ${n}` }).trim());
}

/** Name of a character without a card. */
const NAMELESS = "Assistant";

/** Values of `{{char}}` and `{{user}}`. */
export interface GreetingNames {
  char: string;
  user: string;
}

/** Returns the macro values for a chat with a character. */
export function toGreetingNames(card: Card | undefined, user: string): GreetingNames {
  return { char: card?.data.nickname || card?.data.name || NAMELESS, user };
}

/**
 * Lists the greetings of a card as written: `first_mes`, alternate greetings and, in groups, group-only greetings.
 *
 * @returns Also the index of the first group-only greeting.
 * @see docs/protocols/cards.md
 */
export function listGreetings(
  card: Card,
  isGroup: boolean,
): { texts: string[]; groupOnlyFrom: number } {
  const { first_mes, alternate_greetings, group_only_greetings } = card.data;
  const texts = [first_mes, ...alternate_greetings, ...isGroup ? group_only_greetings : []];
  return {
    texts,
    groupOnlyFrom: 1 + alternate_greetings.length,
  };
}

/** Finds the card of a character. @returns `undefined` if the character is missing or its card unreadable. */
export async function findCharacterCard(characters: Characters, id: string): Promise<Card | undefined> {
  const found = await characters.get(id).catch(NO_CARD);
  return found?.character.card;
}

/** Maximum number of cached hashes. */
const MAX_HASHES = 32;

/** Creates a random source from a seed, such as a conversation id. Long seeds and keys are hashed only once. */
export function createSeededRandom(seed: string): SeededRandom {
  const seeded = createHash("sha256").update(`${seed}\n`);
  const hashes = new Map<string, Hash>();
  return (key, detail) => {
    if (detail === undefined) return toFraction(seeded.copy().update(key));
    let hash = hashes.get(key);
    if (hash === undefined) {
      if (hashes.size >= MAX_HASHES) hashes.clear();
      hashes.set(key, hash = seeded.copy().update(`${key}\n`));
    }
    return toFraction(hash.copy().update(detail));
  };
}

function toFraction(hash: Hash): number {
  return hash.digest().readUIntBE(0, 6) / 2 ** 48;
}
