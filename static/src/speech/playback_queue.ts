/** One audio after another, the next one fetched while one is heard. */
import { computed } from "@preact/signals";
import type { AudioOwner } from "../state/speech/read_aloud.ts";
import type { StreamedAudio } from "./streamed_audio.ts";
import type { Playback } from "./playback.ts";

/** Where a reading gets its audio from. */
export interface AudioSource {
  /** Waits for the next audio, which it asks for at once; undefined at the end. */
  next(): Promise<StreamedAudio | undefined>;
  /** Nothing more is wanted. */
  close(): void;
}

/** What a listener is told of a reading. */
export type PlaybackPhase = "preparing" | "speaking" | "paused";

/** Plays a source from its beginning to its end. */
export class PlaybackQueue implements AudioOwner {
  readonly key: string;
  readonly phase = computed<PlaybackPhase>(() => {
    if (this.#playback.isPaused.value) return "paused";
    return this.#playback.isSounding.value ? "speaking" : "preparing";
  });
  readonly #playback: Playback;
  readonly #source: AudioSource;
  readonly #abort = new AbortController();
  /** Asked for and not yet heard. */
  readonly #open = new Set<StreamedAudio>();

  /** @param key What is read: the id of a message, of a sample. */
  constructor(key: string, source: AudioSource, playback: Playback) {
    this.key = key;
    this.#source = source;
    this.#playback = playback;
  }

  /** Reads to the end, or until it is stopped. @throws what a piece failed with. */
  async run(): Promise<void> {
    try {
      let next = this.#fetch();
      for (let audio = await next; audio; audio = await next) {
        next = this.#fetch();
        // What comes next may fail or be cancelled while this one is heard.
        next.catch(() => {});
        await this.#playback.play(audio, this.#abort.signal);
        this.#open.delete(audio);
      }
    } catch (thrown) {
      if (!this.#abort.signal.aborted) throw thrown;
    } finally {
      this.stop();
    }
  }

  /** Holds the voice. */
  pause(): void {
    this.#playback.pause();
  }

  /** Goes on where it was held. */
  resume(): void {
    this.#playback.resume();
  }

  /** Ends it at once; what the server is making for it is cancelled. */
  stop(): void {
    if (this.#abort.signal.aborted) return;
    this.#abort.abort();
    this.#source.close();
    for (const audio of this.#open) audio.cancel();
    this.#playback.stop();
  }

  async #fetch(): Promise<StreamedAudio | undefined> {
    const audio = await this.#source.next();
    if (audio && this.#abort.signal.aborted) audio.cancel();
    else if (audio) this.#open.add(audio);
    return audio;
  }
}

/** A source of one audio. */
export function singleSource(open: () => StreamedAudio): AudioSource {
  let isOpened = false;
  return {
    next() {
      const audio = isOpened ? undefined : open();
      isOpened = true;
      return Promise.resolve(audio);
    },
    close() {},
  };
}
