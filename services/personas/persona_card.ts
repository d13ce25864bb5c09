/** Personas as portable Tavern V2 cards: name and description where every program looks, our mark under a key of our own. */
import { AppError } from "../errors.ts";
import { type Card, cardOf } from "../characters/card/card.ts";

/** Key of our extension; it tells a persona from a character. */
const EXTENSION = "parlor/persona";
const EXTENSION_VERSION = 1;

const NOTE = "This card is a persona of Parlor: it describes the person who chats, not a character.";

/** Longest name, in UTF-16 units. */
export const MAX_PERSONA_NAME = 200;
/** Longest description, in UTF-16 units. */
export const MAX_PERSONA_DESCRIPTION = 500_000;

/** What a persona says. */
export interface PersonaText {
  name: string;
  description: string;
}

/**
 * Gives the card of a persona.
 *
 * @param before The card it had; whatever else stands in it stays.
 */
export function personaCard({ name, description }: PersonaText, before?: Card): Card {
  const card = before ?? cardOf({ spec: "chara_card_v2", spec_version: "2.0", data: { name, creator_notes: NOTE } });
  const own = card.data.extensions[EXTENSION];
  const mark = { ...(typeof own === "object" ? own : {}), version: EXTENSION_VERSION };
  return {
    ...card,
    data: { ...card.data, name, description, extensions: { ...card.data.extensions, [EXTENSION]: mark } },
  };
}

/** Gives what a card says of a persona. */
export function personaText({ data }: Card): PersonaText {
  return { name: data.name, description: data.description };
}

/**
 * Gives the persona's card of any card: of one that is a persona's everything, of a character's its name and what it says
 * of itself, for the rest of it is about somebody who is talked to.
 *
 * @param options.swapsNames Lets a character's description speak of the user where it spoke of the character, and the
 *   other way round.
 * @throws {AppError} `too_large` for a description no persona can have
 */
export function personaOfCard(card: Card, { swapsNames }: { swapsNames: boolean }): Card {
  const name = card.data.name.trim().slice(0, MAX_PERSONA_NAME);
  const { description } = card.data;
  if (description.length > MAX_PERSONA_DESCRIPTION) {
    throw new AppError("too_large", `The description is longer than ${MAX_PERSONA_DESCRIPTION} characters`);
  }
  if (EXTENSION in card.data.extensions) return personaCard({ name, description }, card);
  return personaCard({ name, description: swapsNames ? swapped(description) : description });
}

function swapped(text: string): string {
  return text.replace(/\{\{(user|char)\}\}|<(user|char|bot)>/gi, (_, curly?: string, angle?: string) => {
    if (curly !== undefined) return curly.toLowerCase() === "user" ? "{{char}}" : "{{user}}";
    return angle!.toLowerCase() === "user" ? "<BOT>" : "<USER>";
  });
}
