/** Plays audio on the page, in place of what was playing. */
import { ApiError } from "../api/client.ts";
import type { Store } from "../state/store.ts";
import { texts } from "../texts/texts.ts";
import type { StreamedAudio } from "./streamed_audio.ts";
import { Playback } from "./playback.ts";
import { type AudioSource, PlaybackQueue, singleSource } from "./playback_queue.ts";

/** Starts playing; a failure shows a toast. @param key Id of the message or the sample. */
export function playSource(store: Store, key: string, source: AudioSource): void {
  const { speaking } = store;
  const reading = new PlaybackQueue(key, source, speaking.playback ??= new Playback());
  speaking.take(reading);
  reading.run().catch((thrown) => tell(store, thrown)).finally(() => {
    if (speaking.now.peek() === reading) speaking.stop();
  });
}

/** Plays one audio, or stops it if it is playing. */
export function toggleListening(store: Store, key: string, open: () => StreamedAudio): void {
  if (store.speaking.now.peek()?.key === key) store.speaking.stop();
  else playSource(store, key, singleSource(open));
}

function tell({ toasts, router }: Store, thrown: unknown): void {
  const error = thrown instanceof ApiError ? thrown : undefined;
  const action = error?.code === "not_available"
    ? { label: texts.nav.settings, run: () => router.go("/settings/voice") }
    : undefined;
  toasts.show(error?.message ?? texts.chat.speakFailed, { isError: true, action });
}
