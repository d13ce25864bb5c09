/** Fake server for Anthropic Messages (docs/protocols/llm.md#anthropic-messages). */
import { type FakeAnswer, type FakeHttp, openFakeHttp, type RecordedRequest } from "./fake_llm_http.ts";
import { stopAt } from "./fake_llm_stream.ts";

/** Switches of the fake. They can be changed while it runs. */
export interface FakeAnthropicOptions {
  pieces?: string[];
  thinking?: string[];
  tool?: { id: string; name: string; fragments: string[] };
  stopReason?: string;
  models?: string[];
  /** Models a page of the list. */
  pageSize?: number;
  apiKey?: string;
  /**
   * `error`: an error event after the first delta; `overloaded`: 529; `sampling`: 400 for each sampler; `prefill`: 400 for a
   * trailing assistant message; `budget`: 400 for a budget of thinking; `thinking`: 400 for all thinking.
   */
  fail?: "none" | "error" | "overloaded" | "sampling" | "overflow" | "cut" | "prefill" | "budget" | "thinking";
}

/** A running fake server. */
class FakeAnthropic {
  options: Required<Omit<FakeAnthropicOptions, "tool" | "apiKey">> & Pick<FakeAnthropicOptions, "tool" | "apiKey">;
  #http!: FakeHttp;

  constructor(options: FakeAnthropicOptions = {}) {
    this.options = {
      pieces: ["Hel", "lo"],
      thinking: [],
      stopReason: "end_turn",
      models: ["claude-fake"],
      pageSize: 1000,
      fail: "none",
      ...options,
    };
  }

  async open(): Promise<this> {
    this.#http = await openFakeHttp((request, answer) => this.#handle(request, answer));
    return this;
  }

  /** Base URL without `/v1`, as Anthropic's own clients write it. */
  get url(): string {
    return `http://127.0.0.1:${this.#http.port}`;
  }

  get requests(): RecordedRequest[] {
    return this.#http.requests;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#http.close();
  }

  async #handle(request: RecordedRequest, answer: FakeAnswer): Promise<void> {
    const { apiKey } = this.options;
    const path = request.path.split("?")[0];
    if (apiKey !== undefined && request.headers.get("x-api-key") !== apiKey) {
      return await refuse(answer, 401, "authentication_error", "invalid x-api-key");
    }
    if (request.headers.get("anthropic-version") === null) {
      return await refuse(answer, 400, "invalid_request_error", "anthropic-version: header is required");
    }
    if (request.method === "GET" && path === "/v1/models") return await this.#list(request, answer);
    if (request.method === "POST" && path === "/v1/messages") return await this.#message(request, answer);
    await refuse(answer, 404, "not_found_error", "Not found");
  }

  async #list(request: RecordedRequest, answer: FakeAnswer): Promise<void> {
    const { models, pageSize } = this.options;
    const after = new URL(request.path, "http://x").searchParams.get("after_id");
    const start = after === null ? 0 : models.indexOf(after) + 1;
    const page = models.slice(start, start + pageSize);
    await answer.json(200, {
      data: page.map((id) => ({ type: "model", id, display_name: id, max_input_tokens: 200_000, max_tokens: 8192 })),
      has_more: start + pageSize < models.length,
      first_id: page[0] ?? null,
      last_id: page.at(-1) ?? null,
    });
  }

  async #message(request: RecordedRequest, answer: FakeAnswer): Promise<void> {
    const { fail } = this.options;
    const body = request.json ?? {};
    if (typeof body.max_tokens !== "number") {
      return await refuse(answer, 400, "invalid_request_error", "max_tokens: Field required");
    }
    const messages = body.messages as { role: string; content: unknown }[];
    if (messages[0]?.role !== "user") {
      return await refuse(answer, 400, "invalid_request_error", 'messages: first message must use the "user" role');
    }
    if (fail === "overloaded") return await refuse(answer, 529, "overloaded_error", "Overloaded");
    if (fail === "overflow") {
      return await refuse(answer, 400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum");
    }
    const refusal = findRefusal(body, fail);
    if (refusal !== undefined) return await refuse(answer, 400, "invalid_request_error", refusal);
    const pieces = stopAt(body.stop_sequences, this.options.pieces);
    if (body.stream !== true) return await answer.json(200, this.#whole(pieces));
    await answer.head(200, { "content-type": "text/event-stream" }, "chunked");
    await this.#stream(answer, pieces);
  }

  async #stream(answer: FakeAnswer, pieces: string[]): Promise<void> {
    const { thinking, tool, stopReason, fail } = this.options;
    const send = (type: string, more: Record<string, unknown> = {}) =>
      answer.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
    const usage = { input_tokens: 10, cache_creation_input_tokens: 2, cache_read_input_tokens: 3, output_tokens: 1 };
    await send("message_start", {
      message: { id: "msg_1", role: "assistant", model: "claude-fake", content: [], usage },
    });
    let index = 0;
    if (thinking.length > 0) {
      await send("content_block_start", { index, content_block: { type: "thinking", thinking: "", signature: "" } });
      for (const text of thinking) {
        await send("content_block_delta", { index, delta: { type: "thinking_delta", thinking: text } });
      }
      await send("content_block_delta", { index, delta: { type: "signature_delta", signature: "c2ln" } });
      await send("content_block_stop", { index });
      index++;
    }
    await send("content_block_start", { index, content_block: { type: "text", text: "" } });
    for (const [n, text] of pieces.entries()) {
      await send("ping");
      await send("content_block_delta", { index, delta: { type: "text_delta", text } });
      if (n > 0) continue;
      await send("an_event_of_the_future", { index, delta: { type: "text_delta", text: "never shown" } });
      if (fail === "error") {
        await send("error", { error: { type: "overloaded_error", message: "Overloaded" } });
        return await answer.end();
      }
      if (fail === "cut") return answer.cut();
    }
    await send("content_block_stop", { index });
    if (tool !== undefined) {
      index++;
      const block = { type: "tool_use", id: tool.id, name: tool.name, input: {} };
      await send("content_block_start", { index, content_block: block });
      for (const partial of tool.fragments) {
        await send("content_block_delta", { index, delta: { type: "input_json_delta", partial_json: partial } });
      }
      await send("content_block_stop", { index });
    }
    await send("message_delta", {
      delta: { stop_reason: stopReason, stop_sequence: null },
      usage: { output_tokens: 4 },
    });
    await send("message_delta", { delta: { stop_reason: null }, usage: { output_tokens: 9 } });
    await send("message_stop");
    await answer.end();
  }

  #whole(pieces: string[]): unknown {
    const { thinking, tool, stopReason } = this.options;
    const content: unknown[] = [];
    if (thinking.length > 0) content.push({ type: "thinking", thinking: thinking.join(""), signature: "c2ln" });
    content.push({ type: "text", text: pieces.join("") });
    if (tool !== undefined) {
      content.push({ type: "tool_use", id: tool.id, name: tool.name, input: JSON.parse(tool.fragments.join("")) });
    }
    const usage = { input_tokens: 10, cache_creation_input_tokens: 2, cache_read_input_tokens: 3, output_tokens: 9 };
    return { type: "message", id: "msg_1", role: "assistant", content, stop_reason: stopReason, usage };
  }
}

/**
 * Returns why a request is refused.
 *
 * @see https://docs.claude.com/en/docs/build-with-claude/extended-thinking
 * @see https://docs.claude.com/en/docs/build-with-claude/adaptive-thinking
 * @see https://docs.claude.com/en/docs/build-with-claude/prompt-caching
 */
function findRefusal(body: Record<string, unknown>, fail: string): string | undefined {
  const sampler = ["temperature", "top_p", "top_k"].find((name) => name in body);
  if (fail === "sampling" && sampler !== undefined) return `${sampler}: not supported by this model`;
  const messages = body.messages as { role: string; content: Record<string, unknown>[] }[];
  if (fail === "prefill" && messages.at(-1)?.role === "assistant") {
    return "This model does not support assistant message prefill. The conversation must end with a user message.";
  }
  const thinking = body.thinking as { type?: string; budget_tokens?: number } | undefined;
  if (thinking !== undefined && thinking.type !== "disabled") {
    if (fail === "thinking") return "'claude-fake' does not support thinking";
    if (fail === "budget" && thinking.type === "enabled") {
      return '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort".';
    }
    if ((thinking.budget_tokens ?? 0) >= (body.max_tokens as number)) {
      return "`max_tokens` must be greater than `thinking.budget_tokens`";
    }
    if (body.temperature !== undefined && body.temperature !== 1) {
      return "`temperature` may only be set to 1 when thinking is enabled";
    }
  }
  const marks = JSON.stringify(body).split('"cache_control"').length - 1;
  if (marks > 4) return "A maximum of 4 blocks with cache_control may be provided";
  const hasUnsigned = messages.some(({ content }) =>
    content.some((block) => block.type === "thinking" && block.signature !== "c2ln")
  );
  return hasUnsigned ? "messages.1.content.0: Invalid `signature` in `thinking` block" : undefined;
}

function refuse(answer: FakeAnswer, status: number, type: string, message: string): Promise<void> {
  return answer.json(status, { type: "error", error: { type, message }, request_id: "req_1" });
}

/** Starts the fake server. */
export function openFakeAnthropic(options: FakeAnthropicOptions = {}): Promise<FakeAnthropic> {
  return new FakeAnthropic(options).open();
}
