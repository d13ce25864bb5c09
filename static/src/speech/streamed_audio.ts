/** Audio that is buffered from its first byte, so that it can be fetched early and played before its end. */
import { setWaveLengths, toWaveFile } from "./wave_file.ts";

/** Rate of headerless samples whose type names none, in Hz. */
const USUAL_RATE_HZ = 24_000;

/** One audio response, requested at once. */
export class StreamedAudio {
  /** Resolves with its type when the response begins. Rejects with the request's failure. */
  readonly contentType: Promise<string>;
  readonly #abort = new AbortController();
  readonly #chunks: Uint8Array<ArrayBuffer>[] = [];
  #end: { failure?: unknown } | undefined;
  #news = Promise.withResolvers<void>();

  /** @param ask Sends the request; its signal fires if the audio is no longer needed. */
  constructor(ask: (signal: AbortSignal) => Promise<Response>) {
    const answer = ask(this.#abort.signal);
    this.contentType = answer.then((response) => response.headers.get("content-type") ?? "");
    // The player handles a failure; until then it is ignored.
    this.contentType.catch(() => {});
    void this.#receive(answer);
  }

  /** Cancels the request. */
  cancel(): void {
    this.#abort.abort();
  }

  /**
   * Yields what has arrived as one chunk, then each later arrival: encoders send single frames, and feeding each by
   * itself takes longer than playing it.
   *
   * @throws The request's failure, after the last byte.
   */
  async *chunks(): AsyncGenerator<Blob> {
    for (let at = 0;;) {
      if (at < this.#chunks.length) {
        const fresh = this.#chunks.slice(at);
        at = this.#chunks.length;
        yield new Blob(fresh);
        continue;
      }
      if (this.#end && "failure" in this.#end) throw this.#end.failure;
      if (this.#end) return;
      await this.#news.promise;
    }
  }

  /** Resolves with the whole audio as a playable file. @throws The request's failure. */
  async toBlob(): Promise<Blob> {
    const type = await this.contentType;
    const parts: Blob[] = [];
    for await (const chunk of this.chunks()) parts.push(chunk);
    const all = new Blob(parts, { type });
    const isRaw = type.startsWith("audio/pcm");
    if (!isRaw && !type.startsWith("audio/wav")) return all;
    const bytes = new Uint8Array(await all.arrayBuffer());
    const rate = Number(/rate=(\d+)/.exec(type)?.[1] ?? USUAL_RATE_HZ);
    return new Blob([isRaw ? toWaveFile(bytes, rate) : setWaveLengths(bytes)], { type: "audio/wav" });
  }

  async #receive(answer: Promise<Response>): Promise<void> {
    try {
      const reader = (await answer).body!.getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        this.#chunks.push(part.value);
        this.#notify();
      }
      this.#end = {};
    } catch (failure) {
      this.#end = { failure };
    }
    this.#notify();
  }

  #notify(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }
}
