/** Impersonation: the model writes the user's next message into the composer, as a draft. */
import { asApiError, readEvents } from "../../api/client.ts";
import { getTimeZone } from "../../api/conversations.ts";
import type { Api } from "../../api/api.ts";
import { parseReplyFrame } from "../../api/reply_frames.ts";
import type { OpenChat } from "./open_chat.ts";

/** Appends to the composer until the model ends or the chat is stopped. */
export async function impersonate(chat: OpenChat, api: Pick<Api, "startChat">): Promise<void> {
  const abort = new AbortController();
  chat.replies.impersonation.value = abort;
  chat.problem.value = undefined;
  const before = chat.draft.text.peek();
  let written = before.trim() === "" ? "" : `${before.trimEnd()}\n\n`;
  try {
    const response = await api.startChat({
      conversation_id: chat.id,
      context: "server",
      action: "impersonate",
      messages: [],
      stream: true,
      time_zone: getTimeZone(),
    }, abort.signal);
    for await (const events of readEvents(response)) {
      for (const event of events) {
        const frame = parseReplyFrame(event);
        if (frame?.kind === "error") throw frame.error;
        if (frame?.kind === "delta") written += frame.text;
      }
      if (written.trim() !== before.trim()) chat.draft.type(written);
    }
  } catch (thrown) {
    if (!abort.signal.aborted) chat.problem.value = asApiError(thrown);
  } finally {
    chat.replies.impersonation.value = undefined;
  }
}
