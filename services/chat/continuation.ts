/** The seam of an answer that is continued because a sentence asked for it: such a text begins anew, and joins on to nothing. */
import type { ChatEvent } from "../llm/chat_event.ts";

/**
 * Gives what a model sends, its first text set off from the text that was there.
 *
 * @param before The text that is continued; one that is empty or ends in white space needs nothing behind it.
 * @param joint What stands between; nothing where the model goes on by itself.
 */
export function joined(
  before: string,
  joint: string | undefined,
  batches: AsyncIterable<ChatEvent[]>,
): AsyncIterable<ChatEvent[]> {
  return joint && /\S$/.test(before) ? withSeam(joint, batches) : batches;
}

async function* withSeam(joint: string, batches: AsyncIterable<ChatEvent[]>): AsyncIterable<ChatEvent[]> {
  let isJoined = false;
  for await (const events of batches) {
    yield isJoined ? events : events.map((event) => {
      if (isJoined || event.type !== "text" || event.text === "") return event;
      isJoined = true;
      // Models often begin by a space or a line break of their own.
      return { ...event, text: event.text.startsWith("\n") ? event.text : joint + event.text.replace(/^ +/, "") };
    });
  }
}
