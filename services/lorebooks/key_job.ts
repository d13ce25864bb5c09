/** The work that key_matcher.ts gives to its Worker. */
import type { KeyQuery } from "./key_matcher.ts";

/** What the serving thread sends: plain lists, since thousands of objects take longer to send than to look for. */
export interface KeyJob {
  texts: string[];
  keys: string[];
  /** Per key: which of `among` its texts are, and its flags. */
  ways: number[];
  /** Sets of texts, by their places. */
  among: number[][];
}

/** Flags of a key. */
export const CASE_SENSITIVE = 1;
export const WHOLE_WORD = 2;
export const PATTERN = 4;
/** How many values the flags of a key can have. */
export const FLAGS = 8;

/** Packs queries for the Worker. */
export function jobOf(texts: string[], queries: readonly KeyQuery[]): KeyJob {
  const sets = new Map<string, number>();
  const among: number[][] = [];
  const ways = queries.map(({ key, texts: within }) => {
    const name = within.join();
    let set = sets.get(name);
    if (set === undefined) sets.set(name, set = among.push(within) - 1);
    return set * FLAGS + (key.isCaseSensitive ? CASE_SENSITIVE : 0) + (key.isWholeWord ? WHOLE_WORD : 0) +
      (key.pattern === undefined ? 0 : PATTERN);
  });
  return { texts, keys: queries.map(({ key }) => key.text), ways, among };
}
