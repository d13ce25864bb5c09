/** Lets the model write in the owner's name, into the composer, where it is a draft like any other. */
import { asApiError } from "../../api/client.ts";
import { timeZone } from "../../api/conversations.ts";
import type { Api } from "../../api/api.ts";
import { parseReplyFrame } from "../../api/reply_frames.ts";
import { readEvents } from "../../api/event_stream.ts";
import type { OpenChat } from "./open_chat.ts";

/** Writes behind what stands in the composer, until the model ends or the chat is told to stop. */
export async function impersonate(chat: OpenChat, api: Pick<Api, "startChat">): Promise<void> {
  const abort = new AbortController();
  chat.ghostwriting.value = abort;
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
      time_zone: timeZone(),
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
    chat.ghostwriting.value = undefined;
  }
}
