/** Personas as portable Tavern V2 cards: name and description where every program looks, our mark under a key of our own. */
import { type Card, cardOf } from "../characters/card.ts";

/** Key of our extension; it tells a persona from a character. */
const EXTENSION = "parlor/persona";
const EXTENSION_VERSION = 1;

const NOTE = "This card is a persona of Parlor: it describes the person who chats, not a character.";

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
