/** Reads replies aloud as they come, where that is wished for, and is silent once the chat is left. */
import { useEffect } from "preact/hooks";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { useStore } from "../../state/store.ts";

/** Listens while the chat is shown. Of several devices the one that asked for a reply reads it. */
export function useAutoSpeak(chat: OpenChat): void {
  const { speaking, preferences } = useStore();
  const run = chat.run.value;
  useEffect(() => {
    // What is heard is about to be written anew.
    if (run?.text.peek() === "" && speaking.now.peek()?.key === run.messageId) speaking.stop();
    if (!run?.isAskedHere || !preferences.settings.peek()?.auto_speak) return;
    void speaking.readMessage(chat, run.messageId, run.text.peek());
  }, [run]);
  useEffect(() => () => speaking.stop(), []);
}
