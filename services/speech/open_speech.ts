/** Opens text-to-speech and the voice samples. */
import type { Guard } from "../http/guard/guarded_fetch.ts";
import { openHttpClient } from "../http/http_client.ts";
import type { CloseHook } from "../async/lazy.ts";
import type { Core } from "../core/open_core.ts";
import { Speech, SpeechSettings } from "./speech.ts";
import { VoiceImports } from "./voice_import.ts";
import { VoiceSamples } from "./voice_samples.ts";

/** Text-to-speech and voice samples. */
export interface SpeechServices {
  speech: Speech;
  voices: VoiceSamples;
  voiceImports: VoiceImports;
}

/** Opens text-to-speech and the voice samples. */
export async function openSpeech(
  core: Core,
  guard: Guard,
  onClose: (hook: CloseHook) => void,
): Promise<SpeechServices> {
  const { config, db, sealer, events, jobs, trash, versions, now, folders } = core;
  const voices = new VoiceSamples({
    db,
    sealer: sealer.forPurpose("voices"),
    folder: folders.voices,
    trash,
    versions,
    events,
    now,
  });
  trash.register("voice", voices.createTrashHandler());
  const voiceImports = await VoiceImports.open({
    jobs,
    guard,
    samples: voices,
    folder: folders.imports,
    ytDlpPath: config.ytDlpPath ?? undefined,
  });
  const client = openHttpClient();
  onClose(() => client.close());
  const speech = new Speech({
    settings: new SpeechSettings({ db, sealer: sealer.forPurpose("speech"), events }),
    client,
    samples: { list: () => voices.list(), get: (id) => voices.getReference(id) },
  });
  return { speech, voices, voiceImports };
}
