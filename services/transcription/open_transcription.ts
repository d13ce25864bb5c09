/** Opens transcription. */
import type { CloseHook } from "../async/lazy.ts";
import type { Core } from "../core/open_core.ts";
import { openHttpClient } from "../http/http_client.ts";
import { Transcription, TranscriptionSettings } from "./transcription.ts";

/** Opens transcription. It connects with the first request. */
export function openTranscription({ db, sealer, events }: Core, onClose: (hook: CloseHook) => void): Transcription {
  const client = openHttpClient();
  onClose(() => client.close());
  const settings = new TranscriptionSettings({ db, sealer: sealer.forPurpose("transcription"), events });
  return new Transcription({ settings, client });
}
