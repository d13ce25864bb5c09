/** Produces the bytes of one OpenAI-compatible response, with a switch per quirk (docs/protocols/llm.md#stream). */
import type { FakeAnswer, Framing } from "./fake_llm_http.ts";

/** The wire format of a response. The model name can also set it: `"fake:chunk=3,eol=crlf,end=bare"`. */
export interface FakeSwitches {
  /** Bytes per write; 0 is one write per frame, -1 everything in one write. */
  chunk: number;
  eol: "lf" | "crlf" | "cr";
  /** `off` leaves out the space after `data:`. */
  space: "on" | "off";
  comments: "on" | "off";
  role: "once" | "every" | "never";
  /** Content of the first chunk: absent with the first text already in it (`first`), null, or empty. */
  content: "null" | "empty" | "first";
  /** Fields that carry the reasoning, joined by `+`: `reasoning_content`, `reasoning`, `reasoning_details`. */
  reasoning: string;
  /** `asked`: own chunk when the request asks for it; the others come in any case. */
  usage: "none" | "asked" | "finish" | "own" | "own_nonempty" | "fake";
  /** Whether llama.cpp's timings ride along: on the usage chunk if there is one, else on the finish chunk. */
  timings: "on" | "off";
  finish: "own" | "last" | "none" | "on_usage";
  /** The finish reason. */
  reason: string;
  end: "done" | "bare" | "none";
  framing: Framing;
  /** Content type; `none` leaves it out. */
  type: string;
  fail:
    | "none"
    | "status_json"
    | "status_text"
    | "status_empty"
    | "html"
    | "html200"
    | "json200"
    | "frame_object"
    | "frame_string"
    | "event_error"
    | "error_field"
    | "choice_error"
    | "cut"
    | "silent_end"
    | "rst"
    | "stall"
    | "no_answer";
  status: number;
  retry_after: string;
  /** Message of the failure; `$KEY` becomes the key that was sent. */
  message: string;
  /** Words after which a failure inside the stream comes. */
  after: number;
  delay_headers: number;
  delay_first: number;
  delay_between: number;
  /** Number of words made from `seed`; 0 takes the pieces of the fake. */
  words: number;
  seed: number;
  /** `on`: the test drives the response step by step. */
  manual: "on" | "off";
  /** Signature of the blocks in `reasoning_details`; none if empty. */
  signature: string;
  /** `on`: answers JSON although a stream was asked for. */
  ignore_stream: "on" | "off";
  /** `on`: refuses `stream_options` with 400. */
  no_stream_options: "on" | "off";
  /** `on`: refuses `tools` with 400. */
  no_tools: "on" | "off";
  /** `on`: refuses `response_format` with 400. */
  no_response_format: "on" | "off";
  /** `on`: goes on after the text that the request asks to stop at. */
  no_stop: "on" | "off";
  /** Name of `object` on the usage chunk. */
  usage_object: string;
  /** Prompt tokens in the usage. */
  prompt_tokens: number;
}

/** A plain, well-behaved server. */
export const PLAIN_SWITCHES: FakeSwitches = {
  prompt_tokens: 11,
  chunk: 0,
  eol: "lf",
  space: "on",
  comments: "off",
  role: "once",
  content: "empty",
  reasoning: "reasoning_content",
  signature: "",
  usage: "asked",
  timings: "off",
  finish: "own",
  reason: "stop",
  end: "done",
  framing: "chunked",
  type: "text/event-stream",
  fail: "none",
  status: 500,
  retry_after: "",
  message: "the double was told to fail",
  after: 2,
  delay_headers: 0,
  delay_first: 0,
  delay_between: 0,
  words: 0,
  seed: 1,
  manual: "off",
  ignore_stream: "off",
  no_stream_options: "off",
  no_tools: "off",
  no_response_format: "off",
  no_stop: "off",
  usage_object: "chat.completion.chunk",
};

/** Reads switches written as `name=value,name=value`; unknown names and values of a wrong type are a mistake of the test. */
export function parseSwitches(text: string): Partial<FakeSwitches> {
  const switches: Record<string, string | number> = {};
  for (const pair of text.split(",").filter((item) => item !== "")) {
    const [name = "", ...rest] = pair.split("=");
    const value = rest.join("=");
    if (!(name in PLAIN_SWITCHES)) throw new Error(`The double has no switch "${name}"`);
    switches[name] = typeof PLAIN_SWITCHES[name as keyof FakeSwitches] === "number" ? Number(value) : value;
  }
  return switches as Partial<FakeSwitches>;
}

/** Pseudorandom words, some of them outside ASCII. The same seed returns the same words. */
export function seededWords(count: number, seed: number): string[] {
  const stock = ["the ", "fox ", "naïve ", "日本 ", "🦊 ", "über ", "a\n", "“quoted” ", "x", "lantern "];
  let state = seed >>> 0;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return stock[state % stock.length]!;
  });
}

/** The usage that the fake reports. */
export const FAKE_USAGE = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };

/** llama.cpp's timings as the fake reports them. */
export const FAKE_TIMINGS = { cache_n: 4, prompt_n: 7, prompt_ms: 12.5, predicted_n: 7, predicted_ms: 70 };

/** Writes the frames of one answer. */
export class FakeStream {
  readonly #answer: FakeAnswer;
  readonly switches: FakeSwitches;
  readonly #model: string;
  #isFirst = true;

  constructor(answer: FakeAnswer, switches: FakeSwitches, model: string) {
    this.#answer = answer;
    this.switches = switches;
    this.#model = model;
  }

  /** Sends the headers. */
  async open(headers: Record<string, string>): Promise<void> {
    const type = this.switches.type === "none" ? "" : this.switches.type;
    await this.#answer.head(
      200,
      { ...headers, "content-type": type, "cache-control": "no-cache" },
      this.switches.framing,
    );
  }

  /** One frame of any data, with an event name if given. */
  frame(data: string, name?: string): string {
    const eol = { lf: "\n", crlf: "\r\n", cr: "\r" }[this.switches.eol];
    const space = this.switches.space === "on" ? " " : "";
    const event = name === undefined ? "" : `event:${space}${name}${eol}`;
    const comment = this.switches.comments === "on" ? `: keep-alive${eol}${eol}` : "";
    return `${comment}${event}data:${space}${data}${eol}${eol}`;
  }

  /** Frames of one text or reasoning delta. */
  deltas(kind: "text" | "reasoning", text: string, finishReason: string | null = null): string {
    const fields: Record<string, unknown> = kind === "text" ? { content: text } : this.#reasoningFields(text);
    const role = this.switches.role === "every" || (this.switches.role === "once" && this.#isFirst);
    let frames = "";
    if (this.#isFirst && this.switches.content !== "first" && this.switches.role !== "never") {
      const content = this.switches.content === "null" ? null : "";
      frames = this.frame(this.#chunk({ role: "assistant", content }, null));
      this.#isFirst = false;
      return frames +
        this.frame(
          this.#chunk(this.switches.role === "every" ? { role: "assistant", ...fields } : fields, finishReason),
        );
    }
    this.#isFirst = false;
    return this.frame(this.#chunk(role ? { role: "assistant", ...fields } : fields, finishReason));
  }

  /** Frame with pieces of tool calls. */
  tools(pieces: unknown[]): string {
    return this.frame(this.#chunk({ tool_calls: pieces }, null));
  }

  /** Everything from the finish reason to the end mark. */
  ending(wantsUsage: boolean): string {
    const { finish, usage, reason, timings } = this.switches;
    const counts = usage === "fake"
      ? { prompt_tokens: 100, completion_tokens: 100, total_tokens: 200 }
      : usageOf(this.switches);
    const hasOwn = usage === "own" || usage === "own_nonempty" || usage === "fake" || (usage === "asked" && wantsUsage);
    const measured = timings === "on" ? { timings: FAKE_TIMINGS } : {};
    let frames = "";
    if (finish === "own") {
      const inFinish = usage === "finish" ? { usage: counts } : {};
      frames += this.frame(this.#chunk({}, reason, { ...inFinish, ...(hasOwn ? {} : measured) }));
    }
    if (hasOwn) {
      const own = { usage: counts, ...measured, object: this.switches.usage_object };
      frames += usage === "own_nonempty" || finish === "on_usage"
        ? this.frame(this.#chunk({}, finish === "on_usage" ? reason : null, own))
        : this.frame(JSON.stringify({ ...this.#base(), choices: [], ...own }));
    }
    if (this.switches.end === "done") frames += this.frame("[DONE]");
    if (this.switches.end === "bare") frames += "data: [DONE]";
    return frames;
  }

  /** Writes text in the chunks that the switches ask for. */
  async write(text: string): Promise<void> {
    const bytes = new TextEncoder().encode(text);
    const size = this.switches.chunk > 0 ? this.switches.chunk : bytes.length;
    for (
      let start = 0;
      start < bytes.length && (!this.#answer.isGone || this.#answer.keeper !== undefined);
      start += size
    ) {
      await this.#answer.write(bytes.subarray(start, start + size));
    }
  }

  #reasoningFields(text: string): Record<string, unknown> {
    const fields: Record<string, unknown> = {};
    for (const name of this.switches.reasoning.split("+")) {
      fields[name] = name === "reasoning_details" ? [reasoningDetail(text, this.switches)] : text;
    }
    return fields;
  }

  #base() {
    return { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_700_000_000, model: this.#model };
  }

  #chunk(delta: Record<string, unknown>, finishReason: string | null, more: Record<string, unknown> = {}): string {
    return JSON.stringify({ ...this.#base(), choices: [{ index: 0, delta, finish_reason: finishReason }], ...more });
  }
}

/** One block of reasoning as OpenRouter writes it. */
function reasoningDetail(text: string, { signature }: FakeSwitches): Record<string, unknown> {
  return { type: "reasoning.text", text, index: 0, ...(signature !== "" && { signature }) };
}

function usageOf({ prompt_tokens }: FakeSwitches) {
  return { ...FAKE_USAGE, prompt_tokens, total_tokens: prompt_tokens + FAKE_USAGE.completion_tokens };
}

/** The answer of a call that was not streamed. */
export function fakeCompletion(model: string, text: string, reasoning: string, switches: FakeSwitches): unknown {
  const message: Record<string, unknown> = { role: "assistant", content: text };
  if (reasoning !== "") {
    for (const name of switches.reasoning.split("+")) {
      message[name] = name === "reasoning_details" ? [reasoningDetail(reasoning, switches)] : reasoning;
    }
  }
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1_700_000_000,
    model,
    choices: [{ index: 0, message, finish_reason: switches.reason }],
    ...(switches.usage !== "none" && { usage: usageOf(switches) }),
  };
}

/** Ends a reply before the first text that a request asks to stop at. @param stop A text or a list of texts. */
export function stopAt(stop: unknown, pieces: string[]): string[] {
  const text = pieces.join("");
  const ends = [stop].flat().flatMap((one) => typeof one === "string" && text.includes(one) ? [text.indexOf(one)] : []);
  return ends.length === 0 ? pieces : [text.slice(0, Math.min(...ends))];
}
