/** Speech: the server, playback, and the library of voice samples. */
import { useEffect } from "preact/hooks";
import { ErrorNote } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { VoiceLibrarySection } from "./VoiceLibrarySection.tsx";
import { SpeechServerSection } from "./SpeechServerSection.tsx";
import { PlaybackSection } from "./PlaybackSection.tsx";
import { TranscriptionSection } from "./TranscriptionSection.tsx";
import { useVoices } from "./use_voices.ts";

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
