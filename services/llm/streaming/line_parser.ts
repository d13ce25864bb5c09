/** Parses newline-delimited JSON, the stream of Ollama's own API (docs/protocols/llm.md, "Ollama"). */
import { MAX_EVENT_CHARS } from "./event_stream_parser.ts";
import { ReadDecoder } from "./read_decoder.ts";

/** Splits a body into lines. Emits lines that aren't blank, without their line end. */
export class LineParser {
  readonly #decoder = new ReadDecoder();
  readonly #listener: (line: string) => void;
  /** Reads of the line that isn't complete yet. */
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
