/** Chance that comes out the same each time it is asked: a prompt made twice is the same prompt. */
import { createHash } from "node:crypto";

/** Gives a number from 0 to below 1 for a key. */
export type SeededRandom = (key: string) => number;

/** Makes a source of chance of a seed, such as the id of a conversation. */
export function seededRandom(seed: string): SeededRandom {
  return (key) => createHash("sha256").update(`${seed}\n${key}`).digest().readUIntBE(0, 6) / 2 ** 48;
}
