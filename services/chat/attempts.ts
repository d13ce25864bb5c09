/** Replies that are written again: a failed attempt never takes the place of the answer before it. */
import { replyText } from "../conversations/message.ts";
import type { Message, MessageStatus } from "../conversations/message.ts";
import type { Statement } from "../storage/database/database.ts";
import type { VariantStore } from "../conversations/variants.ts";

/** The last try to write an answer again, where that failed; part of the message until the next success. */
export interface LastAttempt {
  status: MessageStatus;
  error?: { code: string; message: string };
  /** When it ended; ISO 8601, UTC. */
  created_at: string;
}

/** A message as it is saved at the end of a reply. */
export interface SettledMessage {
  message: Message;
  statements: Statement[];
}

/**
 * Settles a message at the end of a regenerate or a continuation.
 *
 * If that failed or was interrupted, the text before it stays active and `last_attempt` says why. Text that an attempt
 * wrote is kept as a version that isn't active; an attempt without text leaves no version. What the user stopped stays
 * active as far as it came, unless that is nothing.
 *
 * @param attempt The message as the reply leaves it.
 * @param previous Number of the version that was active before; none for a reply to a new message.
 * @param now ISO 8601, UTC.
 */
export function settleAttempt(
  variants: VariantStore,
  conversationId: string,
  attempt: Message,
  previous: number | null,
  now: string,
): SettledMessage {
  const { last_attempt: _, ...settled } = attempt as Message;
  if (previous === null || attempt.status === "complete") return { message: settled as Message, statements: [] };
  const record = variants.find(conversationId, attempt.id, previous);
  if (record === undefined) return { message: attempt, statements: [] };
  const isContinued = previous === attempt.active_variant;
  const hasText = replyText(attempt) !== (isContinued ? replyText(record) : "");
  if (hasText && (isContinued || attempt.status === "stopped")) return { message: settled as Message, statements: [] };
  const { lorebook_state: __, ...rest } = attempt;
  const before = variants.switched(conversationId, rest as Message, previous);
  const message: Message = {
    ...before,
    variant_count: isContinued || hasText ? attempt.variant_count : attempt.variant_count - 1,
  };
  if (attempt.status !== "stopped") {
    const { status, error } = attempt;
    message.last_attempt = { status, ...(error && { error }), created_at: now } satisfies LastAttempt;
  }
  return { message, statements: hasText ? variants.keep(conversationId, { ...attempt, updated_at: now }) : [] };
}

/** Gives the failed attempt of a message as a message of its own, so that a follower of that attempt gets its text and its end. */
export function attemptOf(variants: VariantStore, conversationId: string, message: Message): Message {
  const attempt = message.last_attempt as LastAttempt | undefined;
  if (attempt === undefined) return message;
  const n = message.variant_count - 1;
  const record = n === message.active_variant ? undefined : variants.find(conversationId, message.id, n);
  const isItsText = record?.updated_at === attempt.created_at;
  const { reasoning: _, usage: __, timings: ___, tool_calls: ____, finish_reason: _____, ...rest } = message;
  return {
    ...rest,
    content: "",
    ...(isItsText && record),
    status: attempt.status,
    error: attempt.error,
  } as Message;
}
