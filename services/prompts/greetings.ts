/** Greetings as they begin a conversation: what their macros stand for is settled there and then. */
import { Macros } from "./macros/macros.ts";
import { seededRandom } from "./seeded_random.ts";
import type { Card } from "../characters/card/card.ts";
import { NO_CARD } from "../characters/card/card_file.ts";
import type { Characters } from "../characters/characters.ts";

/**
 * Returns greetings with their macros expanded. They share the budget of one prompt; one that exceeds it stays as written.
 *
 * @param seed Another one for each conversation.
 */
export function settledGreetings(
  texts: readonly string[],
  { char, user }: { char: string; user: string },
  { seed, nowMs }: { seed: string; nowMs: number },
): string[] {
  const macros = new Macros({ char, user, fields: {}, clock: { nowMs }, random: seededRandom(seed), chat: {} });
  return texts.map((text, n) => macros.expand(text, { place: `greeting ${n}` }).trim());
}

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
 * Returns the greetings of a card by their numbers, as written: `first_mes`, then the others, in a group then those for
 * groups only.
 *
 * @returns Also the number from which they are for groups only.
 * @see V3, "group_only_greetings"
 */
export function greetingsOf(
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

/** Finds the card of a character; `undefined` where there is none to be read. */
export async function findCard(characters: Characters, id: string): Promise<Card | undefined> {
  const found = await characters.get(id).catch(NO_CARD);
  return found?.character.card;
}
