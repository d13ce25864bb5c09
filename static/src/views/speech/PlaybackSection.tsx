/** Playback: voices, speed, and whether replies are read automatically. Every change applies at once. */
import type { Settings, SpeechConfig } from "../../api/types.ts";
import { useState } from "preact/hooks";
import { Slider } from "../../components/forms/Slider.tsx";
import { Switch } from "../../components/forms/Switch.tsx";
import type { SpeechSettings } from "../../state/speech/speech_settings.ts";
import { useStore } from "../../state/store.ts";
import type { VoiceLibrary } from "../../state/speech/voice_library.ts";
import { formatNumber } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";
import { VoicePicker } from "./VoicePicker.tsx";

/** Range of the speed; the API allows more, which is unintelligible. */
const SPEED = { min: 0.5, max: 2, step: 0.05 };

/** The section. */
export function PlaybackSection(
  { speech, library, config }: { speech: SpeechSettings; library: VoiceLibrary; config: SpeechConfig },
) {
  const store = useStore();
  const [speed, setSpeed] = useState<number>();
  const settings = store.preferences.settings.value;
  const t = texts.voice;
  const tell = (thrown: unknown) => store.report(thrown);
  const change = (changes: Partial<Settings>) => void store.preferences.change(changes).catch(tell);
  const count = speech.choice.value?.voices.length ?? 0;
  return (
    <>
      <h3>{t.sound}</h3>
      <div class="form">
        <VoicePicker
          id="voice"
          label={t.voice}
          hint={speech.choice.value && t.trial.voices[speech.choice.value.source](count)}
          standard={t.serverVoice}
          speech={speech}
          library={library}
          value={config.voice}
          onChange={(voice) => void speech.change({ voice }).catch(tell)}
        />
        <Slider
          id="speed"
          label={t.speed}
          {...SPEED}
          value={speed ?? config.speed}
          format={(times) => t.times(formatNumber(times))}
          onInput={setSpeed}
          onChange={(chosen) => {
            void speech.change({ speed: chosen }).catch(tell).finally(() => setSpeed(undefined));
          }}
        />
        {settings && (
          <>
            <VoicePicker
              id="speech-voice"
              label={t.quoted}
              hint={t.quotedHint}
              standard={t.sameAsAbove}
              speech={speech}
              library={library}
              value={settings.speech_voice ?? ""}
              onChange={(voice) => change({ speech_voice: voice || null })}
            />
            <VoicePicker
              id="narration-voice"
              label={t.narration}
              hint={t.narrationHint}
              standard={t.speakerVoice}
              speech={speech}
              library={library}
              value={settings.narration_voice ?? ""}
              onChange={(voice) => change({ narration_voice: voice || null })}
            />
            <Switch
              id="auto-speak"
              label={t.auto}
              hint={t.autoHint}
              isOn={settings.auto_speak}
              onChange={(auto_speak) => change({ auto_speak })}
            />
          </>
        )}
      </div>
    </>
  );
}
