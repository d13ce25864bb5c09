/**
 * The one player of the page and its queue. Audio that the browser can stream plays while it arrives, other audio when
 * complete.
 */
import { computed, signal } from "@preact/signals";
import type { StreamedAudio } from "./streamed_audio.ts";
import type { AudioOwner } from "../state/speech/read_aloud.ts";
import { ApiError } from "../api/client.ts";
import type { Store } from "../state/store.ts";
import { texts } from "../texts/texts.ts";

/** Plays one audio at a time, with a single element: after one click, browsers let it play again. */
export class Playback {
  /** Paused by the user, or by a browser that requires a click first. */
  readonly isPaused = signal(false);
  /** True if audio is playing, or would be if it weren't paused. */
  readonly isSounding = signal(false);
  readonly #element = new Audio();

  constructor() {
    this.takeMediaKeys();
  }

  /** Takes the media keys of keyboards and headsets, and of the lock screen of phones. */
  takeMediaKeys(): void {
    const media = globalThis.navigator.mediaSession;
    media?.setActionHandler("pause", () => this.pause());
    media?.setActionHandler("play", () => this.resume());
  }

  /**
   * Plays to the end.
   *
   * @throws The failure of the audio, after what arrived has been played; the signal's reason; `Error` if the browser
   * can't
   *   play it.
   */
  async play(audio: StreamedAudio, signal: AbortSignal): Promise<void> {
    const type = await audio.contentType;
    const Source = findMediaSource(type);
    const stream = Source && new Source();
    const source = stream ?? await audio.toBlob();
    // A managed source opens only then.
    this.#element.disableRemotePlayback = stream !== undefined;
    signal.throwIfAborted();
    const url = URL.createObjectURL(source);
    try {
      const over = this.#begin(url, signal);
      const fed = stream ? feed(stream, type, audio) : Promise.resolve(undefined);
      await Promise.race([over, fed.then((failure) => failure?.isBare ? Promise.reject(failure.thrown) : over)]);
      const failure = await fed;
      if (failure) throw failure.thrown;
    } finally {
      this.isSounding.value = false;
      URL.revokeObjectURL(url);
    }
  }

  /** Pauses. */
  pause(): void {
    this.isPaused.value = true;
    this.#element.pause();
  }

  /** Resumes. */
  resume(): void {
    this.isPaused.value = false;
    this.#go();
  }

  /** Stops. */
  stop(): void {
    this.isPaused.value = false;
    this.#element.pause();
    this.#element.removeAttribute("src");
    this.#element.load();
  }

  /** Plays a URL and resolves at its end. */
  #begin(url: string, signal: AbortSignal): Promise<void> {
    const element = this.#element;
    const over = Promise.withResolvers<void>();
    element.onended = () => over.resolve();
    element.onerror = () => over.reject(new Error(element.error?.message || "MediaError"));
    element.onplaying = () => this.isSounding.value = true;
    signal.addEventListener("abort", () => over.reject(signal.reason), { once: true });
    element.src = url;
    this.#go();
    return over.promise;
  }

  #go(): void {
    if (this.isPaused.peek() || !this.#element.hasAttribute("src")) return;
    this.#element.play().catch((thrown) => {
      // Other reasons arrive as the element's error, or come from this page.
      if (thrown instanceof DOMException && thrown.name === "NotAllowedError") this.isPaused.value = true;
    });
  }
}

/** Finds what plays audio of this type while it arrives. iPhones have only the managed kind. */
function findMediaSource(type: string): typeof MediaSource | undefined {
  const { MediaSource: plain, ManagedMediaSource: managed } = globalThis as typeof globalThis & {
    ManagedMediaSource?: typeof MediaSource;
  };
  const source = plain ?? managed;
  return type !== "" && source?.isTypeSupported(type) ? source : undefined;
}

/** Feeds audio to the player as it arrives. Returns its failure, with `isBare` if nothing had arrived before. */
async function feed(
  source: MediaSource,
  type: string,
  audio: StreamedAudio,
): Promise<{ thrown: unknown; isBare: boolean } | undefined> {
  await once(source, "sourceopen");
  const buffer = source.addSourceBuffer(type);
  let isBare = true;
  let failure: { thrown: unknown; isBare: boolean } | undefined;
  try {
    for await (const chunk of audio.chunks()) {
      if (source.readyState !== "open") return undefined;
      buffer.appendBuffer(await chunk.arrayBuffer());
      await once(buffer, "updateend");
      isBare = false;
    }
  } catch (thrown) {
    failure = { thrown, isBare };
  }
  if (source.readyState === "open") source.endOfStream();
  return failure;
}

function once(target: EventTarget, name: string): Promise<void> {
  return new Promise((resolve) => target.addEventListener(name, () => resolve(), { once: true }));
}

/** The source of a queue. */
export interface AudioSource {
  /** Requests the next audio at once and resolves with it; undefined at the end. */
  next(): Promise<StreamedAudio | undefined>;
  /** Stops requesting audio. */
  close(): void;
}

/** The state that listeners see. */
type PlaybackPhase = "preparing" | "speaking" | "paused";

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
export function createSingleSource(open: () => StreamedAudio): AudioSource {
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

/** Starts playing; a failure shows a toast. @param key Id of the message or the sample. */
export function playSource(store: Store, key: string, source: AudioSource): void {
  const { speaking } = store;
  const reading = new PlaybackQueue(key, source, speaking.playback ??= new Playback());
  speaking.take(reading);
  reading.run().then(() => speaking.end(reading), (thrown) => {
    showFailure(store, thrown);
    if (speaking.now.peek() === reading) speaking.stop();
  });
}

/** Plays one audio, or stops it if it is playing. */
export function toggleListening(store: Store, key: string, open: () => StreamedAudio): void {
  if (store.speaking.now.peek()?.key === key) store.speaking.stop();
  else playSource(store, key, createSingleSource(open));
}

function showFailure({ toasts, router }: Store, thrown: unknown): void {
  const error = thrown instanceof ApiError ? thrown : undefined;
  const action = error?.code === "not_available"
    ? { label: texts.nav.settings, run: () => router.go("/settings/voice") }
    : undefined;
  toasts.show(error?.message ?? texts.chat.speakFailed, { isError: true, action });
}
