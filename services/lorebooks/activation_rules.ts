/** Inclusion groups: of entries that share a group's name only one goes into a prompt. */
import type { ActivatedEntry, ActivationReason, EntryName } from "./activation.ts";
import type { ScanEntry } from "./scan_entries.ts";

/** An entry that fires. */
export interface Candidate {
  entry: ScanEntry;
  reason: ActivationReason;
  /** How many of its keys were found. */
  score: number;
  isSticky?: true;
}

/**
 * Leaves one candidate a group: one that is sticky, else the one that overrides by the highest order, else one by chance
 * in the proportion of the weights. Where an entry asks for scoring, those with fewer keys found go first.
 *
 * @param active Entries that are in already; their groups are taken.
 */
export function chooseInGroups(
  candidates: readonly Candidate[],
  active: readonly ScanEntry[],
  random: (name: string) => number,
): { chosen: Candidate[]; dropped: Candidate[] } {
  const dropped = new Set<Candidate>();
  const taken = new Set(active.flatMap(({ groups }) => groups));
  const groups = new Map<string, Candidate[]>();
  for (const candidate of candidates) {
    for (const name of new Set(candidate.entry.groups)) {
      const members = groups.get(name);
      if (members === undefined) groups.set(name, [candidate]);
      else members.push(candidate);
    }
  }
  for (const [name, all] of groups) {
    const members = all.filter((member) => !dropped.has(member));
    const winner = taken.has(name) ? undefined : winnerOf(withBestScore(members), () => random(`group/${name}`));
    for (const member of members) if (member !== winner) dropped.add(member);
  }
  return { chosen: candidates.filter((member) => !dropped.has(member)), dropped: [...dropped] };
}

function withBestScore(members: Candidate[]): Candidate[] {
  if (!members.some(({ entry }) => entry.useGroupScoring)) return members;
  const best = members.reduce((most, { score }) => Math.max(most, score), 0);
  return members.filter(({ entry, score, isSticky }) => isSticky || !entry.useGroupScoring || score === best);
}

function winnerOf(members: Candidate[], random: () => number): Candidate | undefined {
  if (members.length <= 1) return members[0];
  const sticky = members.find(({ isSticky }) => isSticky);
  if (sticky !== undefined) return sticky;
  const overriding = members.filter(({ entry }) => entry.groupOverride);
  if (overriding.length > 0) return overriding.reduce((a, b) => b.entry.order > a.entry.order ? b : a);
  let left = random() * members.reduce((sum, { entry }) => sum + entry.groupWeight, 0);
  return members.find(({ entry }) => (left -= entry.groupWeight) < 0) ?? members[0];
}

/** Gives an entry as it goes into the prompt. @param turn Messages of the conversation, for a depth from its begin. */
export function shownAs(
  entry: ScanEntry,
  { content, tokens, reason, turn }: { content: string; tokens: number; reason: ActivationReason; turn: number },
): ActivatedEntry {
  const { position, role, order, decorators } = entry;
  const isReversed = decorators.reverseDepth !== undefined && decorators.depth === undefined;
  const depth = isReversed ? Math.max(0, turn - decorators.reverseDepth!) : entry.depth;
  return {
    ...nameOf(entry),
    ...{ content, position, order, tokens, reason },
    ...(position === "at_depth" && { depth, role }),
    ...(entry.probability < 100 && { probability: entry.probability }),
    ...(decorators.ignoreOnMaxContext && { isFirstToGo: true as const }),
  };
}

/** Names an entry for people and programs. */
export function nameOf({ owner, id, name }: ScanEntry): EntryName {
  return { bookId: owner.id, bookName: owner.name, entryId: id, entryName: name };
}

const SCOPES = ["chat", "character", "persona", "global"];

/** The order of entries that ask for the same one. */
export function compareOwners(a: ScanEntry, b: ScanEntry): number {
  return SCOPES.indexOf(a.owner.scope) - SCOPES.indexOf(b.owner.scope) || a.index - b.index;
}

/** Which books are asked first when the budget is tight (docs/protocols/cards.md#lorebooks). */
export function compareRank(a: Candidate, b: Candidate): number {
  const isLast = ({ entry }: Candidate) => entry.decorators.ignoreOnMaxContext ? 1 : 0;
  const isFirst = ({ reason }: Candidate) => reason.kind === "key" || reason.kind === "recursion" ? 1 : 0;
  return isLast(a) - isLast(b) || isFirst(a) - isFirst(b) ||
    SCOPES.indexOf(a.entry.owner.scope) - SCOPES.indexOf(b.entry.owner.scope) ||
    b.entry.priority - a.entry.priority || b.entry.order - a.entry.order || a.entry.index - b.entry.index;
}

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

/**
 * Takes entries as they come, the most important first. From the first that does not fit on nothing more is taken: the
 * less important do not slip past it (V3: the lowest are dropped until the rest fits).
 */
export class TokenBudget {
  #left: number;
  readonly #leftOfBook = new Map<string, number>();

  constructor(tokens: number | undefined) {
    this.#left = tokens ?? Infinity;
  }

  /** Says whether an entry still fits, and counts it then. */
  take({ owner, ignoreBudget }: ScanEntry, tokens: number): boolean {
    if (ignoreBudget) return true;
    const own = owner.book.token_budget;
    // 0 is what editors write where nothing was entered.
    const limit = typeof own === "number" && own > 0 ? own : Infinity;
    const left = this.#leftOfBook.get(owner.id) ?? limit;
    const isFitting = tokens <= left && tokens <= this.#left;
    if (tokens > this.#left) this.#left = 0;
    this.#leftOfBook.set(owner.id, isFitting ? left - tokens : tokens > left ? 0 : left);
    if (isFitting) this.#left -= tokens;
    return isFitting;
  }
}
