/** The pictures of a chat, as far as it is here. */
import type { Message } from "../../api/types.ts";
import { isOurPicture, picturesOf } from "./message_text.ts";
import type { OpenChat } from "./open_chat.ts";
import type { Store } from "../store.ts";

/** One picture and the message it stands in. */
export interface ChatPicture {
  messageId: string;
  url: string;
  /** Its name among the message's attachments; undefined for one that the message itself shows. */
  attached?: string;
}

/** Gives the pictures of messages, in their order. */
export function picturesIn(messages: readonly Message[]): ChatPicture[] {
  return messages.flatMap((message) =>
    picturesOf(message).filter(isOurPicture).map((url) => {
      const name = decodeURIComponent(url.slice(url.lastIndexOf("/") + 1));
      return { messageId: message.id, url, attached: message.attachments?.find((each) => each === name) };
    })
  );
}

/** Takes a picture off its message and offers to put it back. @throws {ApiError} */
export async function detachPicture(
  store: Store,
  chat: OpenChat,
  { messageId, attached }: ChatPicture,
  words: { done: string; undo: string },
): Promise<void> {
  const before = chat.pages.find(messageId)?.attachments ?? [];
  const put = async (names: readonly (string | undefined)[]) => {
    // An empty list clears the field.
    const attachments = names.length === 0 ? null : names;
    await store.api.changeMessage(chat.id, messageId, { attachments } as Partial<Message>);
    chat.pages.edit(messageId, { attachments: names as string[] });
  };
  await put(before.filter((name) => name !== attached));
  const undo = () => void put(before).catch((thrown) => store.report(thrown));
  store.toasts.offerUndo(words.done, words.undo, undo, () => {});
}
