/**
 * Parses server-sent events the way model servers really send them (docs/protocols/llm.md, "Event stream parsing"), and
 * newline-delimited JSON, the stream of Ollama's own API (docs/protocols/llm.md, "Ollama").
 */
import { createParser, type EventSourceMessage, type EventSourceParser } from "eventsource-parser";

/** Maximum number of characters without an event or a comment. An event may contain a picture. */
export const MAX_EVENT_CHARS = 28 * 1024 * 1024;

const ERROR_FIELD = "error:";
const MAX_STRAY_CHARS = 1_000;

/** Receives events in order. `name` is the `event:` field. */
export type EventListener = (name: string | undefined, data: string) => void;

/**
 * Parses the bytes of one event stream.
 *
 * In addition to the standard, a field named `error` (early llama.cpp) becomes an event of that name, and an unfinished
 * event at the end is still emitted (KoboldCpp ends with `data: [DONE]` without a blank line).
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
  readonly #strayLines = new StrayLines();

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
    this.#strayLines.push(text);
    this.#parser.feed(this.#holdErrorLine(text));
    if (this.#hasActivity) this.#charsSinceActivity = 0;
    else if ((this.#charsSinceActivity += text.length) > MAX_EVENT_CHARS) {
      this.#parser.reset();
      this.#pendingLine = "";
      throw new RangeError(`more than ${MAX_EVENT_CHARS} characters without the end of an event`);
    }
  }

  /**
   * Lines since the last event that aren't fields of one, at most 1,000 characters. A server that fails may write plain
   * text.
   */
  get strayText(): string {
    return this.#strayLines.text;
  }

  /** Ends the stream. Emits an event that has no blank line after it. */
  end(): void {
    const lastText = this.#decoder.end();
    this.#strayLines.push(lastText);
    const rest = lastText + this.#pendingLine;
    this.#pendingLine = "";
    this.#parser.feed(`${rest}\n\n`);
  }

  /**
   * Holds back an unfinished line that may become `error: …`, because the parser drops such a line if it arrives in two
   * reads.
   */
  #holdErrorLine(text: string): string {
    if (this.#pendingLine !== "") {
      this.#pendingLine += text;
      if (!isLineEnd(text) && mayBecomeErrorField(this.#pendingLine)) return "";
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

/** Follows the lines of a stream, wherever its reads end, and keeps those that aren't fields of an event. */
class StrayLines {
  #stray = "";
  /** Start of the incomplete line. */
  #line = "";
  #hasData = false;
  #endsWithReturn = false;

  get text(): string {
    return (isField(this.#line) ? this.#stray : this.#stray + this.#line).slice(0, MAX_STRAY_CHARS).trim();
  }

  push(text: string): void {
    let [lineFeed, carriageReturn] = [-1, -1];
    for (let start = 0; start < text.length;) {
      // The second half of a line end.
      const isSplitEnd = this.#endsWithReturn && text[start] === "\n";
      this.#endsWithReturn = false;
      if (isSplitEnd) {
        start++;
        continue;
      }
      if (lineFeed < start) lineFeed = indexOrEnd(text, "\n", start);
      if (carriageReturn < start) carriageReturn = indexOrEnd(text, "\r", start);
      const end = Math.min(lineFeed, carriageReturn);
      if (this.#line.length < MAX_STRAY_CHARS) this.#line += text.slice(start, Math.min(end, start + MAX_STRAY_CHARS));
      if (end === text.length) return;
      this.#endsWithReturn = text[end] === "\r";
      start = end + 1;
      this.#endLine();
    }
  }

  #endLine(): void {
    const line = this.#line;
    this.#line = "";
    if (line === "") {
      if (this.#hasData) this.#stray = ""; // An event.
      this.#hasData = false;
    } else if (!isField(line)) {
      this.#stray = `${this.#stray}${line}\n`.slice(0, MAX_STRAY_CHARS);
    } else if (line.startsWith("data")) this.#hasData = true;
  }
}

function indexOrEnd(text: string, char: string, start: number): number {
  const at = text.indexOf(char, start);
  return at < 0 ? text.length : at;
}

function isField(line: string): boolean {
  return /^\ufeff?(?:data|event|id|retry)?:/.test(line);
}

function isLineEnd(text: string): boolean {
  return text.includes("\n") || text.includes("\r");
}

function mayBecomeErrorField(line: string): boolean {
  return line.startsWith(ERROR_FIELD) || ERROR_FIELD.startsWith(line);
}

/** Splits a body into lines. Emits lines that aren't blank, without their line end. */
export class LineParser {
  readonly #decoder = new ReadDecoder();
  readonly #listener: (line: string) => void;
  /** Parts of the incomplete line, one per read. */
  #pending: string[] = [];
  #pendingChars = 0;

  constructor(listener: (line: string) => void) {
    this.#listener = listener;
  }

  /**
   * Parses the bytes of one read. Calls the listener before it returns.
   *
   * @throws {RangeError} if a line has more than MAX_EVENT_CHARS
   */
  push(bytes: Uint8Array): void {
    const text = this.#decoder.decode(bytes);
    let start = 0;
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
      this.#emit(text.slice(start, end));
      start = end + 1;
    }
    if (start === text.length) return;
    this.#pending.push(text.slice(start));
    if ((this.#pendingChars += text.length - start) > MAX_EVENT_CHARS) {
      this.#pending = [];
      throw new RangeError(`more than ${MAX_EVENT_CHARS} characters without the end of a line`);
    }
  }

  /** Ends the body. Emits a last line without a line end. */
  end(): void {
    this.#emit(this.#decoder.end());
  }

  #emit(rest: string): void {
    const line = this.#pending.length === 0 ? rest : this.#pending.join("") + rest;
    this.#pending = [];
    this.#pendingChars = 0;
    if (line.trim() !== "") this.#listener(line);
  }
}

/** Decodes one body. A read may end inside a character. */
class ReadDecoder {
  // ignoreBOM: a byte order mark inside the text must be preserved, even at the start of a read.
  readonly #whole = new TextDecoder("utf-8", { ignoreBOM: true });
  #split: TextDecoder | undefined;

  /**
   * Decodes one read. A read whose last byte is ASCII ends between two characters, and decoding without state is
   * several times faster.
   */
  decode(bytes: Uint8Array): string {
    const endsWithAscii = bytes.length === 0 || bytes[bytes.length - 1]! < 0x80;
    if (this.#split === undefined) {
      if (endsWithAscii) return this.#whole.decode(bytes);
      this.#split = new TextDecoder("utf-8", { ignoreBOM: true });
    }
    const text = this.#split.decode(bytes, { stream: true });
    // After an ASCII byte, the decoder has no pending bytes.
    if (bytes.length > 0 && endsWithAscii) this.#split = undefined;
    return text;
  }

  /** Returns the text of an unfinished character at the end. */
  end(): string {
    return this.#split?.decode() ?? "";
  }
}
