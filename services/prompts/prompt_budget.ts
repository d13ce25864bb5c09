/**
 * The token budget of a prompt, and where a trimmed history starts. The trim point moves in large steps; between them the start of the prompt
 * stays byte for byte the same, and the server's prompt cache stays valid.
 */
import { getDefaultMaxTokens } from "../llm/provider.ts";
import type { PromptEntry } from "./prompt_messages.ts";
import type { PromptLimits } from "./prompt.ts";
import type { ContextSize } from "./token_counter.ts";

/** Reserved for the tokens of the template around the messages. */
export const MARGIN_TOKENS = 16;

/** Share of the budget that is filled when trimming, so that the next messages fit without trimming again. */
const TRIM_TO = 0.75;
/** A trim point is kept while the history fills at least this share. A larger context should show more. */
const WORTH_KEEPING = 0.5;
/** Maximum number of remembered conversations. */
const MAX_CONVERSATIONS = 1_000;

/** The trim points of conversations. */
export class TrimPoints {
  /** The oldest message sent, by conversation, ordered by last use. */
  readonly #oldest = new Map<string, string>();

  /**
   * Returns how many messages, newest first, are sent: up to the last trim point while that fits, else few enough to
   * leave some space.
   *
   * @param remembers False for previews, which must not move the trim point.
   */
  choose(conversationId: string, turns: readonly PromptEntry[], room: number, remembers: boolean): number {
    const before = this.#oldest.get(conversationId);
    let kept = before === undefined ? 0 : turns.findIndex(({ messageId }) => messageId === before) + 1;
    const asBefore = sumTokens(turns.slice(0, kept));
    if (kept === 0 || asBefore > room || asBefore < room * WORTH_KEEPING) {
      kept = countFittingMessages(turns, room * TRIM_TO);
    }
    const oldest = turns[kept - 1]?.messageId;
    if (remembers && oldest !== undefined) {
      this.#oldest.delete(conversationId);
      if (this.#oldest.size >= MAX_CONVERSATIONS) this.#oldest.delete(this.#oldest.keys().next().value!);
      this.#oldest.set(conversationId, oldest);
    }
    return kept;
  }

  /** Forgets the trim point of a conversation that fits again. */
  forget(conversationId: string): void {
    this.#oldest.delete(conversationId);
  }
}

/** Sums the tokens of messages or blocks. */
export function sumTokens(counted: readonly { tokens: number }[]): number {
  return counted.reduce((sum, { tokens }) => sum + tokens, 0);
}

/** Returns how many messages, newest first, fit: at least one, and if possible ending with a user message. */
function countFittingMessages(turns: readonly PromptEntry[], room: number): number {
  let count = 0;
  for (let used = 0; count < turns.length && (used += turns[count]!.tokens) <= room;) count++;
  // Some templates refuse a history that starts with a reply.
  const fromUser = turns.slice(0, count).findLastIndex(({ message }) => message.role === "user") + 1;
  return Math.max(1, fromUser || count);
}

/**
 * Returns how many messages, newest first, are sent so that no result of a tool is without its call. Results that begin the
 * history are dropped, except the newest, which need their call.
 */
export function keepResultsWithCalls(turns: readonly PromptEntry[], kept: number): number {
  const isResult = (index: number) => turns[index]?.message.role === "tool";
  let count = kept;
  while (count > 0 && isResult(count - 1)) count--;
  if (count > 0) return count;
  while (isResult(count)) count++;
  return Math.min(turns.length, count + 1);
}

/** Returns the context size within the limit of a preset. */
export function withContextLimit(
  { tokens, isAssumed }: ContextSize,
  { contextTokens = Infinity }: PromptLimits,
): ContextSize {
  return { tokens: Math.min(tokens, contextTokens), isAssumed };
}

/** Divides a context between messages and reply. */
export function computeBudget(
  { tokens, isAssumed }: ContextSize,
  { target, answerTokens, toolTokens = 0 }: PromptLimits,
) {
  const wanted = answerTokens ?? getDefaultMaxTokens({ ...target, contextSize: isAssumed ? undefined : tokens });
  const answer = Math.min(Math.max(0, wanted), Math.floor(tokens / 2));
  return { answerTokens: answer, budget: Math.max(1, tokens - answer - toolTokens - MARGIN_TOKENS) };
}
