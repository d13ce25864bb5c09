/** Audio as it comes in, kept from its first byte on: it can be fetched before its turn, and played before its end. */
import { setWaveLengths, toWaveFile } from "./wave_file.ts";

/** Rate of headerless samples whose type does not say. */
const USUAL_RATE_HZ = 24_000;

/** One answer with audio; it is asked for at once. */
export class StreamedAudio {
  /** Its type, once the answer has begun. Rejects with what the request failed with. */
  readonly contentType: Promise<string>;
  readonly #abort = new AbortController();
  readonly #chunks: Uint8Array<ArrayBuffer>[] = [];
  #end: { failure?: unknown } | undefined;
  #news = Promise.withResolvers<void>();

  /** @param ask Sends the request; its signal fires when nobody wants the audio any more. */
  constructor(ask: (signal: AbortSignal) => Promise<Response>) {
    const answer = ask(this.#abort.signal);
    this.contentType = answer.then((response) => response.headers.get("content-type") ?? "");
    // Whoever plays it is told; until then a failure is nobody's.
    this.contentType.catch(() => {});
    void this.#receive(answer);
  }

  /** Ends the request; what is being made is not wanted. */
  cancel(): void {
    this.#abort.abort();
  }

  /**
   * Gives what there is in one piece, then what came meanwhile: encoders send a frame at a time, and handing on each one
   * by itself takes a player longer than playing it.
   *
   * @throws what the request failed with, behind the last byte that came.
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

  /** Waits for the end and gives all of it as a file that can be played. @throws what the request failed with. */
  async whole(): Promise<Blob> {
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
        this.#tell();
      }
      this.#end = {};
    } catch (failure) {
      this.#end = { failure };
    }
    this.#tell();
  }

  #tell(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }
}
