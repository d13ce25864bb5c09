/** The order of the test files: lanes take the next file from one queue as soon as they are free. */
import { readFileSync } from "node:fs";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** A comment of a test file that says why it takes long: `/** @slow Kills 40 servers. *\/`. */
const SLOW = /^(?:\/\*\*| \*) @slow (.+?)(?: \*\/)?$/m;

/** Returns why a test file takes long, if it says so. */
export function findSlowReason(source: string): string | undefined {
  return SLOW.exec(source)?.[1];
}

/**
 * Orders files at random, so that none depends on what ran before it. The same seed gives the same order. Files that say why
 * they take long come first, since a long one at the end would leave the other lanes idle.
 */
export function orderFiles<T>(files: readonly T[], seed: number, isSlow: (file: T) => boolean): T[] {
  const random = openRandom(seed);
  const places = new Map(files.map((file) => [file, random() + (isSlow(file) ? 0 : 1)]));
  return [...files].sort((a, b) => places.get(a)! - places.get(b)!);
}

/** Mulberry32: numbers from 0 to 1. @see https://gist.github.com/tommyettinger/46a874533244883189143505d203312c */
function openRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6D2B79F5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** The queue as vitest wants it. */
export class FileQueue extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // Found in the order of the file system, which differs between machines.
    const found = files.toSorted((a, b) => a.moduleId < b.moduleId ? -1 : 1);
    const isSlow = ({ moduleId }: TestSpecification) => findSlowReason(readFileSync(moduleId, "utf8")) !== undefined;
    return Promise.resolve(orderFiles(found, this.ctx.config.sequence.seed, isSlow));
  }
}
