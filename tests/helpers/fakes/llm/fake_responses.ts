/**
 * OpenAI's Responses API with background mode: a response that is written in the background goes on when its client leaves,
 * can be read again from any event, and can be canceled and deleted. Tests write the replies.
 *
 * @see https://platform.openai.com/docs/guides/background
 * @see https://platform.openai.com/docs/api-reference/responses
 */
import type { FakeAnswer, RecordedRequest } from "./fake_llm_http.ts";
import { openFakeHttp } from "./fake_llm_http.ts";

type Item = Record<string, unknown>;

/** One response. */
export class FakeResponse {
  readonly id = `resp_${crypto.randomUUID().replaceAll("-", "")}`;
  readonly request: Record<string, unknown>;
  status: "in_progress" | "completed" | "cancelled" = "in_progress";
  /** The events so far, as they are sent. */
  readonly #frames: string[] = [];
  readonly #output: Item[] = [];
  /** Text of the item that is being written. */
  #item: { type: "message" | "reasoning"; text: string } | undefined;
  #wake = Promise.withResolvers<void>();

  constructor(request: Record<string, unknown>) {
    this.request = request;
    this.#push("response.created", { response: this.toJson() });
    this.#push("response.in_progress", { response: this.toJson() });
  }

  get isBackground(): boolean {
    return this.request.background === true;
  }

  /** Number of the last event. */
  get last(): number {
    return this.#frames.length - 1;
  }

  toJson(): Item {
    const { background = false, store = true, model } = this.request;
    return {
      id: this.id,
      object: "response",
      status: this.status,
      background,
      store,
      model,
      error: null,
      incomplete_details: null,
      output: [...this.#output],
      usage: this.status === "completed" ? { input_tokens: 5, output_tokens: 7, total_tokens: 12 } : null,
    };
  }

  /** Writes a piece of text. */
  emit(delta: string): void {
    this.#begin("message");
    this.#item!.text += delta;
    this.#push("response.output_text.delta", { output_index: this.#output.length, content_index: 0, delta });
  }

  /** Writes a piece of the reasoning's summary. */
  think(delta: string): void {
    this.#begin("reasoning");
    this.#item!.text += delta;
    this.#push("response.reasoning_summary_text.delta", { output_index: this.#output.length, summary_index: 0, delta });
  }

  /** Ends the item that is being written. */
  endItem(): void {
    if (this.#item === undefined) return;
    const { type, text } = this.#item;
    const item = type === "message"
      ? { type, id: "msg_1", role: "assistant", status: "completed", content: [{ type: "output_text", text }] }
      : { type, id: "rs_1", summary: [{ type: "summary_text", text }], encrypted_content: "opaque" };
    this.#push("response.output_item.done", { output_index: this.#output.length, item });
    this.#output.push(item);
    this.#item = undefined;
  }

  /** Calls a function. */
  callFunction(name: string, args: string): void {
    this.endItem();
    const item = { type: "function_call", id: "fc_1", call_id: `call_${this.last}`, name, arguments: args };
    const at = { output_index: this.#output.length };
    this.#push("response.output_item.added", { ...at, item: { ...item, arguments: "" } });
    this.#push("response.function_call_arguments.delta", { ...at, delta: args });
    this.#push("response.output_item.done", { ...at, item });
    this.#output.push(item);
  }

  /** Completes the response. */
  finish(): void {
    this.endItem();
    if (this.status !== "in_progress") return;
    this.status = "completed";
    this.#push("response.completed", { response: this.toJson() });
  }

  /** Cancels the response: its streams end. */
  cancel(): void {
    if (this.status !== "in_progress") return;
    this.status = "cancelled";
    this.#changed();
  }

  /** Sends the events after one, and then live. */
  async sendTo(answer: FakeAnswer, after: number): Promise<void> {
    await answer.head(200, { "content-type": "text/event-stream" }, "chunked");
    for (let at = after + 1; !answer.isGone;) {
      const rest = this.#frames.slice(at);
      at += rest.length;
      await answer.write(rest.join(""));
      if (at < this.#frames.length) continue;
      if (this.status !== "in_progress") return await answer.end();
      await Promise.race([this.#wake.promise, answer.gone]);
    }
  }

  #begin(type: "message" | "reasoning"): void {
    if (this.#item?.type === type) return;
    this.endItem();
    this.#item = { type, text: "" };
    this.#push("response.output_item.added", { output_index: this.#output.length, item: { type } });
  }

  #push(type: string, fields: Item): void {
    if (this.status === "cancelled") return;
    const event = { type, sequence_number: this.#frames.length, ...fields };
    this.#frames.push(`event: ${type}\ndata: ${JSON.stringify(event)}\n\n`);
    this.#changed();
  }

  #changed(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers<void>();
  }
}

/** A running server. */
export interface FakeResponses extends AsyncDisposable {
  /** Base URL with `/v1`. */
  readonly url: string;
  /** All requests to it, such as `"POST /v1/responses"`. */
  readonly asked: string[];
  /** The stored responses. */
  readonly stored: Map<string, FakeResponse>;
  /** Returns the next response that is asked for. */
  nextResponse(): Promise<FakeResponse>;
}

/** Starts a server. */
export async function openFakeResponses(): Promise<FakeResponses> {
  const stored = new Map<string, FakeResponse>();
  const begun: FakeResponse[] = [];
  const asked: string[] = [];
  let wake = Promise.withResolvers<void>();
  let taken = 0;

  const refuse = (answer: FakeAnswer, status: number, message: string, param: string | null = null) =>
    answer.json(status, { error: { message, type: "invalid_request_error", param, code: null } });

  async function create(body: Record<string, unknown>, answer: FakeAnswer): Promise<void> {
    if (body.background === true && body.store === false) {
      return await refuse(answer, 400, "Background responses require store=true.", "store");
    }
    if (body.stream !== true) return await refuse(answer, 400, "This double only streams.", "stream");
    const response = new FakeResponse(body);
    if (body.store !== false) stored.set(response.id, response);
    begun.push(response);
    wake.resolve();
    wake = Promise.withResolvers();
    if (!response.isBackground) answer.gone.then(() => response.cancel());
    await response.sendTo(answer, -1);
  }

  async function handle(request: RecordedRequest, answer: FakeAnswer): Promise<void> {
    const { pathname, searchParams } = new URL(request.path, "http://fake");
    asked.push(`${request.method} ${request.path}`);
    if (pathname === "/v1/models") {
      return await answer.json(200, { object: "list", data: [{ id: "fake-model", object: "model" }] });
    }
    if (pathname === "/v1/responses" && request.method === "POST") return await create(request.json ?? {}, answer);
    const [, id = "", cancel] = /^\/v1\/responses\/([^/]+)(\/cancel)?$/.exec(pathname) ?? [];
    const response = stored.get(id);
    if (response === undefined) return await refuse(answer, 404, `Response with id '${id}' not found.`);
    if (cancel !== undefined && request.method === "POST") {
      if (!response.isBackground) return await refuse(answer, 400, "Cannot cancel a synchronous response.");
      response.cancel();
      return await answer.json(200, response.toJson());
    }
    if (cancel === undefined && request.method === "DELETE") {
      if (response.status === "in_progress") return await refuse(answer, 400, "The response is still in progress.");
      stored.delete(id);
      return await answer.json(200, { id, object: "response", deleted: true });
    }
    if (cancel !== undefined || request.method !== "GET") return await refuse(answer, 404, "Not found");
    if (searchParams.get("stream") !== "true") {
      if (searchParams.has("starting_after")) {
        return await refuse(answer, 400, "starting_after requires stream=true.", "starting_after");
      }
      return await answer.json(200, response.toJson());
    }
    if (!response.isBackground) {
      return await refuse(answer, 400, "Only background responses can be streamed.", "stream");
    }
    const after = Number(searchParams.get("starting_after") ?? -1);
    if (after > response.last) return await refuse(answer, 400, "starting_after is too large.", "starting_after");
    await response.sendTo(answer, after);
  }

  const http = await openFakeHttp(handle);
  return {
    url: `http://127.0.0.1:${http.port}/v1`,
    asked,
    stored,
    async nextResponse() {
      while (begun.length === taken) await wake.promise;
      return begun[taken++]!;
    },
    [Symbol.asyncDispose]: () => http.close(),
  };
}
