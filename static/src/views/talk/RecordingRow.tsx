/** The recordings that go out with the message. */
import { IconButton } from "../../components/Button.tsx";
import { Icon } from "../../components/Icon.tsx";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { texts } from "../../texts/texts.ts";

/** The list above the text. */
export function RecordingRow({ chat }: { chat: OpenChat }) {
  const t = texts.talk;
  return (
    <ul class="document-row" aria-label={t.recordings}>
      {chat.recordings.items.value.map(({ name, isBusy }, index) => (
        <li key={name} class="document-chip recording-chip" aria-busy={isBusy.value}>
          <Icon name="microphone" />
          <span>{t.recordingN(index + 1)}</span>
          <IconButton
            icon="close"
            label={t.removeRecording(index + 1)}
            onClick={() =>
              chat.recordings.remove(name)}
          />
        </li>
      ))}
    </ul>
  );
}
