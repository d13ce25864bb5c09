/**
 * Replies in the form of the Responses API: the response object, and the events of its stream.
 *
 * @see https://platform.openai.com/docs/api-reference/responses-streaming
 */
import { randomBytes } from "../crypto/random.ts";
import { readPartialObject } from "../json/partial_json.ts";
import type { ChatEvent, Usage } from "../llm/chat_event.ts";
import { ReasoningDetails } from "../llm/reasoning.ts";
import { type ToolCall, ToolCalls } from "../llm/streaming/tool_calls.ts";
import { CUSTOM_INPUT, type HiddenReasoning, type KeptItem, type ResponseItem } from "./response_input.ts";

/** How a response ended, or that it's being written. */
export type ResponseStatus = "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";

/** A response object. */
export interface ResponseObject {
  id: string;
  object: "response";
  /** Seconds since 1970. */
  created_at: number;
  status: ResponseStatus;
  error: { code: string; message: string } | null;
  incomplete_details: { reason: string } | null;
  output: ResponseItem[];
  usage: ResponseUsage | null;
  [more: string]: unknown;
}

/** Token counts of a response. */
export interface ResponseUsage {
  input_tokens: number;
  input_tokens_details: { cached_tokens: number };
  output_tokens: number;
  output_tokens_details: { reasoning_tokens: number };
  total_tokens: number;
  /** True if the model's server sent no counts. */
  estimated?: true;
}

/** One event of the stream. */
export interface ResponseEvent {
  type: string;
  /** From 0, without gaps. */
  sequence_number: number;
  [more: string]: unknown;
}

/** Returns a new ID: `"resp_"` and 32 hex digits. */
export function createResponseId(prefix: "resp" | "msg" | "rs" | "fc" | "ctc"): string {
  return `${prefix}_${[...randomBytes(16)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** An item that is being written. */
interface OpenItem {
  index: number;
  item: ResponseItem;
}

/** A tool call that is being written. */
interface OpenCall extends OpenItem {
  isCustom: boolean;
  /** Arguments or custom input that were sent. */
  sent: string;
  /** Length of the arguments when they were last parsed for the input of a custom tool. */
  parsedLength: number;
}

/** Options of a `ResponseWriter`. */
interface ResponseWriterOptions {
  /** The response without its results. */
  response: ResponseObject;
  /** Tools whose calls have text instead of JSON. */
  customNames: ReadonlySet<string>;
  /** Returns `encrypted_content` of reasoning; absent if the client didn't ask for it. */
  encrypt?(hidden: HiddenReasoning): string;
}

/** Writes one response. Each method returns the events that are due. */
export class ResponseWriter {
  readonly response: ResponseObject;
  readonly #options: ResponseWriterOptions;
  readonly #calls = new ToolCalls();
  readonly #open = new Map<number, OpenCall>();
  #details = new ReasoningDetails();
  #text: (OpenItem & { text: string }) | undefined;
  #reasoning: (OpenItem & { text: string }) | undefined;
  /** Text of the whole reply, for the estimate of its tokens. */
  #written = "";
  #finishReason = "stop";
  #usage: Usage | undefined;
  #sequence = 0;
  #nextIndex = 0;
  #kept: KeptItem[] = [];

  constructor(options: ResponseWriterOptions) {
    this.#options = options;
    this.response = options.response;
  }

  /** Text of the reply so far, with reasoning and calls. */
  get written(): string {
    return this.#written + this.#calls.all().map(({ function: { name, arguments: args } }) => name + args).join("");
  }

  /** Token counts of the model's server, if it sent any. */
  get reportedUsage(): Usage | undefined {
    return this.#usage;
  }

  /** Returns the items that were completed since the last call. */
  takeCompleted(): KeptItem[] {
    return this.#kept.splice(0);
  }

  /** Returns the first events. */
  start(): ResponseEvent[] {
    return ["response.created", "response.in_progress"].map((type) => this.#withResponse(type));
  }

  /** Adds what one read from the model returned. */
  add(batch: readonly ChatEvent[]): ResponseEvent[] {
    const out: ResponseEvent[] = [];
    for (const event of batch) {
      if (event.type === "text") this.#addText(event.text, out);
      else if (event.type === "reasoning") this.#addReasoning(event.text, out);
      else if (event.type === "reasoning_details") this.#details.add(event.details);
      else if (event.type === "tool_calls") this.#addCalls(event.delta, out);
      else if (event.type === "finish") this.#finishReason = event.reason;
      else if (event.type === "usage") this.#usage = event.usage;
    }
    return out;
  }

  /** Completes all items. Call `end` once they are stored. */
  completeItems(): ResponseEvent[] {
    const out: ResponseEvent[] = [];
    const isCut = this.#finishReason === "length" || this.#finishReason === "content_filter";
    this.#completeReasoning(out);
    this.#completeText(out, isCut && this.#open.size === 0);
    this.#completeCalls(out, isCut);
    return out;
  }

  /** Ends the response. */
  end(usage: Usage): ResponseEvent {
    const { response } = this;
    response.usage = toResponseUsage(usage);
    if (this.#finishReason === "length" || this.#finishReason === "content_filter") {
      response.status = "incomplete";
      const reason = this.#finishReason === "length" ? "max_output_tokens" : "content_filter";
      response.incomplete_details = { reason };
    } else {
      response.status = "completed";
      response.completed_at = Math.floor(Date.now() / 1000);
    }
    return this.#withResponse(`response.${response.status}`);
  }

  /** Ends the response with an error. */
  fail(error: { code: string; message: string }, usage: Usage): ResponseEvent {
    const { response } = this;
    response.status = "failed";
    response.error = error;
    response.usage = toResponseUsage(usage);
    return this.#withResponse("response.failed");
  }

  #addText(text: string, out: ResponseEvent[]): void {
    if (text === "") return;
    this.#written += text;
    this.#completeReasoning(out);
    if (this.#text === undefined) {
      const item = {
        id: createResponseId("msg"),
        type: "message",
        status: "in_progress",
        role: "assistant",
        content: [],
      };
      this.#text = { ...this.#openItem(item, out), text: "" };
      out.push(this.#event("response.content_part.added", {
        ...locate(this.#text),
        content_index: 0,
        part: createTextPart(""),
      }));
    }
    this.#text.text += text;
    out.push(this.#event("response.output_text.delta", {
      ...locate(this.#text),
      content_index: 0,
      delta: text,
      logprobs: [],
    }));
  }

  #completeText(out: ResponseEvent[], isCut = false): void {
    const open = this.#text;
    if (open === undefined) return;
    this.#text = undefined;
    const at = { ...locate(open), content_index: 0 };
    const part = createTextPart(open.text);
    out.push(this.#event("response.output_text.done", { ...at, text: open.text, logprobs: [] }));
    out.push(this.#event("response.content_part.done", { ...at, part }));
    this.#complete(open, { content: [part], status: isCut ? "incomplete" : "completed" }, out);
  }

  #addReasoning(text: string, out: ResponseEvent[]): void {
    if (text === "") return;
    this.#written += text;
    this.#completeText(out);
    if (this.#reasoning === undefined) {
      this.#reasoning = { ...this.#openReasoning(out), text: "" };
      out.push(this.#event("response.reasoning_summary_part.added", {
        ...locate(this.#reasoning),
        summary_index: 0,
        part: { type: "summary_text", text: "" },
      }));
    }
    this.#reasoning.text += text;
    out.push(this.#event("response.reasoning_summary_text.delta", {
      ...locate(this.#reasoning),
      summary_index: 0,
      delta: text,
    }));
  }

  #openReasoning(out: ResponseEvent[]): OpenItem {
    return this.#openItem({ id: createResponseId("rs"), type: "reasoning", summary: [] }, out);
  }

  #completeReasoning(out: ResponseEvent[]): void {
    const open = this.#reasoning;
    if (open === undefined) return;
    this.#reasoning = undefined;
    const at = { ...locate(open), summary_index: 0 };
    const part = { type: "summary_text", text: open.text };
    out.push(this.#event("response.reasoning_summary_text.done", { ...at, text: open.text }));
    out.push(this.#event("response.reasoning_summary_part.done", { ...at, part }));
    this.#completeHidden(open, [part], { text: open.text, ...this.#takeDetails() }, out);
  }

  /** Adds a reasoning item without text, for data that the server needs back. */
  #keepDetails(out: ResponseEvent[], callExtras?: HiddenReasoning["callExtras"]): void {
    const hidden = { text: "", ...this.#takeDetails(), ...(callExtras && { callExtras }) } satisfies HiddenReasoning;
    this.#completeHidden(this.#openReasoning(out), [], hidden, out);
  }

  #takeDetails(): Pick<HiddenReasoning, "details"> {
    if (this.#details.isEmpty) return {};
    const details = this.#details.all();
    this.#details = new ReasoningDetails();
    return { details };
  }

  #completeHidden(open: OpenItem, summary: unknown[], hidden: HiddenReasoning, out: ResponseEvent[]): void {
    const encrypted = this.#options.encrypt?.(hidden);
    this.#complete(open, { summary, ...(encrypted !== undefined && { encrypted_content: encrypted }) }, out, hidden);
  }

  #addCalls(delta: readonly unknown[], out: ResponseEvent[]): void {
    this.#calls.add(delta);
    for (const call of this.#calls.all()) {
      const open = this.#open.get(call.index) ?? this.#openCall(call, out);
      if (open === undefined) continue;
      const args = open.isCustom ? this.#readCustomInput(open, call) : call.function.arguments;
      this.#sendArguments(open, args, out);
    }
  }

  #openCall(call: ToolCall, out: ResponseEvent[]): OpenCall | undefined {
    const { name } = call.function;
    if (name === "") return undefined;
    this.#completeReasoning(out);
    this.#completeText(out);
    const callId = call.id ?? `call_${createResponseId("fc").slice(3)}`;
    const extra = call.extra_content;
    if (extra !== undefined) this.#keepDetails(out, { [callId]: extra });
    else if (!this.#details.isEmpty) this.#keepDetails(out);
    const isCustom = this.#options.customNames.has(name);
    const item = isCustom
      ? {
        id: createResponseId("ctc"),
        type: "custom_tool_call",
        status: "in_progress",
        call_id: callId,
        name,
        input: "",
      }
      : {
        id: createResponseId("fc"),
        type: "function_call",
        status: "in_progress",
        call_id: callId,
        name,
        arguments: "",
      };
    const open: OpenCall = { ...this.#openItem(item, out), isCustom, sent: "", parsedLength: 0 };
    this.#open.set(call.index, open);
    return open;
  }

  /** Returns the input of a custom tool as far as it's known. Parses rarely, because each time it starts anew. */
  #readCustomInput(open: OpenCall, { function: { arguments: args } }: ToolCall): string {
    if (args.length < open.parsedLength * 1.25 + 16) return open.sent;
    open.parsedLength = args.length;
    const input = readPartialObject(args)?.[CUSTOM_INPUT];
    return typeof input === "string" ? input : open.sent;
  }

  #sendArguments(open: OpenCall, args: string, out: ResponseEvent[]): void {
    if (args.length <= open.sent.length || !args.startsWith(open.sent)) return;
    const delta = args.slice(open.sent.length);
    open.sent = args;
    out.push(this.#event(`response.${toEventName(open)}.delta`, { ...locate(open), delta }));
  }

  #completeCalls(out: ResponseEvent[], isCut: boolean): void {
    const calls = this.#calls.all();
    for (const call of calls) {
      const open = this.#open.get(call.index);
      if (open === undefined) continue;
      const text = call.function.arguments;
      const value = open.isCustom ? readCustomInput(text) : text === "" ? "{}" : text;
      this.#sendArguments(open, value, out);
      const field = open.isCustom ? "input" : "arguments";
      out.push(this.#event(`response.${toEventName(open)}.done`, {
        ...locate(open),
        name: call.function.name,
        [field]: value,
      }));
      const isLast = call === calls.at(-1);
      this.#complete(open, {
        [field]: value,
        status: isCut && isLast ? "incomplete" : "completed",
        ...(call.extra_content && { extra_content: call.extra_content }),
      }, out);
    }
    this.#open.clear();
  }

  #openItem(item: ResponseItem, out: ResponseEvent[]): OpenItem {
    const index = this.#nextIndex++;
    this.response.output.push(item);
    out.push(this.#event("response.output_item.added", { output_index: index, item: structuredClone(item) }));
    return { index, item };
  }

  #complete(
    { index, item }: OpenItem,
    fields: Record<string, unknown>,
    out: ResponseEvent[],
    hidden?: HiddenReasoning,
  ) {
    Object.assign(item, fields);
    this.#kept.push({ item, ...(hidden && { hidden }) });
    out.push(this.#event("response.output_item.done", { output_index: index, item: structuredClone(item) }));
  }

  #withResponse(type: string): ResponseEvent {
    return this.#event(type, { response: structuredClone(this.response) });
  }

  #event(type: string, fields: Record<string, unknown>): ResponseEvent {
    return { type, sequence_number: this.#sequence++, ...fields };
  }
}

function toEventName({ isCustom }: OpenCall): string {
  return isCustom ? "custom_tool_call_input" : "function_call_arguments";
}

/** Returns the input of a custom tool. A model may have written the text itself instead of JSON. */
function readCustomInput(args: string): string {
  const input = readPartialObject(args)?.[CUSTOM_INPUT];
  return typeof input === "string" ? input : args;
}

function locate({ index, item }: OpenItem): { item_id: string; output_index: number } {
  return { item_id: item.id!, output_index: index };
}

function createTextPart(text: string) {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

/** Converts token counts. */
function toResponseUsage(usage: Usage): ResponseUsage {
  const count = (value: unknown, name: string) => {
    const found = (value as Record<string, unknown> | null | undefined)?.[name];
    return typeof found === "number" ? found : 0;
  };
  const { prompt_tokens: input = 0, completion_tokens: output = 0, total_tokens: total = input + output } = usage;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: count(usage.prompt_tokens_details, "cached_tokens") },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: count(usage.completion_tokens_details, "reasoning_tokens") },
    total_tokens: total,
    ...(usage.estimated === true && { estimated: true as const }),
  };
}
