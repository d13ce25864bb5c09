/** Which parts of a text a search was about. */

/** A piece of the text. */
export interface Piece {
  text: string;
  isHit: boolean;
}

/** Cuts a text where the words of a query begin and end; "quoted phrases" count as a whole. Letter case does not matter. */
export function markWords(text: string, query: string): Piece[] {
  const words = [...query.matchAll(/"([^"]+)"|([^\s"]+)/g)].map(([, phrase, word]) => phrase ?? word ?? "").filter(
    Boolean,
  );
  if (words.length === 0) return [{ text, isHit: false }];
  // Longer words first, so that one that begins another does not cut it short.
  const sorted = words.sort((a, b) => b.length - a.length).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const parts = text.split(new RegExp(`(${sorted.join("|")})`, "giu"));
  return parts.map((part, index) => ({ text: part, isHit: index % 2 === 1 })).filter((piece) => piece.text !== "");
}
