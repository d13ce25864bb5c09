/** Parses server-sent events of a fetch response. `EventSource` can't send our headers or a chosen `Last-Event-ID`. */
import { createParser, type EventSourceMessage } from "eventsource-parser";

/**
 * Yields the events of each network read, in order, until the server ends the stream.
 *
 * Comments (keep-alives) yield an empty array, so that the caller sees that the stream is alive.
 *
 * @throws What the body throws: a lost connection, or the abort of its fetch.
 */
export async function* readEvents(response: Response): AsyncGenerator<EventSourceMessage[]> {
  if (!response.body) return;
  let batch: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => batch.push(event) });
  // The parser removes the byte order mark at the start. One inside a text belongs to the text.
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
    // Leaving the loop early must also end the request. After a normal end this does nothing.
    reader.cancel().catch(() => {});
  }
}
