/** Rules that choose between matching entries: inclusion groups, priority, timed effects and token budgets. */
import type { ActivatedEntry, ActivationReason, EntryName } from "./activation.ts";
import type { ScanEntry } from "./scan_entries.ts";

/** A matching entry. */
export interface ActivationCandidate {
  entry: ScanEntry;
  reason: ActivationReason;
  /** Number of matched keys. */
  score: number;
  isSticky?: true;
}

/**
 * Chooses one candidate per inclusion group: a sticky one, else the overriding one with the highest order, else a
 * random one by weight. If an entry uses group scoring, candidates with fewer matched keys lose first.
 *
 * @param active Entries that are already active. Their groups are taken.
 */
export function chooseInGroups(
  candidates: readonly ActivationCandidate[],
  active: readonly ScanEntry[],
  random: (name: string) => number,
): { chosen: ActivationCandidate[]; dropped: ActivationCandidate[] } {
  const dropped = new Set<ActivationCandidate>();
  const usedGroups = new Set(active.flatMap(({ groups }) => groups));
  const groups = new Map<string, ActivationCandidate[]>();
  for (const candidate of candidates) {
    for (const name of new Set(candidate.entry.groups)) {
      const members = groups.get(name);
      if (members === undefined) groups.set(name, [candidate]);
      else members.push(candidate);
    }
  }
  for (const [name, all] of groups) {
    const members = all.filter((member) => !dropped.has(member));
    const winner = usedGroups.has(name)
      ? undefined
      : chooseWinner(keepBestScores(members), () => random(`group/${name}`));
    for (const member of members) if (member !== winner) dropped.add(member);
  }
  return { chosen: candidates.filter((member) => !dropped.has(member)), dropped: [...dropped] };
}

function keepBestScores(members: ActivationCandidate[]): ActivationCandidate[] {
  if (!members.some(({ entry }) => entry.useGroupScoring)) return members;
  const best = members.reduce((most, { score }) => Math.max(most, score), 0);
  return members.filter(({ entry, score, isSticky }) => isSticky || !entry.useGroupScoring || score === best);
}

function chooseWinner(members: ActivationCandidate[], random: () => number): ActivationCandidate | undefined {
  if (members.length <= 1) return members[0];
  const sticky = members.find(({ isSticky }) => isSticky);
  if (sticky !== undefined) return sticky;
  const overriding = members.filter(({ entry }) => entry.groupOverride);
  if (overriding.length > 0) return overriding.reduce((a, b) => b.entry.order > a.entry.order ? b : a);
  let left = random() * members.reduce((sum, { entry }) => sum + entry.groupWeight, 0);
  return members.find(({ entry }) => (left -= entry.groupWeight) < 0) ?? members[0];
}

/**
 * Converts an entry to its form in the prompt.
 *
 * @param messageCount Number of messages in the conversation, for depths counted from its start.
 */
export function toActivatedEntry(
  entry: ScanEntry,
  { content, tokens, reason, messageCount }: {
    content: string;
    tokens: number;
    reason: ActivationReason;
    messageCount: number;
  },
): ActivatedEntry {
  const { position, outlet, role, order, decorators } = entry;
  const isReversed = decorators.reverseDepth !== undefined && decorators.depth === undefined;
  const depth = isReversed ? Math.max(0, messageCount - decorators.reverseDepth!) : entry.depth;
  return {
    ...toEntryName(entry),
    content,
    position,
    order,
    tokens,
    reason,
    ...(position === "at_depth" && { depth, role }),
    ...(position === "outlet" && { outlet }),
    ...(entry.probability < 100 && { probability: entry.probability }),
    ...(decorators.ignoreOnMaxContext && { isDroppedFirst: true as const }),
  };
}

/** Returns ids and display names of an entry. */
export function toEntryName({ owner, id, name }: ScanEntry): EntryName {
  return { bookId: owner.id, bookName: owner.name, entryId: id, entryName: name };
}

const SCOPES = ["chat", "persona", "character", "global"];

/** Orders entries with the same insertion order, as they are found. */
export function compareOwners(a: ScanEntry, b: ScanEntry): number {
  return SCOPES.indexOf(a.owner.scope) - SCOPES.indexOf(b.owner.scope) || a.index - b.index;
}

/** Orders candidates by priority, for a tight budget (docs/protocols/cards.md#lorebooks). */
export function compareRank(a: ActivationCandidate, b: ActivationCandidate): number {
  const isLast = ({ entry }: ActivationCandidate) => entry.decorators.ignoreOnMaxContext ? 1 : 0;
  const isFirst = ({ reason }: ActivationCandidate) => reason.kind === "key" || reason.kind === "recursion" ? 1 : 0;
  return isLast(a) - isLast(b) || isFirst(a) - isFirst(b) ||
    SCOPES.indexOf(a.entry.owner.scope) - SCOPES.indexOf(b.entry.owner.scope) ||
    b.entry.priority - a.entry.priority || b.entry.order - a.entry.order || a.entry.index - b.entry.index;
}

/**
 * When entries were last active: `"<book id>/<entry id>"` to a number of messages. JSON, stored with the conversation.
 * Only contains entries with timed effects.
 */
export type ActivationState = Record<string, number>;

/** How earlier activation affects an entry. */
export type TimedEffect = "sticky" | "cooldown" | "delay";

/** Maximum number of entries in a state. */
const MAX_REMEMBERED = 10_000;

/** Returns the key of an entry in a state. */
function toStateKey({ owner, id }: ScanEntry): string {
  return `${owner.id}/${id}`;
}

/**
 * Returns the timed effect on an entry. Activation at the same or a later message count is ignored: the reply is being
 * regenerated, or messages were deleted.
 */
export function getTimedEffect(
  entry: ScanEntry,
  state: ActivationState,
  messageCount: number,
): TimedEffect | undefined {
  const fired = findLastFired(entry, state, messageCount);
  if (fired !== undefined) {
    if (messageCount < fired + entry.sticky) return "sticky";
    if (messageCount < fired + entry.sticky + entry.cooldown) return "cooldown";
  }
  return messageCount < entry.delay ? "delay" : undefined;
}

/** Returns the state after entries became active. The original message count of a sticky entry stays. */
export function updateState(
  before: ActivationState,
  fired: readonly ScanEntry[],
  messageCount: number,
): ActivationState {
  const after: ActivationState = {};
  for (const [key, at] of Object.entries(before)) if (at < messageCount) after[key] = at;
  for (const entry of fired) {
    if (entry.sticky <= 0 && entry.cooldown <= 0) continue;
    if (getTimedEffect(entry, before, messageCount) === "sticky") continue;
    delete after[toStateKey(entry)]; // The newest are last.
    after[toStateKey(entry)] = messageCount;
  }
  return Object.fromEntries(Object.entries(after).slice(-MAX_REMEMBERED));
}

function findLastFired(entry: ScanEntry, state: ActivationState, messageCount: number): number | undefined {
  const key = toStateKey(entry);
  const fired = Object.hasOwn(state, key) ? state[key] : undefined;
  return typeof fired === "number" && fired < messageCount ? fired : undefined;
}

/**
 * Admits entries by priority until one doesn't fit. Later, less important ones are rejected too (V3: the lowest
 * priority is dropped until the rest fits).
 */
export class TokenBudget {
  #left: number;
  readonly #leftOfBook = new Map<string, number>();

  constructor(tokens: number | undefined) {
    this.#left = tokens ?? Infinity;
  }

  /** Admits an entry if it fits, and counts its tokens. */
  take({ owner, ignoreBudget }: ScanEntry, tokens: number): boolean {
    if (ignoreBudget) return true;
    const own = owner.book.token_budget;
    // Editors write 0 for an empty field.
    const limit = typeof own === "number" && own > 0 ? own : Infinity;
    const left = this.#leftOfBook.get(owner.id) ?? limit;
    const isFitting = tokens <= left && tokens <= this.#left;
    if (tokens > this.#left) this.#left = 0;
    this.#leftOfBook.set(owner.id, isFitting ? left - tokens : tokens > left ? 0 : left);
    if (isFitting) this.#left -= tokens;
    return isFitting;
  }
}
