/** Parses server-sent events as model servers really send them (docs/protocols/llm.md, "Event stream parsing"). */
import { createParser, type EventSourceMessage, type EventSourceParser } from "eventsource-parser";
import { ReadDecoder } from "./read_decoder.ts";

/** Characters that may arrive without an event or a comment. */
export const MAX_EVENT_CHARS = 8 * 1024 * 1024;

const ERROR_FIELD = "error:";

/** Receives events in order. `name` is the `event:` field. */
export type EventListener = (name: string | undefined, data: string) => void;

/**
 * Parses the bytes of one event stream.
 *
 * In addition to the standard, a field named `error` (early llama.cpp) becomes an event of that name, and an event that is
 * unfinished at the end is still emitted (KoboldCpp ends with `data: [DONE]` without a blank line).
 *
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 */
export class EventStreamParser {
  readonly #parser: EventSourceParser;
  readonly #listener: EventListener;
  // The parser removes a byte order mark at the start.
  readonly #decoder = new ReadDecoder();
  #hasActivity = false;
  #charsSinceActivity = 0;
  #isAtLineStart = true;
  #pendingLine = "";

  constructor(listener: EventListener) {
    this.#listener = listener;
    this.#parser = createParser({
      onEvent: this.#onEvent,
      onComment: this.#onComment,
      onError: (error) => {
        if (error.field === "error" && error.value !== undefined) this.#listener("error", error.value);
      },
    });
  }

  /**
   * Parses the bytes of one read. Calls the listener before it returns.
   *
   * @throws {RangeError} after more than MAX_EVENT_CHARS without an event or a comment
   */
  push(bytes: Uint8Array): void {
    this.pushText(this.#decoder.decode(bytes));
  }

  /** Parses decoded text. */
  pushText(text: string): void {
    if (text === "") return;
    this.#hasActivity = false;
    this.#parser.feed(this.#holdErrorLine(text));
    if (this.#hasActivity) this.#charsSinceActivity = 0;
    else if ((this.#charsSinceActivity += text.length) > MAX_EVENT_CHARS) {
      this.#parser.reset();
      this.#pendingLine = "";
      throw new RangeError(`more than ${MAX_EVENT_CHARS} characters without the end of an event`);
    }
  }

  /** Ends the stream. Emits an event that has no blank line after it. */
  end(): void {
    const rest = this.#decoder.end() + this.#pendingLine;
    this.#pendingLine = "";
    this.#parser.feed(`${rest}\n\n`);
  }

  /** Holds back an unfinished line that may become `error: …`, because the parser drops such a line if a read splits it. */
  #holdErrorLine(text: string): string {
    if (this.#pendingLine !== "") {
      this.#pendingLine += text;
      if (!endsLine(text) && mayBecomeErrorField(this.#pendingLine)) return "";
      text = this.#pendingLine;
      this.#pendingLine = "";
    }
    const lastBreak = Math.max(text.lastIndexOf("\n"), text.lastIndexOf("\r"));
    const wasAtLineStart = this.#isAtLineStart;
    this.#isAtLineStart = lastBreak === text.length - 1;
    if (this.#isAtLineStart || (lastBreak === -1 && !wasAtLineStart)) return text;
    if (text.charCodeAt(lastBreak + 1) !== 101 /* e */) return text;
    const tail = text.slice(lastBreak + 1);
    if (!mayBecomeErrorField(tail)) return text;
    this.#pendingLine = tail;
    this.#isAtLineStart = true;
    return text.slice(0, lastBreak + 1);
  }

  readonly #onEvent = (message: EventSourceMessage): void => {
    this.#hasActivity = true;
    this.#listener(message.event, message.data);
  };

  readonly #onComment = (): void => {
    this.#hasActivity = true;
  };
}

function endsLine(text: string): boolean {
  return text.includes("\n") || text.includes("\r");
}

function mayBecomeErrorField(line: string): boolean {
  return line.startsWith(ERROR_FIELD) || ERROR_FIELD.startsWith(line);
}
