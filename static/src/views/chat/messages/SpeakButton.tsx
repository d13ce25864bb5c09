/** Reads a message aloud, or ends that. */
import type { Message } from "../../../api/types.ts";
import { IconButton } from "../../../components/Button.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";

/** Gives what the button and its twin in the menu have in common: whether the message is heard, and what a press does. */
export function useSpeaking(chat: OpenChat, { id }: Message) {
  const { speaking } = useStore();
  const isHeard = speaking.now.value?.key === id;
  return { isHeard, toggle: () => isHeard ? speaking.stop() : void speaking.readMessage(chat, id) };
}

/** Pressed while the message is heard. */
export function SpeakButton({ chat, message }: { chat: OpenChat; message: Message }) {
  const { isHeard, toggle } = useSpeaking(chat, message);
  return <IconButton icon="speaker" label={texts.chat.speak} isPressed={isHeard} onClick={toggle} />;
}
