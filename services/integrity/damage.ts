/** What can't be read: its path, and which parts of it. */

/** An item that can't be read completely. */
export interface Damage {
  /** As in `unreadable.json` of exports: `"conversations/ID"`. */
  path: string;
  /** What of it is damaged: tables or columns of its rows, or `file`. */
  parts: string[];
}

/** Damage with the time when it was first found. */
export interface KnownDamage extends Damage {
  /** In milliseconds since 1970. */
  sinceMs: number;
}

/** The state of checks, as it's stored. */
export interface IntegrityState {
  damages: KnownDamage[];
  /** When the running pass began, in milliseconds since 1970; `null` if none runs. */
  beganMs: number | null;
  /** Where the running pass continues. */
  cursor: string | null;
  /** When the last whole pass ended, in milliseconds since 1970; `null` before the first. */
  endedMs: number | null;
  /** By the name of a backup: paths of what it has no good copy of. A backup that has all of it isn't listed. */
  lacking: Record<string, string[]>;
}

/** Key of the stored state in table `setting`. */
export const STATE_KEY = "integrity";

/** The state before the first pass. */
export const NEW_STATE: IntegrityState = { damages: [], beganMs: null, cursor: null, endedMs: null, lacking: {} };

/** How many names a message has at most. */
const MAX_NAMED = 10;

/** Lists paths for a message: the first ten. */
export function formatPaths(damages: readonly Pick<Damage, "path">[]): string {
  const paths = damages.map(({ path }) => path);
  return paths.slice(0, MAX_NAMED).join(", ") + (paths.length > MAX_NAMED ? ", …" : "");
}

/** Joins what was found about the same item. */
export function mergeDamages(found: readonly Damage[]): Damage[] {
  const merged = new Map<string, Set<string>>();
  for (const { path, parts } of found) {
    const known = merged.get(path) ?? new Set();
    for (const part of parts) known.add(part);
    merged.set(path, known);
  }
  return [...merged].map(([path, parts]) => ({ path, parts: [...parts].sort() }));
}
