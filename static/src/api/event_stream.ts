/** Reads server-sent events from a fetch answer. `EventSource` cannot send `Last-Event-ID` of our choosing nor our headers. */
import { createParser, type EventSourceMessage } from "eventsource-parser";

/**
 * Gives the events of each network read together, in order, until the server ends the stream.
 *
 * Ends normally when the body ends. Comments (keep-alives) give an empty array, so that a caller sees the stream is alive.
 *
 * @throws What the body throws: a lost connection, or the abort of its fetch.
 */
export async function* readEvents(response: Response): AsyncGenerator<EventSourceMessage[]> {
  if (!response.body) return;
  let batch: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => batch.push(event) });
  // The parser removes the byte order mark at the start; one inside a text belongs to the text.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const reader = response.body.getReader();
  try {
    while (true) {
      const { value, done } = await reader.read();
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
      yield batch;
      batch = [];
    }
  } finally {
    // Leaving early must also end the request; after a normal end this does nothing.
    reader.cancel().catch(() => {});
  }
}
