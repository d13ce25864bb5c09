/** Tests with many random or slow repetitions. */

/** Reports whether this run takes every case: `LONG_TESTS=1`. */
export function isLong(): boolean {
  return Deno.env.get("LONG_TESTS") === "1";
}

/** The number of repetitions. */
export interface Sample {
  readonly count: number;
  /** For the title: `"300"`, or `"40 of 300"` where a usual run takes fewer. docs/security-cases.md shows the same. */
  toString(): string;
}

/**
 * Takes a few of many repetitions in a usual run, and all of them with `LONG_TESTS=1`.
 *
 * @param usual How many a usual run takes.
 * @param all How many the case asks for.
 */
export function sample(usual: number, all: number): Sample {
  const count = isLong() ? all : usual;
  return { count, toString: () => sampleTitle(count, all) };
}

/** Writes how many of all repetitions run. */
export function sampleTitle(count: number, all: number): string {
  return count === all ? String(all) : `${count} of ${all}`;
}
