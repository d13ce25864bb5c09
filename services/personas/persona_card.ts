/** Parsed model name. */
import { AppError } from "../errors.ts";
import { type Card, parseCard } from "../characters/card/card.ts";
import { type ReadCard, toReadCard } from "../characters/card/card_codec.ts";
import { type CardEdits, editCard } from "../characters/card/card_work.ts";

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

/** Creates the card of a persona. */
export function createPersonaCard(text: PersonaText): ReadCard {
  const empty = parseCard({ spec: "chara_card_v2", spec_version: "2.0", data: { ...text, creator_notes: NOTE } });
  return toReadCard(editCard(empty, toPersonaEdits(text)));
}

/** Returns the changes that make a card that of a persona. Its other fields don't change. */
export function toPersonaEdits({ name, description }: PersonaText): CardEdits {
  return { set: { name, description, extensions: { [EXTENSION]: { version: EXTENSION_VERSION } } } };
}

/** Reports whether a card was made for a persona. */
export function isPersonaCard({ data }: Card): boolean {
  return EXTENSION in data.extensions;
}

/** Returns name and description from a card. */
export function getPersonaText({ data }: Card): PersonaText {
  return { name: data.name, description: data.description };
}

/**
 * Returns the text of a persona from any card. Persona cards keep all other fields; of a character card, only name and
 * description are used.
 *
 * @param options.swapsNames Swaps `{{user}}` and `{{char}}` in a character's description.
 * @throws {AppError} `too_large` if the description is too long
 */
export function convertToPersonaText(card: Card, { swapsNames }: { swapsNames: boolean }): PersonaText {
  const name = card.data.name.trim().slice(0, MAX_PERSONA_NAME);
  const { description } = card.data;
  if (description.length > MAX_PERSONA_DESCRIPTION) {
    throw new AppError("too_large", `The description is longer than ${MAX_PERSONA_DESCRIPTION} characters`);
  }
  return { name, description: swapsNames && !isPersonaCard(card) ? swapNames(description) : description };
}

function swapNames(text: string): string {
  return text.replace(/\{\{(user|char)\}\}|<(user|char|bot)>/gi, (_, curly?: string, angle?: string) => {
    if (curly !== undefined) return curly.toLowerCase() === "user" ? "{{char}}" : "{{user}}";
    return angle!.toLowerCase() === "user" ? "<BOT>" : "<USER>";
  });
}
