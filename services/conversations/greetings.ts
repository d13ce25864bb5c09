/** Creates the message with which a character starts a conversation. Its other greetings become versions of that message. */
import { uuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import type { Statement } from "../storage/database/database.ts";
import type { ConversationHead } from "./conversation.ts";
import { completeMessage, type Message } from "./message.ts";
import type { VariantStore } from "./variants.ts";

/** The greetings of a character. */
export interface Greetings {
  characterId: string;
  /** By number, with macros expanded. `""` for a number without a greeting. */
  texts: string[];
  /** Number of the first greeting for groups. Without a group there are none from this number on. */
  groupOnlyFrom: number;
}

/** Whose greetings are wanted, and for whom. */
export interface GreetingQuestion {
  characterId: string;
  personaId?: string;
  /** Whether several characters take part. */
  isGroup: boolean;
}

/** Returns the greetings of a character, `undefined` if it has none. */
export type GreetingSource = (question: GreetingQuestion) => Promise<Greetings | undefined>;

/** Returns the question for the greetings of a participant. */
export function createGreetingQuestion(head: ConversationHead, characterId: string): GreetingQuestion {
  const isGroup = head.participants.length > 1;
  return { characterId, personaId: head.persona_id as string | undefined, isGroup };
}

/** A message with a greeting. */
export interface GreetingMessage {
  message: Message;
  /** Statements that store the other greetings as versions. */
  statements(conversationId: string): Statement[];
}

/**
 * Creates a message with a greeting.
 *
 * @param wanted Number of the greeting. If that is empty, the first that isn't. Defaults to the first one for groups, or to
 *   the first of all.
 * @param now ISO 8601, UTC.
 * @returns `undefined` if the character has no greeting.
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
  const greetings = texts.filter((text) => text !== "");
  const content = asked || greetings[0];
  if (content === undefined) return undefined;
  // By number, because two greetings may have the same text.
  const active = asked ? texts.slice(0, greeting).filter((text) => text !== "").length : 0;
  const mid = uuidV7();
  const message = {
    ...completeMessage({ role: "assistant", content, character_id: characterId }, mid, now),
    variant_count: greetings.length,
    active_variant: active,
  };
  const others = greetings.flatMap((text, n) =>
    n === active ? [] : [{ mid, n, record: { content: text, status: "complete" as const, updated_at: now } }]
  );
  return { message, statements: (conversationId) => variants.restore(conversationId, others) };
}
