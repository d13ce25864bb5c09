/** Rules that choose between matching entries: inclusion groups, priority, timed effects and token budgets. */
import type { ActivatedEntry, ActivationReason, EntryName } from "./activation.ts";
import type { LorebookScope } from "./lorebook_document.ts";
import type { ScanEntry } from "./scan_entries.ts";

/** A matching entry. */
export interface ActivationCandidate {
  entry: ScanEntry;
  reason: ActivationReason;
  /** Number of matched keys. */
  score: number;
  isSticky?: true;
  /** Its cooldown since it became active isn't over, although it's still sticky. */
  isCoolingDown?: boolean;
}

/**
 * Chooses one candidate per inclusion group: the overriding one with the highest order, else a random one by weight. If
 * an entry uses group scoring, those with fewer matched keys lose first. If there are sticky ones, they're chosen
 * instead; those whose cooldown isn't over take the place and aren't active, as in SillyTavern.
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
    const winners = chooseWinners(members, usedGroups.has(name), () => random(`group/${name}`));
    for (const member of members) if (!winners.includes(member)) dropped.add(member);
  }
  return { chosen: candidates.filter((member) => !dropped.has(member)), dropped: [...dropped] };
}

function chooseWinners(
  members: readonly ActivationCandidate[],
  isTaken: boolean,
  random: () => number,
): readonly ActivationCandidate[] {
  const sticky = members.filter(({ isSticky }) => isSticky);
  if (sticky.length > 0) return sticky.filter(({ isCoolingDown }) => !isCoolingDown);
  if (isTaken) return [];
  const best = keepBestScores(members);
  if (best.length <= 1) return best;
  const overriding = best.filter(({ entry }) => entry.groupOverride);
  if (overriding.length > 0) return [overriding.reduce((a, b) => b.entry.order > a.entry.order ? b : a)];
  let left = random() * best.reduce((sum, { entry }) => sum + entry.groupWeight, 0);
  return [best.find(({ entry }) => (left -= entry.groupWeight) < 0) ?? best[0]!];
}

function keepBestScores(members: readonly ActivationCandidate[]): readonly ActivationCandidate[] {
  if (!members.some(({ entry }) => entry.useGroupScoring)) return members;
  const best = members.reduce((most, { score }) => Math.max(most, score), 0);
  return members.filter(({ entry, score }) => !entry.useGroupScoring || score === best);
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

/** Whether books of characters come before those for all chats, after them, or together with them. */
export const BOOK_ORDERS = ["character_first", "global_first", "evenly"] as const;

/** One of the orders. */
export type BookOrder = (typeof BOOK_ORDERS)[number];

/** Scopes in order. Entries of those that are together are ordered by their insertion order first. */
const SCOPES: Record<BookOrder, readonly (readonly LorebookScope[])[]> = {
  character_first: [["chat"], ["persona"], ["character"], ["global"]],
  global_first: [["chat"], ["persona"], ["global"], ["character"]],
  evenly: [["chat"], ["persona"], ["global", "character"]],
};

function compareScopes(a: ScanEntry, b: ScanEntry, order: BookOrder): number {
  const getRank = ({ owner }: ScanEntry) => SCOPES[order].findIndex((scopes) => scopes.includes(owner.scope));
  return getRank(a) - getRank(b);
}

/** Orders entries with the same insertion order, as they are found. */
export function compareOwners(a: ScanEntry, b: ScanEntry, order: BookOrder): number {
  const all = SCOPES[order].flat();
  return all.indexOf(a.owner.scope) - all.indexOf(b.owner.scope) || a.index - b.index;
}

/** Orders candidates by priority, for groups and a tight budget (docs/protocols/cards.md#lorebooks). */
export function compareRank(a: ActivationCandidate, b: ActivationCandidate, order: BookOrder): number {
  const isLast = ({ entry }: ActivationCandidate) => entry.decorators.ignoreOnMaxContext ? 1 : 0;
  const isFirst = ({ isSticky }: ActivationCandidate) => isSticky ? 0 : 1;
  return isLast(a) - isLast(b) || isFirst(a) - isFirst(b) ||
    compareScopes(a.entry, b.entry, order) ||
    b.entry.priority - a.entry.priority || b.entry.order - a.entry.order || compareOwners(a.entry, b.entry, order);
}

/**
 * When entries became active: `"<book id>/<entry id>"` to a number of messages. After `cooldown `, when it was seen that
 * they don't stay active any more. JSON, stored with the conversation. Only contains entries with timed effects.
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

function toCooldownKey(entry: ScanEntry): string {
  return `cooldown ${toStateKey(entry)}`;
}

/**
 * Returns the timed effect on an entry. With `keepsFound`, one that's kept lasts until the chat is trimmed. The cooldown of
 * a sticky entry begins with the first scan in which it isn't sticky any more, as in SillyTavern.
 *
 * Activation at the same or a later message count is ignored: the reply is being
 * regenerated, or messages were deleted.
 */
export function getTimedEffect(
  entry: ScanEntry,
  state: ActivationState,
  messageCount: number,
  keepsFound = true,
): TimedEffect | undefined {
  const fired = findBefore(toStateKey(entry), state, messageCount);
  if (fired !== undefined) {
    if (keepsFound && entry.isKept) return "sticky";
    if (messageCount < fired + entry.sticky) return "sticky";
    const begin = entry.sticky > 0 ? findBefore(toCooldownKey(entry), state, messageCount) ?? messageCount : fired;
    if (messageCount < begin + entry.cooldown) return "cooldown";
  }
  return messageCount < entry.delay ? "delay" : undefined;
}

/** Reports whether the cooldown since an entry became active isn't over. For a sticky entry, this counts in groups. */
export function isCoolingDown(entry: ScanEntry, state: ActivationState, messageCount: number): boolean {
  const fired = findBefore(toStateKey(entry), state, messageCount);
  return fired !== undefined && messageCount < fired + entry.cooldown;
}

/**
 * Returns the state after entries became active. The original message count of a sticky entry stays.
 *
 * @param options.released Entries that were kept until now.
 * @param options.sticky All entries that can be sticky.
 */
export function updateState(
  before: ActivationState,
  fired: readonly ScanEntry[],
  messageCount: number,
  { released = [], sticky = [] }: { released?: readonly ScanEntry[]; sticky?: readonly ScanEntry[] } = {},
): ActivationState {
  const after: ActivationState = {};
  for (const [key, at] of Object.entries(before)) if (at < messageCount) after[key] = at;
  for (const entry of released) {
    if (getTimedEffect(entry, before, messageCount, false) === undefined) delete after[toStateKey(entry)];
  }
  for (const entry of sticky) {
    const key = toCooldownKey(entry);
    if (!Object.hasOwn(after, key) && getTimedEffect(entry, before, messageCount) === "cooldown") {
      after[key] = messageCount;
    }
  }
  for (const entry of fired) {
    if (entry.sticky <= 0 && entry.cooldown <= 0 && !entry.isKept) continue;
    if (getTimedEffect(entry, after, messageCount, released.length === 0) === "sticky") continue;
    delete after[toStateKey(entry)]; // The newest are last.
    delete after[toCooldownKey(entry)];
    after[toStateKey(entry)] = messageCount;
  }
  return Object.fromEntries(Object.entries(after).slice(-MAX_REMEMBERED));
}

function findBefore(key: string, state: ActivationState, messageCount: number): number | undefined {
  const at = Object.hasOwn(state, key) ? state[key] : undefined;
  return typeof at === "number" && at < messageCount ? at : undefined;
}

/**
 * Admits entries by priority until one doesn't fit. Later, less important ones are rejected too (V3: the lowest
 * priority is dropped until the rest fits). Entries that ignore the budget are always admitted, but use it.
 */
export class TokenBudget {
  #left: number;
  #isExceeded = false;
  readonly #leftOfBook = new Map<string, number>();

  constructor(tokens: number | undefined) {
    this.#left = tokens ?? Infinity;
  }

  /** Whether an entry didn't fit into the budget of all books. */
  get isExceeded(): boolean {
    return this.#isExceeded;
  }

  /** Admits an entry if it fits, and counts its tokens. */
  take({ owner, ignoreBudget }: ScanEntry, tokens: number): boolean {
    const own = owner.book.token_budget;
    // Editors write 0 for an empty field.
    const limit = typeof own === "number" && own > 0 ? own : Infinity;
    const left = this.#leftOfBook.get(owner.id) ?? limit;
    const isFitting = tokens <= left && tokens <= this.#left;
    if (!ignoreBudget && tokens > this.#left) {
      this.#isExceeded = true;
      this.#left = 0;
    }
    this.#leftOfBook.set(owner.id, isFitting || ignoreBudget ? Math.max(0, left - tokens) : tokens > left ? 0 : left);
    if (isFitting || ignoreBudget) this.#left = Math.max(0, this.#left - tokens);
    return isFitting || ignoreBudget;
  }
}
