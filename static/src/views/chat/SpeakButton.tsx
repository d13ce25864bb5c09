/** Reads a message aloud, or ends that. */
import type { Message } from "../../api/types.ts";
import { IconButton } from "../../components/Button.tsx";
import type { OpenChat } from "../../state/open_chat.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Gives what the button and its twin in the menu have in common: what a press does now, in words and in deed. */
export function useSpeaking(chat: OpenChat, { id }: Message) {
  const { speaking } = useStore();
  const isHeard = speaking.now.value?.key === id;
  return {
    icon: isHeard ? "stop" as const : "speaker" as const,
    label: isHeard ? texts.chat.stopSpeaking : texts.chat.speak,
    toggle: () => isHeard ? speaking.stop() : void speaking.readMessage(chat, id),
  };
}

/** Its name says what a press does, so it says the state as well. */
export function SpeakButton({ chat, message }: { chat: OpenChat; message: Message }) {
  const { icon, label, toggle } = useSpeaking(chat, message);
  return <IconButton icon={icon} label={label} onClick={toggle} />;
}
