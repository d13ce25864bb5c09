/** The speech settings and the library, for voice pickers. */
import { useEffect, useState } from "preact/hooks";
import { SpeechSettings } from "../../state/speech/speech_settings.ts";
import { useStore } from "../../state/store.ts";
import { VoiceLibrary } from "../../state/speech/voice_library.ts";

/** Loads both, and follows changes while the view is shown. */
export function useVoices(): { speech: SpeechSettings; library: VoiceLibrary } {
  const store = useStore();
  const [voices] = useState(() => ({ speech: new SpeechSettings(store), library: new VoiceLibrary(store) }));
  useEffect(() => {
    void voices.speech.refresh();
    void voices.library.refresh();
    return store.listen((event) => {
      voices.speech.onChange(event);
      voices.library.onChange(event);
    });
  }, []);
  return voices;
}
