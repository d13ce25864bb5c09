/** Chance that comes out the same each time it is asked: a prompt made twice is the same prompt. */
import { createHash, type Hash } from "node:crypto";

/** Returns a number from 0 to below 1 for a key, or for one of several details under a key. */
export type SeededRandom = (key: string, detail?: string) => number;

/** Keys whose hash is remembered. */
const KEYS = 32;

/** Makes a source of chance from a seed, such as the id of a conversation. Seeds and keys may be long: each is hashed once. */
export function seededRandom(seed: string): SeededRandom {
  const seeded = createHash("sha256").update(`${seed}\n`);
  const hashes = new Map<string, Hash>();
  return (key, detail) => {
    if (detail === undefined) return fractionOf(seeded.copy().update(key));
    let hash = hashes.get(key);
    if (hash === undefined) {
      if (hashes.size >= KEYS) hashes.clear();
      hashes.set(key, hash = seeded.copy().update(`${key}\n`));
    }
    return fractionOf(hash.copy().update(detail));
  };
}

function fractionOf(hash: Hash): number {
  return hash.digest().readUIntBE(0, 6) / 2 ** 48;
}
