/** Greetings as they begin a conversation: what their macros stand for is settled there and then. */
import { Macros } from "./macros/macros.ts";
import { seededRandom } from "./seeded_random.ts";

/**
 * Returns greetings with their macros expanded. They share the budget of one prompt; one that exceeds it stays as written.
 *
 * @param seed Another one for each conversation.
 */
export function settledGreetings(
  texts: readonly string[],
  { char, user }: { char: string; user: string },
  { seed, nowMs }: { seed: string; nowMs: number },
): string[] {
  const macros = new Macros({ char, user, fields: {}, clock: { nowMs }, random: seededRandom(seed), chat: {} });
  return texts.map((text, n) => macros.expand(text, { place: `greeting ${n}` }).trim());
}
