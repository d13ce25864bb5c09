/** The streams that llama.cpp keeps under an ID of the caller (docs/protocols/llm.md#llamacpp). */
import type { FakeAnswer, RecordedRequest } from "./fake_llm_http.ts";

/** The body of one stream, which goes on when its client leaves. */
export class KeptStream {
  #bytes = new Uint8Array();
  #hasEnded = false;
  #wake = Promise.withResolvers<void>();
  /** True once it was deleted or replaced: nothing more is written. */
  isDropped = false;

  get length(): number {
    return this.#bytes.length;
  }

  push(bytes: Uint8Array): void {
    if (this.isDropped) return;
    const joined = new Uint8Array(this.#bytes.length + bytes.length);
    joined.set(this.#bytes);
    joined.set(bytes, this.#bytes.length);
    this.#bytes = joined;
    this.#changed();
  }

  end(): void {
    this.#hasEnded = true;
    this.#changed();
  }

  /** Ends the bodies of all its clients, without an end mark. */
  drop(): void {
    this.isDropped = true;
    this.end();
  }

  get text(): string {
    return new TextDecoder().decode(this.#bytes);
  }

  /** Sends the body from an offset, and then live. */
  async sendTo(answer: FakeAnswer, from: number, headers: Record<string, string>): Promise<void> {
    await answer.head(200, { ...headers, "content-type": "text/event-stream" }, "chunked");
    for (let at = from; !answer.isGone;) {
      const rest = this.#bytes.slice(at);
      at += rest.length;
      await answer.write(rest);
      if (at < this.#bytes.length) continue;
      if (this.#hasEnded) return await answer.end();
      await Promise.race([this.#wake.promise, answer.gone]);
    }
  }

  #changed(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers<void>();
  }
}

/** The kept streams of a server. */
export class KeptStreams {
  readonly byId = new Map<string, KeptStream>();
  /** Bytes that are kept of each. */
  limit = 4 * 1024 * 1024;

  /** Keeps the stream of an answer. An earlier one under the same ID ends. */
  begin(id: string, answer: FakeAnswer): void {
    this.byId.get(id)?.drop();
    const stream = new KeptStream();
    this.byId.set(id, stream);
    answer.keeper = stream;
  }

  /** Answers the requests about kept streams. Returns false for others. */
  async answer(
    request: RecordedRequest,
    answer: FakeAnswer,
    headers: Record<string, string>,
  ): Promise<boolean> {
    const { pathname, searchParams } = new URL(request.path, "http://fake");
    if (pathname === "/v1/streams/lookup" && request.method === "POST") {
      const ids = (request.json?.conversation_ids ?? []) as string[];
      const known = ids.filter((id) => this.byId.has(id));
      await answer.json(
        200,
        known.map((id) => ({ conversation_id: id, total_bytes: this.byId.get(id)!.length })),
        headers,
      );
      return true;
    }
    if (pathname !== "/v1/stream") return false;
    const id = searchParams.get("conv_id") ?? "";
    const stream = this.byId.get(id);
    if (request.method === "DELETE") {
      stream?.drop();
      this.byId.delete(id);
      await answer.send(204, "", "", headers);
      return true;
    }
    if (stream === undefined) return false;
    const from = Number(searchParams.get("from") ?? 0);
    if (stream.length - from > this.limit) {
      const error = { code: 400, message: "Stream offset lost, please restart", type: "invalid_request_error" };
      await answer.json(400, { error }, headers);
    } else await stream.sendTo(answer, from, headers);
    return true;
  }
}
