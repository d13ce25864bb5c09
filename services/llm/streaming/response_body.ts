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

const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;

/** Translates one protocol to ChatEvents. */
export interface ReplyTranslator {
  /** True if each line of the stream is one JSON value; otherwise it's an event stream. */
  readonly hasLines?: boolean;
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
  const value = parseResponse(call, await readText(response, MAX_RESPONSE_BYTES));
  translator.translateResponse(value, []);
  return { value };
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
