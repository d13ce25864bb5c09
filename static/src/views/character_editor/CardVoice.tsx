/** The voice that a character is read aloud with. */
import { useEffect } from "preact/hooks";
import type { CardEditor } from "../../state/characters/card_editor.ts";
import { voiceOf, withVoice } from "../../state/characters/card_voice.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { useVoices } from "../speech/use_voices.ts";
import { VoicePicker } from "../speech/VoicePicker.tsx";

/** The choice; without one the character has the voice of the settings. */
export function CardVoice({ editor }: { editor: CardEditor }) {
  const { speaking } = useStore();
  const voices = useVoices();
  useEffect(() => () => speaking.stop(), []);
  const data = editor.data.value!;
  const t = texts.voice;
  return (
    <VoicePicker
      {...voices}
      label={t.character}
      hint={t.characterHint}
      standard={t.noCharacterVoice}
      value={voiceOf(data) ?? ""}
      onChange={(voice) => editor.set({ extensions: withVoice(data, voice || undefined) })}
    />
  );
}
