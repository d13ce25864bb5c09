/** Bodies of `multipart/form-data` with a file too large to be held. form_parts.ts reads those that are held whole. */
import { Buffer } from "node:buffer";
import { bad, boundaryOf, MAX_HEADER_BYTES, MAX_PARTS, namesIn } from "./form_parts.ts";

const CRLF = "\r\n";
const HEADER_END = Buffer.from(CRLF + CRLF);

/**
 * Gives the bytes of the one file of a form as they come, whatever its part is called. It ends only when the whole body
 * has come and was right: so whoever sees its end may go on with what it was given.
 *
 * @throws {AppError} `invalid_request` for a body that is cut off or no form, for a file that is missing or there twice;
 *   what `body` throws
 * @see RFC 7578; RFC 2046, section 5.1.1
 */
export async function* fileOfForm(
  body: AsyncIterable<Uint8Array>,
  contentType: string,
): AsyncGenerator<Uint8Array> {
  const mark = Buffer.from(`${CRLF}--${boundaryOf(contentType)}`);
  const reader = new FormReader(body);
  let isThere = false;
  try {
    await drained(reader.until(mark));
    for (let parts = 0; await reader.peek(2) !== "--"; parts++) {
      if (parts === MAX_PARTS) throw bad(`it has more than ${MAX_PARTS} parts`);
      const part = namesIn(await headerOf(reader));
      if (part.fileName === undefined) {
        await drained(reader.until(mark));
        continue;
      }
      if (isThere) throw bad("it has more than one file");
      isThere = true;
      yield* reader.until(mark);
    }
    if (!isThere) throw bad("it has no file");
  } finally {
    await reader.close();
  }
}

/** A body, read up to one mark after another. */
class FormReader {
  readonly #body: AsyncIterator<Uint8Array>;
  /** What has come and was not given. The first mark stands at the begin of a line, as every other does. */
  #pending = Buffer.from(CRLF);

  constructor(body: AsyncIterable<Uint8Array>) {
    this.#body = body[Symbol.asyncIterator]();
  }

  /** Gives what stands before a mark, and goes behind it. */
  async *until(mark: Buffer): AsyncGenerator<Uint8Array> {
    for (;;) {
      const at = this.#pending.indexOf(mark);
      // The mark may have begun at the end of what has come.
      const sure = at >= 0 ? at : Math.max(0, this.#pending.length - mark.length + 1);
      if (sure > 0) yield this.#pending.subarray(0, sure);
      this.#pending = this.#pending.subarray(at >= 0 ? at + mark.length : sure);
      if (at >= 0) return;
      await this.#more();
    }
  }

  /** Looks at the next bytes. */
  async peek(length: number): Promise<string> {
    while (this.#pending.length < length) await this.#more();
    return this.#pending.toString("latin1", 0, length);
  }

  async close(): Promise<void> {
    await this.#body.return?.();
  }

  async #more(): Promise<void> {
    const { done, value } = await this.#body.next();
    if (done) throw bad("it is cut off, or not of the form its type says");
    this.#pending = Buffer.concat([this.#pending, value]);
  }
}

async function headerOf(reader: FormReader): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of reader.until(HEADER_END)) {
    pieces.push(piece);
    size += piece.length;
    if (size > MAX_HEADER_BYTES) throw bad("a part has too long a header");
  }
  return Buffer.concat(pieces).toString("utf8");
}

async function drained(pieces: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of pieces);
}
