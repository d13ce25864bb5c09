/** Keeps what was dictated or said with the message. */
import { signal } from "@preact/signals";
import { newId } from "../state/app/ids.ts";
import type { OpenChat } from "../state/chat/open_chat.ts";
import type { Store } from "../state/store.ts";

/**
 * Stores a recording for the next message if the owner wants that. A failure is shown and loses the recording only.
 *
 * @param recording As WAV: every browser plays it and can seek in it, which isn't true of what browsers record.
 */
export async function keepRecording(store: Store, chat: OpenChat, recording: Blob): Promise<void> {
  if (chat.isTemporary || store.preferences.settings.peek()?.keep_recordings !== true) return;
  const name = `${newId()}.wav`;
  const isBusy = signal(true);
  chat.recordings.add({ name, isBusy });
  try {
    await store.api.putAttachment(name, recording);
  } catch (thrown) {
    chat.recordings.remove(name);
    store.report(thrown);
  } finally {
    isBusy.value = false;
  }
}
