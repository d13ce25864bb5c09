/** The time that the begin of a prompt tells: it stands still while a conversation goes on, so that the begin does too. */

/** A server hardly keeps what it cached of a prompt for longer than this silence. */
const SILENCE_MS = 30 * 60 * 1000;
/** Beyond this a told time is wrong rather than old. */
const LONGEST_MS = 3 * 60 * 60 * 1000;
const CONVERSATIONS = 1_000;

/** The clocks of conversations. */
export class PrefixClocks {
  /** The one read last stands last. */
  readonly #clocks = new Map<string, { atMs: number; readMs: number }>();

  /** Gives the time for a conversation. @param remembers False for a look. */
  of(conversationId: string, nowMs: number, remembers: boolean): number {
    const clock = this.#clocks.get(conversationId);
    const isGood = clock !== undefined && nowMs - clock.readMs < SILENCE_MS && nowMs - clock.atMs < LONGEST_MS;
    const atMs = isGood ? clock.atMs : nowMs;
    if (remembers) {
      this.#clocks.delete(conversationId);
      if (this.#clocks.size >= CONVERSATIONS) this.#clocks.delete(this.#clocks.keys().next().value!);
      this.#clocks.set(conversationId, { atMs, readMs: nowMs });
    }
    return atMs;
  }
}
