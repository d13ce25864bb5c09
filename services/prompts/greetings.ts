/** The greetings of a character, with macros expanded when a conversation starts. */
import { Macros } from "./macros/macros.ts";
import { createSeededRandom } from "./seeded_random.ts";
import type { Card } from "../characters/card/card.ts";
import { NO_CARD } from "../characters/card/card_file.ts";
import type { Characters } from "../characters/characters.ts";

/**
 * Expands the macros of greetings. They share the macro budget of one prompt; a greeting that exceeds it stays as
 * written.
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
