/** What a character says first, as it is shown: with the names that stand for each other in a card's text. */
import { AppError } from "../errors.ts";
import type { Card } from "./card.ts";
import type { Characters } from "./characters.ts";

/** Who talks with whom. */
export interface Names {
  char: string;
  user: string;
}

/** Gives the greetings of a card by their numbers: `first_mes`, then the others. */
export function greetingsOf({ data }: Card, userName: string): string[] {
  const names = { char: data.nickname || data.name, user: userName };
  return [data.first_mes, ...data.alternate_greetings].map((text) => withNames(text, names).trim());
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

/**
 * Gives the greetings of the first of some characters.
 *
 * @returns `undefined` when there is no such character, or no readable card of it.
 */
export async function firstGreetings(
  characters: Characters,
  [characterId]: string[],
  userName: string,
): Promise<{ characterId: string; texts: string[] } | undefined> {
  if (characterId === undefined) return undefined;
  try {
    const { character } = await characters.get(characterId);
    return { characterId, texts: greetingsOf(character.card, userName) };
  } catch (error) {
    if (error instanceof AppError && ["not_found", "unprocessable", "too_large"].includes(error.code)) return undefined;
    throw error;
  }
}
