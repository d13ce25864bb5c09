/** What a message says, whatever form its content has, and what of a conversation is sent to the model. */
import type { ContentPart, Message, SentMessage } from "../api/types.ts";

/** Gives the text of a message; parts that are no text are left out. */
export function textOf(content: string | ContentPart[]): string {
  if (typeof content === "string") return content;
  return content.filter((part) => part.type === "text").map((part) => part.text ?? "").join("\n\n");
}

/** Gives the turns to send: everything shown that holds something, in order. */
export function sentMessages(messages: readonly Message[]): SentMessage[] {
  return messages
    .filter((message) => !message.hidden && message.content.length > 0)
    .map(({ role, content }) => ({ role, content }));
}
