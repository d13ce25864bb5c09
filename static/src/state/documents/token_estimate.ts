/** How many tokens a text may have, as the server guesses where it knows no better (services/prompts/tokens/token_estimate.ts). */

const TOKENS_PER_CHAR = 0.25;
/** Of scripts without word gaps nearly every character is a token. */
const TOKENS_PER_WIDE_CHAR = 0.85;
const WIDE = /[\u2e80-\uffff]/g;

/** Gives the tokens of a text, rounded up. */
export function estimateTokens(text: string): number {
  const wide = text.match(WIDE)?.length ?? 0;
  return Math.ceil((text.length - wide) * TOKENS_PER_CHAR + wide * TOKENS_PER_WIDE_CHAR);
}
