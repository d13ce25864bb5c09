/** Statistics of measurements. */

/**
 * Gives the value below which a share of the values lies, by the nearest rank.
 *
 * @param share 0.5 is the median, 0.99 the worst of a hundred.
 * @throws {Error} when there are no values.
 */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const value = sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
  if (value === undefined) throw new Error("Can't give a quantile of no values");
  return value;
}

/** Returns the median. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  if (low === undefined || high === undefined) throw new Error("Can't give the median of no values");
  return (low + high) / 2;
}

/** The measurements of one round on both sides. */
export interface Pair {
  own: number;
  limit: number;
}

/** Returns the medians of both sides and of the ratios of the rounds. Noise on both sides doesn't affect the ratios. */
export function compare(rounds: readonly Pair[]): Pair & { ratio: number } {
  return {
    own: median(rounds.map((round) => round.own)),
    limit: median(rounds.map((round) => round.limit)),
    ratio: median(rounds.map((round) => round.own / round.limit)),
  };
}
