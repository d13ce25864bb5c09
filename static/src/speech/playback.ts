/** The page's one player. Audio that the browser can take piece by piece is heard while it comes, other audio once it is whole. */
import { signal } from "@preact/signals";
import type { StreamedAudio } from "./streamed_audio.ts";

/** Plays one audio at a time. One element for all: browsers let it play again once a press has let it play. */
export class Playback {
  /** Held by the person, or by a browser that wants a press first. */
  readonly isPaused = signal(false);
  /** Something sounds, or would if it were not held. */
  readonly isSounding = signal(false);
  readonly #element = new Audio();

  constructor() {
    // The keys of a keyboard or a headset, and what a phone shows on its lock screen.
    const media = globalThis.navigator.mediaSession;
    media?.setActionHandler("pause", () => this.pause());
    media?.setActionHandler("play", () => this.resume());
  }

  /**
   * Plays to the end.
   *
   * @throws what the audio failed with, once what came of it has been heard; the signal's reason; `Error` for what the
   *   browser cannot play.
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

  /** Holds it where it is. */
  pause(): void {
    this.isPaused.value = true;
    this.#element.pause();
  }

  /** Goes on. */
  resume(): void {
    this.isPaused.value = false;
    this.#go();
  }

  /** Is silent, and free for something else. */
  stop(): void {
    this.isPaused.value = false;
    this.#element.pause();
    this.#element.removeAttribute("src");
    this.#element.load();
  }

  /** Starts what lies at an address and tells when it is over. */
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
      // Other reasons arrive as the element's error, or come of what this page did itself.
      if (thrown instanceof DOMException && thrown.name === "NotAllowedError") this.isPaused.value = true;
    });
  }
}

function canStream(type: string): boolean {
  return type !== "" && globalThis.MediaSource !== undefined && MediaSource.isTypeSupported(type);
}

/** Hands audio on as it comes. Gives its failure, `isBare` where nothing had come before it. */
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
