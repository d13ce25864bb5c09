/** Chooses the context size that Ollama is asked for. Every change makes it load the model again. */

/** The smallest size that is asked for. */
const FIRST_SIZE = 4_096;

/**
 * Chooses a context size: 4,096 doubled until the call fits, up to a limit. A size that is loaded and suffices stays.
 *
 * @param needed Tokens of prompt and answer.
 * @param loaded The size that the model is loaded with.
 * @param most The most that may be asked for: the model's maximum or the owner's limit.
 */
export function chooseContextSize(needed: number, loaded: number | undefined, most = Infinity): number {
  if (loaded !== undefined && loaded >= Math.min(needed, most) && loaded <= most) return loaded;
  let size = FIRST_SIZE;
  while (size < needed && size < most) size *= 2;
  return Math.min(size, most);
}

/** Formats a size for people, with its article: `"a 16k context"`, `"an 8k context"`, `"a context of 5,000 tokens"`. */
export function formatContextSize(tokens: number): string {
  if (tokens % 1024 !== 0) return `a context of ${tokens.toLocaleString("en-US")} tokens`;
  const size = `${tokens / 1024}`;
  return `${size.startsWith("8") || size === "11" || size === "18" ? "an" : "a"} ${size}k context`;
}
