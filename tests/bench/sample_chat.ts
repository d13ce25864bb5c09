/** Conversations of typical size, with the same text in each run. */

/** A message in the format that clients send. */
export interface SampleMessage {
  id: string;
  role: "user" | "assistant";
  content: string;
}

/** Characters of a message; as the API returns it, it has about 400 bytes, so that 41 make one block of 16 KiB. */
const CONTENT_CHARS = 195;
const WORDS =
  "the of light and harbour evening a slowly falls into water boats under grey gulls that call while we talk"
    .split(" ");

/**
 * Makes the messages of a conversation, with ids of their own.
 *
 * @param seed Another seed gives other texts.
 */
export function sampleMessages(count: number, seed: number): SampleMessage[] {
  const next = numbers(seed);
  return Array.from({ length: count }, (_, n): SampleMessage => ({
    id: crypto.randomUUID(),
    role: n % 2 === 0 ? "user" : "assistant",
    content: sampleText(next),
  }));
}

/** Creates a text of typical length. */
export function sampleText(next: () => number): string {
  let text = "";
  while (text.length < CONTENT_CHARS) text += `${WORDS[next() % WORDS.length]} `;
  return text.slice(0, CONTENT_CHARS - 1) + ".";
}

/** Returns a seeded random number generator. */
export function numbers(seed: number): () => number {
  let state = seed * 2_654_435_761 >>> 0 || 1;
  return () => {
    // Xorshift, 32 bits (Marsaglia 2003): enough to pick words.
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>>= 0);
  };
}
