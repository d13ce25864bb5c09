/** How an entry that fired is shown, and where it stands among the others. */
import type { ActivatedEntry, ActivationReason, EntryName } from "./activation.ts";
import type { Candidate } from "./activation_rules.ts";
import type { ScanEntry } from "./scan_entries.ts";

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
