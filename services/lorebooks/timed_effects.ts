/** Sticky, cooldown and delay: what an entry that fired earlier means for the turns after it. */
import type { ScanEntry } from "./scan_entries.ts";

/**
 * When entries last fired, to be kept with the conversation and handed in again: `"<book id>/<entry id>"` to the turn.
 * Plain JSON; only entries for which it matters are in it.
 */
export type ActivationState = Record<string, number>;

/** What an earlier turn means for an entry now. */
export type TimedEffect = "sticky" | "cooldown" | "delay";

/** Entries a state remembers. */
const MAX_REMEMBERED = 10_000;

/** Names an entry in a state. */
function stateKey({ owner, id }: ScanEntry): string {
  return `${owner.id}/${id}`;
}

/**
 * Gives what holds an entry in or out at this turn. A turn that is no later than the one at which it fired undoes that:
 * the answer is made anew, or messages went.
 */
export function timedEffect(entry: ScanEntry, state: ActivationState, turn: number): TimedEffect | undefined {
  const fired = firedBefore(entry, state, turn);
  if (fired !== undefined) {
    if (turn < fired + entry.sticky) return "sticky";
    if (turn < fired + entry.sticky + entry.cooldown) return "cooldown";
  }
  return turn < entry.delay ? "delay" : undefined;
}

/** Gives the state after these entries fired at a turn. What is still sticky keeps the turn at which it began. */
export function stateAfter(before: ActivationState, fired: readonly ScanEntry[], turn: number): ActivationState {
  const after: ActivationState = {};
  for (const [key, at] of Object.entries(before)) if (at < turn) after[key] = at;
  for (const entry of fired) {
    if (entry.sticky <= 0 && entry.cooldown <= 0) continue;
    if (timedEffect(entry, before, turn) === "sticky") continue;
    delete after[stateKey(entry)]; // the newest stand last
    after[stateKey(entry)] = turn;
  }
  return Object.fromEntries(Object.entries(after).slice(-MAX_REMEMBERED));
}

function firedBefore(entry: ScanEntry, state: ActivationState, turn: number): number | undefined {
  const key = stateKey(entry);
  const fired = Object.hasOwn(state, key) ? state[key] : undefined;
  return typeof fired === "number" && fired < turn ? fired : undefined;
}
