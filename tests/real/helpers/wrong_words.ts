/** Compares a transcript with the spoken text. */

/** Counts replaced, omitted and added words, ignoring case and punctuation. */
export function countWrongWords(heard: string, said: string): number {
  const [a, b] = [splitWords(heard), splitWords(said)];
  // Levenshtein distance, one row at a time.
  let row = b.map((_, i) => i + 1);
  row.unshift(0);
  for (const [i, word] of a.entries()) {
    const next = [i + 1];
    for (const [j, other] of b.entries()) {
      next.push(Math.min(next[j]! + 1, row[j + 1]! + 1, row[j]! + (word === other ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1)!;
}

function splitWords(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? [];
}
