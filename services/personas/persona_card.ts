/** Parsed model name. */
import { AppError } from "../errors.ts";
import { type Card, parseCard } from "../characters/card/card.ts";

/** Parlor's extension, which distinguishes personas from characters. */
const EXTENSION = "parlor/persona";
const EXTENSION_VERSION = 1;

const NOTE = "This card is a persona of Parlor: it describes the person who chats, not a character.";

/** Maximum length of a name, in UTF-16 units. */
export const MAX_PERSONA_NAME = 200;
/** Maximum length of a description, in UTF-16 units. */
export const MAX_PERSONA_DESCRIPTION = 500_000;

/** Name and description of a persona. */
export interface PersonaText {
  name: string;
  description: string;
}

/**
 * Creates or updates the card of a persona.
 *
 * @param before The current card. Its other fields don't change.
 */
export function toPersonaCard({ name, description }: PersonaText, before?: Card): Card {
  const card = before ?? parseCard({ spec: "chara_card_v2", spec_version: "2.0", data: { name, creator_notes: NOTE } });
  const own = card.data.extensions[EXTENSION];
  const mark = { ...(typeof own === "object" ? own : {}), version: EXTENSION_VERSION };
  return {
    ...card,
    data: { ...card.data, name, description, extensions: { ...card.data.extensions, [EXTENSION]: mark } },
  };
}

/** Returns name and description from a card. */
export function getPersonaText({ data }: Card): PersonaText {
  return { name: data.name, description: data.description };
}

/**
 * Converts any card to a persona card. All fields of persona cards are preserved; from character cards, only name and
 * description are used.
 *
 * @param options.swapsNames Swaps `{{user}}` and `{{char}}` in a character's description.
 * @throws {AppError} `too_large` if the description is too long
 */
export function convertToPersonaCard(card: Card, { swapsNames }: { swapsNames: boolean }): Card {
  const name = card.data.name.trim().slice(0, MAX_PERSONA_NAME);
  const { description } = card.data;
  if (description.length > MAX_PERSONA_DESCRIPTION) {
    throw new AppError("too_large", `The description is longer than ${MAX_PERSONA_DESCRIPTION} characters`);
  }
  if (EXTENSION in card.data.extensions) return toPersonaCard({ name, description }, card);
  return toPersonaCard({ name, description: swapsNames ? swapNames(description) : description });
}

function swapNames(text: string): string {
  return text.replace(/\{\{(user|char)\}\}|<(user|char|bot)>/gi, (_, curly?: string, angle?: string) => {
    if (curly !== undefined) return curly.toLowerCase() === "user" ? "{{char}}" : "{{user}}";
    return angle!.toLowerCase() === "user" ? "<BOT>" : "<USER>";
  });
}
