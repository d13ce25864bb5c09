/** Parses server-sent events: eventsource-parser plus what servers need (docs/protocols/llm.md#event-stream-parsing). */
import { createParser, type EventSourceMessage, type EventSourceParser } from "eventsource-parser";

/** Maximum length of one event in characters. */
export const MAX_EVENT_CHARS = 8 * 1024 * 1024;

const ERROR_FIELD = "error:";

/** Receives events in order. `name` is the `event:` field. */
export type EventListener = (name: string | undefined, data: string) => void;

/**
 * Turns the bytes of one event stream into events.
 *
 * Beyond the standard: a field named `error` (early llama.cpp) becomes an event of that name, and what stands unfinished at
 * the end is still given out (KoboldCpp ends with a bare `data: [DONE]`).
 */
export class EventStreamParser {
  readonly #parser: EventSourceParser;
  readonly #listener: EventListener;
  // ignoreBOM: the parser takes off the one at the start itself; one inside a text belongs to the text.
  readonly #wholeDecoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #splitDecoder: TextDecoder | undefined;
  #heard = false;
  #quietChars = 0;
  #isAtLineStart = true;
  #held = "";

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
   * Takes the bytes of one read; the listener is called before this returns.
   *
   * @throws {RangeError} when more than MAX_EVENT_CHARS came without an event or a comment
   */
  push(bytes: Uint8Array): void {
    this.pushText(this.#decode(bytes));
  }

  /** Takes text that is decoded already. */
  pushText(text: string): void {
    if (text === "") return;
    this.#heard = false;
    this.#parser.feed(this.#holdErrorLine(text));
    if (this.#heard) this.#quietChars = 0;
    else if ((this.#quietChars += text.length) > MAX_EVENT_CHARS) {
      this.#parser.reset();
      this.#held = "";
      throw new RangeError(`more than ${MAX_EVENT_CHARS} characters without the end of an event`);
    }
  }

  /** Ends the stream: what was not closed by a blank line is given out as it stands. */
  end(): void {
    const rest = (this.#splitDecoder?.decode() ?? "") + this.#held;
    this.#held = "";
    this.#parser.feed(`${rest}\n\n`);
  }

  /** A read that ends within ASCII ends between two characters, and the stateless decoder is several times faster. */
  #decode(bytes: Uint8Array): string {
    if (this.#splitDecoder === undefined) {
      if (bytes.length === 0 || bytes[bytes.length - 1]! < 0x80) return this.#wholeDecoder.decode(bytes);
      this.#splitDecoder = new TextDecoder("utf-8", { ignoreBOM: true });
    }
    const text = this.#splitDecoder.decode(bytes, { stream: true });
    // With an ASCII byte last nothing is pending in it.
    if (bytes.length > 0 && bytes[bytes.length - 1]! < 0x80) this.#splitDecoder = undefined;
    return text;
  }

  /** Keeps back an unfinished line that may become `error: …`: the parser drops such a line when it is cut by a read. */
  #holdErrorLine(text: string): string {
    if (this.#held !== "") {
      this.#held += text;
      if (!endsLine(text) && mayBecomeErrorField(this.#held)) return "";
      text = this.#held;
      this.#held = "";
    }
    const lastBreak = Math.max(text.lastIndexOf("\n"), text.lastIndexOf("\r"));
    const wasAtLineStart = this.#isAtLineStart;
    this.#isAtLineStart = lastBreak === text.length - 1;
    if (this.#isAtLineStart || (lastBreak === -1 && !wasAtLineStart)) return text;
    if (text.charCodeAt(lastBreak + 1) !== 101 /* e */) return text;
    const tail = text.slice(lastBreak + 1);
    if (!mayBecomeErrorField(tail)) return text;
    this.#held = tail;
    this.#isAtLineStart = true;
    return text.slice(0, lastBreak + 1);
  }

  readonly #onEvent = (message: EventSourceMessage): void => {
    this.#heard = true;
    this.#listener(message.event, message.data);
  };

  readonly #onComment = (): void => {
    this.#heard = true;
  };
}

function endsLine(text: string): boolean {
  return text.includes("\n") || text.includes("\r");
}

function mayBecomeErrorField(line: string): boolean {
  return line.startsWith(ERROR_FIELD) || ERROR_FIELD.startsWith(line);
}
