/** A queue of audio: the next one is fetched while one plays. */
import { computed } from "@preact/signals";
import type { AudioOwner } from "../state/speech/read_aloud.ts";
import type { StreamedAudio } from "./streamed_audio.ts";
import type { Playback } from "./playback.ts";

/** The source of a queue. */
export interface AudioSource {
  /** Requests the next audio at once and resolves with it; undefined at the end. */
  next(): Promise<StreamedAudio | undefined>;
  /** Stops requesting audio. */
  close(): void;
}

/** The state that listeners see. */
export type PlaybackPhase = "preparing" | "speaking" | "paused";

/** Plays a source from start to end. */
export class PlaybackQueue implements AudioOwner {
  readonly key: string;
  readonly phase = computed<PlaybackPhase>(() => {
    if (this.#playback.isPaused.value) return "paused";
    return this.#playback.isSounding.value ? "speaking" : "preparing";
  });
  readonly #playback: Playback;
  readonly #source: AudioSource;
  readonly #abort = new AbortController();
  /** Requested and not yet played. */
  readonly #open = new Set<StreamedAudio>();

  /** @param key Id of the message or the sample. */
  constructor(key: string, source: AudioSource, playback: Playback) {
    this.key = key;
    this.#source = source;
    this.#playback = playback;
  }

  /** Plays to the end or until stopped. @throws The failure of an audio. */
  async run(): Promise<void> {
    try {
      let next = this.#fetch();
      for (let audio = await next; audio; audio = await next) {
        next = this.#fetch();
        // The next audio may fail or be canceled while this one plays.
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

  /** Pauses. */
  pause(): void {
    this.#playback.pause();
  }

  /** Resumes. */
  resume(): void {
    this.#playback.resume();
  }

  /** Stops at once; the server's pending speech is canceled. */
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
