/** Reading aloud, and the voices for it. */
import type { Guard } from "../http/guard/guarded_fetch.ts";
import { openOwnerClient } from "../http/http_client.ts";
import type { CloseHook } from "../async/lazy.ts";
import { Speech } from "../speech/speech.ts";
import { SpeechSettings } from "../speech/speech_settings.ts";
import { VoiceImports } from "../speech/voice_import.ts";
import { VoiceSamples } from "../speech/voice_samples.ts";
import type { Ground } from "./ground.ts";

/** Everything about speech. */
export interface SpeechRoom {
  speech: Speech;
  voices: VoiceSamples;
  voiceImports: VoiceImports;
}

/** Opens the room. */
export async function openSpeech(
  { config, db, sealer, events, jobs, trash, versions, now, folders }: Ground,
  guard: Guard,
  onClose: (hook: CloseHook) => void,
): Promise<SpeechRoom> {
  const voices = new VoiceSamples({
    ...{ db, events, trash, versions, now, folder: folders.voices },
    sealer: sealer.forPurpose("voices"),
  });
  trash.register("voice", voices.trashKind());
  const voiceImports = await VoiceImports.open({
    ...{ jobs, guard, samples: voices, folder: folders.imports },
    ytDlpPath: config.ytDlpPath ?? undefined,
  });
  const client = openOwnerClient({ what: "the speech server" });
  onClose(() => client.close());
  const speech = new Speech({
    settings: new SpeechSettings({ db, sealer: sealer.forPurpose("speech"), events }),
    client,
    samples: { list: () => voices.list(), get: (id) => voices.reference(id) },
  });
  return { speech, voices, voiceImports };
}
