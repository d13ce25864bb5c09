/** Helpers to create and read cards. */
import type { Card } from "../../api/types.ts";

/** Creates a card with nothing but a name. */
export function createEmptyCard(name: string): Card {
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

/** The server's name for an owner without one, so that a chat starts as its preview shows. */
export const NAMELESS_OWNER = "User";

/** One greeting of a card. */
export interface Greeting {
  /** The index that the server uses, from 0, including greetings without text. */
  number: number;
  text: string;
}

/** Lists the greetings that a chat can start with, the default first. */
export function listGreetings(card: Card): Greeting[] {
  const { first_mes, alternate_greetings } = card.data;
  return [first_mes, ...alternate_greetings]
    .map((text, number) => ({ number, text }))
    .filter(({ text }) => text.trim() !== "");
}

/** Returns the creator's notes, in a language if available. @param language `en`, `de` … */
export function getCreatorNotes({ data }: Card, language: string): string {
  const own = (data.creator_notes_multilingual as Record<string, unknown> | undefined)?.[language];
  return typeof own === "string" && own.trim() !== "" ? own : data.creator_notes.trim();
}

/**
 * Most characters that names may add to a text: a card can have a name of a megabyte and repeat it a thousand times.
 */
const MAX_NAME_CHARS = 100_000;

/** Replaces the name placeholders of a card. Returns the text unchanged if it would grow too long. */
export function insertNames(text: string, names: { char: string; user: string }): string {
  let added = 0;
  const named = text.replace(/\{\{(char|user)\}\}|<(BOT|USER)>/gi, (written, macro?: string, tag?: string) => {
    const name = (macro ?? tag)!.toLowerCase() === "user" ? names.user : names.char;
    added += name.length;
    return added > MAX_NAME_CHARS ? written : name;
  });
  return added > MAX_NAME_CHARS ? text : named;
}
