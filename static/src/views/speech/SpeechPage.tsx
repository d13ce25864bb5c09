/** Speech: the server, playback, and the library of voice samples. */
import { useEffect, useState } from "preact/hooks";
import { ErrorNote } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { VoiceLibrarySection } from "./VoiceLibrarySection.tsx";
import { SpeechServerSection } from "./SpeechServerSection.tsx";
import { TranscriptionSection } from "./TranscriptionSection.tsx";
import { useVoices, VoicePicker } from "./VoicePicker.tsx";
import type { Settings, SpeechConfig } from "../../api/types.ts";
import { Slider, Switch } from "../../components/forms/inputs.tsx";
import type { SpeechSettings } from "../../state/speech/speech_settings.ts";
import type { VoiceLibrary } from "../../state/speech/voice_library.ts";
import { formatNumber } from "../../texts/format.ts";

/** The page; leaving it stops playback. */
export function SpeechPage() {
  const { speaking } = useStore();
  const { speech, library } = useVoices();
  useEffect(() => () => speaking.stop(), []);
  const t = texts.voice;
  const error = speech.error.value;
  return (
    <section class="voice-page">
      <h2>{t.title}</h2>
      <p class="muted">{t.intro}</p>
      {error && <ErrorNote title={t.loadFailed} error={error} onRetry={() => void speech.refresh()} />}
      {speech.config.value && (
        <>
          <SpeechServerSection speech={speech} config={speech.config.value} />
          <PlaybackSection speech={speech} library={library} config={speech.config.value} />
        </>
      )}
      <TranscriptionSection />
      <VoiceLibrarySection library={library} />
    </section>
  );
}

/** Range of the speed; the API allows more, which is unintelligible. */
const SPEED = { min: 0.5, max: 2, step: 0.05 };

/** Playback: voices, speed, and whether replies are read automatically. Every change applies at once. */
function PlaybackSection(
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
