/** A reply of the fake API, written by the test and streamed to any number of clients from any position. */
import type { ErrorBody, Message, RunningReply } from "../../../../static/src/api/types.ts";

const encoder = new TextEncoder();

/** A reply that a test writes. */
export class FakeReply {
  readonly message: Message;
  readonly #conversationId: string;
  readonly #startedAt = new Date().toISOString();
  readonly #generation = crypto.randomUUID().slice(0, 8);
  readonly #frames: { id: string; frame: string }[] = [];
  readonly #clients = new Set<ReadableStreamDefaultController<Uint8Array>>();
  readonly #onEnd: () => void;
  #last: string | undefined;

  constructor(conversationId: string, message: Message, onEnd: () => void) {
    this.#conversationId = conversationId;
    this.message = message;
    this.#onEnd = onEnd;
    this.#push({ role: "assistant", content: "" });
  }

  get isRunning(): boolean {
    return this.#last === undefined;
  }

  /** Id of the first frame, which contains no text. */
  get startId(): string {
    return this.#frames[0]!.id;
  }

  /** The reply in the list of running replies. */
  listed(): RunningReply {
    return {
      assistant_message_id: this.message.id,
      conversation_id: this.#conversationId,
      started_at: this.#startedAt,
      status: "streaming",
      is_waiting: false,
      pending_calls: [],
    };
  }

  /** Sends text. */
  say(text: string): void {
    this.message.content = `${this.message.content}${text}`;
    this.#push({ content: text });
  }

  /** Sends reasoning. */
  think(text: string): void {
    this.message.reasoning = `${this.message.reasoning ?? ""}${text}`;
    this.#push({ reasoning_content: text });
  }

  /** Sends a status of the model server before its response. */
  notify(notice: { code: string; message: string; context_size?: number }): void {
    const frame = `event: notice\ndata: ${JSON.stringify(notice)}\n\n`;
    for (const client of this.#clients) client.enqueue(encoder.encode(frame));
  }

  /** Ends the reply; an error makes it failed or interrupted. */
  end(status: "complete" | "stopped" | "failed" | "interrupted", error?: ErrorBody): void {
    if (!this.isRunning) return;
    Object.assign(this.message, { status, error, updated_at: new Date().toISOString() });
    this.#last = error ? `event: error\ndata: ${JSON.stringify({ error })}\n\n` : "data: [DONE]\n\n";
    for (const client of this.#clients) {
      client.enqueue(encoder.encode(this.#last));
      client.close();
    }
    this.#clients.clear();
    this.#onEnd();
  }

  /** Breaks all connections in the middle of the stream. The reply continues. */
  cut(): void {
    for (const client of this.#clients) client.error(new Error("cut"));
    this.#clients.clear();
  }

  /** Ends all streams without a final event. The reply continues. */
  leave(): void {
    for (const client of this.#clients) client.close();
    this.#clients.clear();
  }

  /** Streams the reply from after an event, or from the start. */
  stream(lastEventId: string | undefined): Response {
    const from = this.#frames.findIndex(({ id }) => id === lastEventId) + 1;
    let own: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        own = controller;
        for (const { frame } of this.#frames.slice(from)) controller.enqueue(encoder.encode(frame));
        if (this.#last === undefined) this.#clients.add(controller);
        else {
          controller.enqueue(encoder.encode(this.#last));
          controller.close();
        }
      },
      cancel: () => {
        this.#clients.delete(own);
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  }

  #push(delta: Record<string, string>): void {
    const { content, reasoning } = this.message;
    const id = `${this.#generation}.${this.#frames.length}.${content.length}.${reasoning?.length ?? 0}`;
    const chunk = {
      object: "chat.completion.chunk",
      model: "fake",
      choices: [{ index: 0, delta, finish_reason: null }],
    };
    const frame = `id: ${id}\ndata: ${JSON.stringify(chunk)}\n\n`;
    this.#frames.push({ id, frame });
    for (const client of this.#clients) client.enqueue(encoder.encode(frame));
  }
}
