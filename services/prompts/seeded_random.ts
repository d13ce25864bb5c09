/** Reproducible random numbers: assembling a prompt twice gives the same prompt. */
import { createHash, type Hash } from "node:crypto";

/** Returns a number in [0, 1) for a key, or for one of several details of a key. */
export type SeededRandom = (key: string, detail?: string) => number;

/** Maximum number of cached hashes. */
const MAX_HASHES = 32;

/** Creates a random source from a seed, such as a conversation id. Long seeds and keys are hashed only once. */
export function createSeededRandom(seed: string): SeededRandom {
  const seeded = createHash("sha256").update(`${seed}\n`);
  const hashes = new Map<string, Hash>();
  return (key, detail) => {
    if (detail === undefined) return toFraction(seeded.copy().update(key));
    let hash = hashes.get(key);
    if (hash === undefined) {
      if (hashes.size >= MAX_HASHES) hashes.clear();
      hashes.set(key, hash = seeded.copy().update(`${key}\n`));
    }
    return toFraction(hash.copy().update(detail));
  };
}

function toFraction(hash: Hash): number {
  return hash.digest().readUIntBE(0, 6) / 2 ** 48;
}
