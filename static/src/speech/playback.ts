/** The one player of the page. Audio that the browser can stream plays while it arrives, other audio when complete. */
import { signal } from "@preact/signals";
import type { StreamedAudio } from "./streamed_audio.ts";

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
    const isStreamed = canStream(type);
    const source = isStreamed ? new MediaSource() : await audio.whole();
    signal.throwIfAborted();
    const url = URL.createObjectURL(source);
    try {
      const over = this.#begin(url, signal);
      const fed = isStreamed ? feed(source as MediaSource, type, audio) : Promise.resolve(undefined);
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

function canStream(type: string): boolean {
  return type !== "" && globalThis.MediaSource !== undefined && MediaSource.isTypeSupported(type);
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
