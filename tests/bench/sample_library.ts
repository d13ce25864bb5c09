/** Many conversations in one data folder, for requests that must stay fast with them. */
import type { Parlor } from "./parlor.ts";
import { sampleMessages } from "./sample_chat.ts";

/** Options. */
export interface Library {
  conversations: number;
  /** Messages of each. */
  messages: number;
  /** Words to append to single messages, by number of the conversation. */
  words?: [conversation: number, word: string][];
}

/** Saves conversations one after another, so that the last is the newest. */
export async function fillLibrary(parlor: Parlor, { conversations, messages, words = [] }: Library): Promise<void> {
  for (let n = 0; n < conversations; n++) {
    const made = sampleMessages(messages, n + 1);
    for (const [of, word] of words) if (of === n) made[Math.floor(messages / 2)]!.content += ` ${word}`;
    const body = { title: `Conversation ${n}`, messages: made };
    await parlor.control.bytes("PUT", `/api/conversations/${crypto.randomUUID()}`, JSON.stringify(body));
  }
}
