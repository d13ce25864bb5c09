/** Parses streamed transcripts: OpenAI's events, and segments as other servers send them (docs/protocols/stt.md, "Stream"). */
import { asNumber, asObject, isNonEmptyString } from "../json/type_guards.ts";
import { EventStreamParser } from "../llm/streaming/event_stream_parser.ts";
import type { Transcript } from "./transcription_server.ts";

/** Part of a transcript. `done` is always the last one. */
export type TranscriptEvent = { kind: "delta"; text: string } | { kind: "done"; transcript: Transcript };

/** Data from a server: an event, or the body of an error. */
export type ParsedEvent = TranscriptEvent | { kind: "error"; body: string };

/**
 * Parses an event stream as it arrives. Ends after `done`.
 *
 * @throws Errors of reading the body
 */
export async function* parseTranscriptEvents(response: Response): AsyncGenerator<ParsedEvent> {
  let events: ParsedEvent[] = [];
  const parser = new EventStreamParser((name, data) => {
    const event = parseEvent(name, data);
    if (event !== undefined) events.push(event);
  });
  const takeEvents = () => {
    const pending = events;
    events = [];
    return pending;
  };
  for await (const chunk of response.body ?? []) {
    parser.push(chunk);
    for (const event of takeEvents()) {
      yield event;
      if (event.kind === "done") return;
    }
  }
  parser.end();
  yield* takeEvents();
}

function parseEvent(name: string | undefined, data: string): ParsedEvent | undefined {
  if (data === "[DONE]") return undefined;
  if (name === "error") return { kind: "error", body: data };
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    // A segment as plain text.
    return data.trim() === "" ? undefined : { kind: "delta", text: data };
  }
  const { type, delta, text, language, duration, error } = asObject(value);
  if (error) return { kind: "error", body: data };
  if (typeof type === "string" && type.endsWith(".text.done")) {
    const durationS = asNumber(duration);
    return {
      kind: "done",
      transcript: {
        text: typeof text === "string" ? text.trim() : "",
        ...(isNonEmptyString(language) && { language }),
        ...(durationS !== undefined && { durationS }),
      },
    };
  }
  const part = typeof delta === "string" ? delta : text;
  return typeof part === "string" && part !== "" ? { kind: "delta", text: part } : undefined;
}
