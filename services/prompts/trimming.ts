/**
 * Where the history of a prompt begins that is too long. A cut moves in big steps: between them the begin of the prompt
 * stays byte by byte the same, and so does what a server has cached of it.
 */
import type { PromptEntry } from "./prompt_messages.ts";

/**
 * Where trimming begins it takes away this share of the room, so that the next turns fit without another cut: what a
 * server has cached of the prompt stays good until then.
 */
const TRIM_TO = 0.75;
/** A cut is kept while what it leaves fills at least this share: a larger model shall see more. */
const WORTH_KEEPING = 0.5;
/** Conversations whose cut is remembered. */
const CUTS = 1_000;

/** The cuts of conversations. */
export class Cuts {
  /** The oldest message that was sent, by conversation; the cut used last stands last. */
  readonly #oldest = new Map<string, string>();

  /**
   * Gives how many turns, newest first, are sent: as before while that fits, else few enough for some turns to come.
   *
   * @param remembers False for a look that must not move the cut.
   */
  choose(conversationId: string, turns: readonly PromptEntry[], room: number, remembers: boolean): number {
    const before = this.#oldest.get(conversationId);
    let kept = before === undefined ? 0 : turns.findIndex(({ messageId }) => messageId === before) + 1;
    const asBefore = total(turns.slice(0, kept));
    if (kept === 0 || asBefore > room || asBefore < room * WORTH_KEEPING) kept = fewTurns(turns, room * TRIM_TO);
    const oldest = turns[kept - 1]?.messageId;
    if (remembers && oldest !== undefined) {
      this.#oldest.delete(conversationId);
      if (this.#oldest.size >= CUTS) this.#oldest.delete(this.#oldest.keys().next().value!);
      this.#oldest.set(conversationId, oldest);
    }
    return kept;
  }

  /** A conversation fits whole again. */
  forget(conversationId: string): void {
    this.#oldest.delete(conversationId);
  }
}

/** Gives the tokens of messages or pieces together. */
export function total(counted: readonly { tokens: number }[]): number {
  return counted.reduce((sum, { tokens }) => sum + tokens, 0);
}

/** Gives how many turns, newest first, fit; at least one, and where possible up to one of the user's. */
function fewTurns(turns: readonly PromptEntry[], room: number): number {
  let count = 0;
  for (let used = 0; count < turns.length && (used += turns[count]!.tokens) <= room;) count++;
  // Some templates refuse a history that begins with an answer.
  const fromUser = turns.slice(0, count).findLastIndex(({ message }) => message.role === "user") + 1;
  return Math.max(1, fromUser || count);
}
