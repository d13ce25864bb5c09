/** What a character says first, as it is shown: with the names that stand for each other in a card's text. */
import type { Card } from "./card.ts";
import { NO_CARD } from "./card_file.ts";
import type { Characters } from "./characters.ts";

/** Stands for the name of a character that has no card. */
const NAMELESS = "Assistant";

/** Who talks with whom. */
export interface Names {
  char: string;
  user: string;
}

/** Gives the names for a chat with a character; one without a card is called by a word. */
export function namesOf(card: Card | undefined, user: string): Names {
  return { char: card?.data.nickname || card?.data.name || NAMELESS, user };
}

/**
 * Gives the greetings of a card by their numbers: `first_mes`, then the others, in a group then those for groups only.
 *
 * @returns Also the number from which they are for groups only.
 * @see V3, "group_only_greetings"
 */
export function greetingsOf(
  card: Card,
  userName: string,
  isGroup: boolean,
): { texts: string[]; groupOnlyFrom: number } {
  const names = namesOf(card, userName);
  const { first_mes, alternate_greetings, group_only_greetings } = card.data;
  const texts = [first_mes, ...alternate_greetings, ...isGroup ? group_only_greetings : []];
  return {
    texts: texts.map((text) => withNames(text, names).trim()),
    groupOnlyFrom: 1 + alternate_greetings.length,
  };
}

/**
 * Puts names in the place of `{{char}}`, `{{user}}` and their older forms, whatever their case. What else stands in double
 * braces is left as it is.
 */
export function withNames(text: string, { char, user }: Names): string {
  return text.replace(
    /\{\{(char|user)\}\}|<(bot|char|user)>/gi,
    (_, macro?: string, tag?: string) => (macro ?? tag)!.toLowerCase() === "user" ? user : char,
  );
}

/** Finds the card of a character; `undefined` where there is none to be read. */
export async function findCard(characters: Characters, id: string): Promise<Card | undefined> {
  const found = await characters.get(id).catch(NO_CARD);
  return found?.character.card;
}
