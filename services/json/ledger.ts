/**
 * The ledger of a reader: what it found in a file besides what it returns. Everything that is left out, guessed or
 * unknown has an entry.
 */

/** One kind of thing that a reader found. */
export interface LedgerEntry<Kind extends string = string> {
  /** Of the reader's list of kinds. `unknown` is for what the reader doesn't know. */
  kind: Kind;
  /** How many there are. */
  count: number;
  /** An English sentence. Other languages translate by `kind`. */
  reason: string;
  /** The first ones: names or places. */
  examples?: string[];
}

/** Maximum number of examples of an entry. */
const MAX_EXAMPLES = 5;
/** Maximum length of an example in UTF-16 units. */
const MAX_EXAMPLE = 120;
const MAX_COUNT = 1_000_000_000;

/** Key in the `extensions` of cards and lorebooks for parts that can't be read: they stay there as they are. */
export const UNREAD = "parlor/unread";

/** Counts by kind while a file is read. */
export class Ledger<Kind extends string> {
  readonly #entries = new Map<Kind, LedgerEntry<Kind>>();

  /** @param reasons The sentences of all kinds. */
  constructor(readonly reasons: Readonly<Record<Kind, string>>) {}

  /** Counts things of a kind. @param example A name or a place. */
  add(kind: Kind, { count = 1, example }: { count?: number; example?: string } = {}): void {
    if (count <= 0) return;
    const entry = this.#entries.get(kind) ?? { kind, count: 0, reason: this.reasons[kind] };
    this.#entries.set(kind, entry);
    entry.count += count;
    if (example !== undefined) addExample(entry, example);
  }

  /** Returns the entries in the order of their first things. */
  list(): LedgerEntry<Kind>[] {
    return [...this.#entries.values()];
  }
}

/** Adds a name or a place to the first examples of an entry. */
export function addExample(entry: LedgerEntry, example: string): void {
  const short = example.replace(/\s+/g, " ").trim().toWellFormed().slice(0, MAX_EXAMPLE);
  if (short === "" || entry.examples?.includes(short) || (entry.examples?.length ?? 0) >= MAX_EXAMPLES) return;
  entry.examples = [...entry.examples ?? [], short];
}

/**
 * Parses a ledger from a child of the sandbox, which may send anything. Reasons are ours.
 *
 * @param reasons The sentences of all kinds. Other kinds are skipped.
 */
export function parseLedger<Kind extends string>(
  value: unknown,
  reasons: Readonly<Record<Kind, string>>,
): LedgerEntry<Kind>[] {
  const ledger = new Ledger(reasons);
  for (const item of Array.isArray(value) ? value.slice(0, Object.keys(reasons).length) : []) {
    const { kind, count, examples } = (item ?? {}) as Record<string, unknown>;
    if (typeof kind !== "string" || !Object.hasOwn(reasons, kind)) continue;
    const total = Math.min(MAX_COUNT, Math.max(0, Math.trunc(Number(count)) || 0));
    const [first, ...rest] = Array.isArray(examples) ? examples.slice(0, MAX_EXAMPLES).map(String) : [];
    ledger.add(kind as Kind, { count: total, example: first });
    for (const example of rest) ledger.add(kind as Kind, { count: Number.MIN_VALUE, example });
  }
  return ledger.list().map((entry) => ({ ...entry, count: Math.trunc(entry.count) }));
}
