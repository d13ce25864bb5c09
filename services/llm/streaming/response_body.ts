/**
 * Determines what a response of status 200 is: an event stream, one JSON value, an error, or a web page. Reads model
 * lists in all formats (docs/protocols/llm.md, "Model list").
 */
import { readText } from "../../http/read_body.ts";
import type { UpstreamError } from "../../http/upstream_error.ts";
import type { ChatEvent } from "../chat_event.ts";
import type { ModelCall } from "../model_call.ts";
import { isJsonObject } from "../../json/type_guards.ts";
import type { ListedModel, ModelList } from "../provider.ts";

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;

/** Translates one protocol to ChatEvents. */
export interface ReplyTranslator {
  /** True if each line of the stream is one JSON value; otherwise it's an event stream. */
  readonly hasLines?: boolean;
  /** True if the stream begins within a reply, so that it may have no more content. */
  readonly isResumed?: boolean;
  /**
   * Translates one stream event into `out`.
   *
   * @returns True if this is the end mark.
   * @throws {UpstreamError} for an error event
   */
  translateEvent(name: string | undefined, data: string, out: ChatEvent[]): boolean;
  /**
   * Translates a response that is one JSON value instead of a stream.
   *
   * @throws {UpstreamError} if the value is an error or not a chat response
   */
  translateResponse(value: unknown, out: ChatEvent[]): void;
}

/** A response of status 200: a stream that has not been read, or a JSON value. */
export type AcceptedResponse = { response: Response } | { value: unknown };

/**
 * Accepts a response of status 200.
 *
 * JSON is read here, so that an error with status 200 fails the call before anything has been streamed.
 *
 * @throws {UpstreamError} `web_page`, `bad_answer`, or the error that the server reported
 */
export async function acceptResponse(
  call: ModelCall,
  response: Response,
  stream: boolean,
  translator: ReplyTranslator,
): Promise<AcceptedResponse> {
  const type = response.headers.get("content-type") ?? "";
  if (/text\/html/i.test(type)) {
    await response.body?.cancel();
    throw createWebPageError(call);
  }
  // With any other content type, the reply reader looks at the first byte.
  if (/event-stream/i.test(type) || (stream && !/\bjson\b/i.test(type))) return { response };
  // Some servers call a stream JSON.
  const { first, response: whole } = await peek(response);
  const isJson = first === "{" || first === "[";
  if ((!isJson && first !== "<" && first !== "") || (isJson && stream && translator.hasLines)) {
    return { response: whole };
  }
  const text = await readText(whole, MAX_RESPONSE_BYTES);
  if (stream && isLines(text)) return { response: new Response(toByteStream(text)) };
  const value = parseResponse(call, text);
  translator.translateResponse(value, []);
  return { value };
}

/** Reads the start of a response. Returns its first character that isn't white space, and an equal response. */
async function peek(response: Response): Promise<{ first: string; response: Response }> {
  const reader = response.body?.getReader();
  if (reader === undefined) return { first: "", response };
  const read: Uint8Array<ArrayBuffer>[] = [];
  let first = "";
  while (first === "") {
    const { done, value } = await reader.read();
    if (done) break;
    read.push(value);
    first = findFirstCharacter(value);
  }
  const body = new ReadableStream({
    type: "bytes",
    async pull(controller) {
      const chunk = read.shift();
      const { done, value } = chunk === undefined ? await reader.read() : { done: false, value: chunk };
      // `enqueue` takes the buffer, which the reader may use again.
      if (!done) return controller.enqueue(new Uint8Array(value!));
      controller.close();
      controller.byobRequest?.respond(0);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return { first, response: new Response(body, { status: response.status, headers: response.headers }) };
}

/** Finds the first character that isn't white space or part of a byte order mark. Returns "" if there is none. */
export function findFirstCharacter(bytes: Uint8Array): string {
  const byte = bytes.find((value) => value > 0x20 && !BYTE_ORDER_MARK.includes(value));
  return byte === undefined ? "" : String.fromCharCode(byte);
}

function toByteStream(text: string): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    type: "bytes",
    start(controller) {
      controller.enqueue(new TextEncoder().encode(text));
      controller.close();
    },
  });
}

/** Reports whether a text is several JSON values, one per line. */
export function isLines(text: string): boolean {
  const lines = text.trim();
  const end = lines.indexOf("\n");
  if (end < 0) return false;
  try {
    return isJsonObject(JSON.parse(lines.slice(0, end)));
  } catch {
    return false;
  }
}

/**
 * Parses a response that must be JSON.
 *
 * @throws {UpstreamError} `web_page` or `bad_answer`
 */
export function parseResponse(call: ModelCall, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    if (text.trimStart().startsWith("<")) throw createWebPageError(call);
    throw call.createError("bad_answer", "returned a response that isn't JSON");
  }
}

/** Reports whether the data of an event is the end mark, which some servers surround with spaces. */
export function isEndMark(data: string): boolean {
  return data.charCodeAt(0) !== 0x7b /* { */ && /^\s*"?\[done\]/i.test(data);
}

/**
 * Parses the data of an event.
 *
 * @throws {UpstreamError} `failed` with the text itself if it isn't JSON: servers write errors as plain text
 * @throws {SyntaxError} for incomplete JSON
 */
export function parseEventData(call: ModelCall, data: string): unknown {
  try {
    return JSON.parse(data);
  } catch (error) {
    if (/^\s*([{["]|$)/.test(data)) throw error;
    throw call.createReportedError(data);
  }
}

/** Creates the error for HTML instead of a response. */
export function createWebPageError(call: ModelCall): UpstreamError {
  return call.createError("web_page", "returned a web page. Is the address correct?");
}

// Maximum size of a list. OpenRouter lists hundreds of models with prices and descriptions.
const MAX_LIST_BYTES = 16 * 1024 * 1024;

/**
 * Reads the response to a request for models.
 *
 * @returns The list, and the JSON it came from.
 * @throws {UpstreamError} The error that the server reported, or `bad_answer`
 */
export async function readModelList(call: ModelCall, response: Response): Promise<{ list: ModelList; value: unknown }> {
  if (!response.ok) throw await call.readError(response);
  const value = parseResponse(call, await readText(response, MAX_LIST_BYTES));
  const list = parseModelList(value);
  if (list !== undefined) return { list, value };
  if (isJsonObject(value) && "error" in value) throw call.createReportedError(value);
  throw call.createError("bad_answer", "returned JSON that isn't a list of models");
}

/**
 * Parses a list: an object with `data` (`null` is Ollama's empty list), or a bare array.
 *
 * Entries without an id and duplicates are dropped. The order isn't changed, because `created` is meaningless for most
 * servers.
 *
 * @returns `undefined` if the value isn't a list of models
 */
export function parseModelList(value: unknown): ModelList | undefined {
  const entries = findEntries(value);
  if (entries === undefined) return undefined;
  const seen = new Set<string>();
  const data: ListedModel[] = [];
  for (const entry of entries as ({ id?: unknown } | null)[]) {
    if (typeof entry !== "object" || typeof entry?.id !== "string" || entry.id === "" || seen.has(entry.id)) continue;
    seen.add(entry.id);
    data.push(entry as ListedModel);
  }
  return { object: "list", data };
}

function findEntries(value: unknown): unknown[] | undefined {
  if (Array.isArray(value)) return value;
  if (!isJsonObject(value) || !("data" in value)) return undefined;
  if (value.data === null) return [];
  return Array.isArray(value.data) ? value.data : undefined;
}
