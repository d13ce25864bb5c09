/** How a conversation with a character begins: its greeting as the first message, its other greetings as texts beside it. */
import { uuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import type { Statement } from "../storage/database/database.ts";
import type { ConversationHead } from "./conversation.ts";
import { completeMessage, type Message } from "./message.ts";
import type { VariantStore } from "./variants.ts";

/** What a character may say first. */
export interface Greetings {
  characterId: string;
  /** Ready to be shown; `""` where the card has none under that number. */
  texts: string[];
  /** Number of the first one that is for groups only; with a single character there is none behind it. */
  groupOnlyFrom: number;
}

/** Who greets whom. */
export interface GreetingQuestion {
  characterId: string;
  personaId?: string;
  /** Several characters take part. */
  isGroup: boolean;
}

/** Gives the greetings for a conversation; implemented by whoever knows the characters. `undefined`: there are none. */
export type GreetingSource = (question: GreetingQuestion) => Promise<Greetings | undefined>;

/** Asks for the greetings of one of those who take part. */
export function createGreetingQuestion(head: ConversationHead, characterId: string): GreetingQuestion {
  const isGroup = head.participants.length > 1;
  return { characterId, personaId: head.persona_id as string | undefined, isGroup };
}

/** The message that greets and what has to be written beside it. */
export interface GreetingMessage {
  message: Message;
  /** Its other texts. */
  statements(conversationId: string): Statement[];
}

/**
 * Makes the message that greets.
 *
 * @param wanted Number among the character's greetings; one without text gives the first that has some. Unsaid it is the
 *   first that was written for groups, in a group, else the first of all.
 * @param now ISO 8601, UTC.
 * @returns `undefined` where the character says nothing first.
 * @throws {AppError} `invalid_request` for a number beyond the last greeting.
 */
export function createGreeting(
  { characterId, texts, groupOnlyFrom }: Greetings,
  wanted: number | undefined,
  now: string,
  variants: VariantStore,
): GreetingMessage | undefined {
  const greeting = wanted ?? Math.max(0, texts.findIndex((text, n) => n >= groupOnlyFrom && text !== ""));
  const asked = texts[greeting];
  if (asked === undefined && greeting > 0) {
    throw new AppError("invalid_request", `Character "${characterId}" has no greeting ${greeting}`);
  }
  const told = texts.filter((text) => text !== "");
  const content = asked || told[0];
  if (content === undefined) return undefined;
  // Two greetings may read the same: the number counts, not the text.
  const active = asked ? texts.slice(0, greeting).filter((text) => text !== "").length : 0;
  const mid = uuidV7();
  const message = {
    ...completeMessage({ role: "assistant", content, character_id: characterId }, mid, now),
    variant_count: told.length,
    active_variant: active,
  };
  const others = told.flatMap((text, n) =>
    n === active ? [] : [{ mid, n, record: { content: text, status: "complete" as const, updated_at: now } }]
  );
  return { message, statements: (conversationId) => variants.restore(conversationId, others) };
}
