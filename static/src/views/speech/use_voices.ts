/** The speech server and the library, for whoever offers voices. */
import { useEffect, useState } from "preact/hooks";
import { SpeechSettings } from "../../state/speech/speech_settings.ts";
import { useStore } from "../../state/store.ts";
import { VoiceLibrary } from "../../state/speech/voice_library.ts";

/** Reads both, and listens for changes while the view is shown. */
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
