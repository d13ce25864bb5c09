/** Tells what an answer of status 200 really is: an event stream, one JSON value, an error in disguise, a web page. */
import { readText } from "../../http/read_body.ts";
import type { ChatEvent } from "../chat_event.ts";
import { UpstreamError } from "../../http/upstream_error.ts";
import type { UpstreamCall } from "../model_call.ts";

const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** What one protocol makes of its events. */
export interface ReplyTranslator {
  /**
   * Translates one event into `out`.
   *
   * @returns True when nothing can follow.
   * @throws {UpstreamError} for an error frame
   */
  event(name: string | undefined, data: string, out: ChatEvent[]): boolean;
  /**
   * Translates an answer that came as one JSON value instead of a stream.
   *
   * @throws {UpstreamError} when the value is an error or no answer at all
   */
  whole(value: unknown, out: ChatEvent[]): void;
}

/** What a server of status 200 sent. */
export type Accepted = { response: Response } | { value: unknown };

/**
 * Takes an answer of status 200.
 *
 * JSON is read here, so that an error in a 200 fails the call before anything has been streamed.
 *
 * @throws {UpstreamError} `web_page`, `bad_answer`, or what the server reported
 */
export async function acceptAnswer(
  call: UpstreamCall,
  response: Response,
  stream: boolean,
  translator: ReplyTranslator,
): Promise<Accepted> {
  const type = response.headers.get("content-type") ?? "";
  if (/text\/html/i.test(type)) {
    await response.body?.cancel();
    throw webPage(call);
  }
  // Without a telling type the reader looks at the first byte.
  if (/event-stream/i.test(type) || (stream && !/\bjson\b/i.test(type))) return { response };
  const value = parseAnswer(call, await readText(response, MAX_ANSWER_BYTES));
  translator.whole(value, []);
  return { value };
}

/**
 * Parses an answer that must be JSON.
 *
 * @throws {UpstreamError} `web_page` or `bad_answer`
 */
export function parseAnswer(call: UpstreamCall, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    if (text.trimStart().startsWith("<")) throw webPage(call);
    throw badAnswer(call, "answered with something that is not JSON");
  }
}

/** The error for HTML where an answer should be. */
export function webPage(call: UpstreamCall): UpstreamError {
  const place = call.target.baseUrl;
  return new UpstreamError("web_page", `The address "${place}" answered with a web page, not as a model server`);
}

/** The error for an answer of unknown shape; `finding` completes the sentence. */
export function badAnswer(call: UpstreamCall, finding: string): UpstreamError {
  return new UpstreamError("bad_answer", `The model at "${call.target.baseUrl}" ${finding}`);
}
