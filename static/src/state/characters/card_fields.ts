/** Cards as the page makes and reads them. */
import type { Card } from "../../api/types.ts";

/** Gives a card that has a name and nothing else. */
export function emptyCard(name: string): Card {
  return {
    spec: "chara_card_v3",
    spec_version: "3.0",
    data: {
      name,
      description: "",
      personality: "",
      scenario: "",
      first_mes: "",
      alternate_greetings: [],
      group_only_greetings: [],
      mes_example: "",
      system_prompt: "",
      post_history_instructions: "",
      creator: "",
      creator_notes: "",
      character_version: "",
      tags: [],
      extensions: {},
    },
  };
}

/** What the server calls an owner who gave no name, so that a chat begins as its preview said. */
export const NAMELESS_OWNER = "User";

/** One greeting of a card. */
export interface Greeting {
  /** Its number, from 0, as the server counts: those without text have one too. */
  number: number;
  text: string;
}

/** Gives the greetings a chat can begin with, the usual one first. */
export function listGreetings(card: Card): Greeting[] {
  const { first_mes, alternate_greetings } = card.data;
  return [first_mes, ...alternate_greetings]
    .map((text, number) => ({ number, text }))
    .filter(({ text }) => text.trim() !== "");
}

/** Gives the notes of a card's creator, in a language where there are any in it. @param language `en`, `de` … */
export function getCreatorNotes({ data }: Card, language: string): string {
  const own = (data.creator_notes_multilingual as Record<string, unknown> | undefined)?.[language];
  return typeof own === "string" && own.trim() !== "" ? own : data.creator_notes.trim();
}

/** Characters that names may add to a text: a card may have a name of a megabyte, and call itself a thousand times. */
const MAX_NAME_CHARS = 100_000;

/** Puts names in the places that cards keep free for them. A text that would grow too long by that stays as written. */
export function insertNames(text: string, names: { char: string; user: string }): string {
  let added = 0;
  const named = text.replace(/\{\{(char|user)\}\}|<(BOT|USER)>/gi, (written, macro?: string, tag?: string) => {
    const name = (macro ?? tag)!.toLowerCase() === "user" ? names.user : names.char;
    added += name.length;
    return added > MAX_NAME_CHARS ? written : name;
  });
  return added > MAX_NAME_CHARS ? text : named;
}
