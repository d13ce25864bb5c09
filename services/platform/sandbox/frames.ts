/**
 * The messages between Parlor and a child of the sandbox, as frames on a pipe.
 *
 * A frame is the number of its byte arrays (32 bits, little-endian), the length of its JSON text, the length of each
 * array, the text, and the arrays. JSON, because what a hostile child sends must be safe to read: the structured clone
 * format of `node:v8` isn't meant for input that someone made up.
 */

/** One message: a JSON value, and arrays of bytes. */
export interface SandboxMessage {
  value: unknown;
  bytes: Uint8Array<ArrayBuffer>[];
}

/** Maximum number of byte arrays per message. */
const MAX_ARRAYS = 16;
const NUMBER_BYTES = 4;
const HEAD_BYTES = 2 * NUMBER_BYTES;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Returns the pieces of a frame, to be written one after another. The byte arrays aren't copied. */
export function encodeFrame(value: unknown, bytes: readonly Uint8Array[]): Uint8Array[] {
  const text = encoder.encode(JSON.stringify(value));
  const head = new DataView(new ArrayBuffer(HEAD_BYTES + bytes.length * NUMBER_BYTES));
  head.setUint32(0, bytes.length, true);
  head.setUint32(NUMBER_BYTES, text.length, true);
  bytes.forEach(({ length }, n) => head.setUint32(HEAD_BYTES + n * NUMBER_BYTES, length, true));
  const start = new Uint8Array(head.byteLength + text.length);
  start.set(new Uint8Array(head.buffer));
  start.set(text, head.byteLength);
  return [start, ...bytes];
}

/** Thrown for a frame that is larger than allowed, or isn't one. */
export class FrameError extends Error {}

/** Puts the frames of a pipe together. Holds at most one incomplete frame. */
export class FrameReader {
  readonly #maxBytes: number;
  /** The head, the lengths of all arrays, then the text, then each array. */
  #buffer: Uint8Array<ArrayBuffer> = new Uint8Array(HEAD_BYTES);
  #filled = 0;
  /** The parts of the frame, once their lengths are known. */
  #parts: Uint8Array<ArrayBuffer>[] | undefined;
  #part = 0;

  /** @param maxBytes Maximum size of one frame. @param maxTextBytes Maximum size of its JSON, which is parsed at once. */
  constructor(maxBytes: number, readonly maxTextBytes: number = maxBytes) {
    this.#maxBytes = maxBytes;
  }

  /** True while the rest of a message is on its way. */
  get isInside(): boolean {
    return this.#parts !== undefined || this.#filled > 0;
  }

  /** Yields the messages that a piece completes. @throws {FrameError} before anything larger is allocated. */
  *read(piece: Uint8Array): Generator<SandboxMessage> {
    for (let at = 0; at < piece.length;) {
      const count = Math.min(piece.length - at, this.#buffer.length - this.#filled);
      this.#buffer.set(piece.subarray(at, at + count), this.#filled);
      this.#filled += count;
      at += count;
      // A head may be followed by nothing.
      while (this.#filled === this.#buffer.length) {
        const message = this.#advance();
        if (message !== undefined) yield message;
      }
    }
  }

  /** Called when the buffer is full: goes on to the lengths, the first part, and the next ones. */
  #advance(): SandboxMessage | undefined {
    if (this.#parts === undefined) return void this.#readHead();
    if (++this.#part < this.#parts.length) return void this.#fill(this.#parts[this.#part]!);
    const [text, ...bytes] = this.#parts as [Uint8Array, ...Uint8Array<ArrayBuffer>[]];
    this.#parts = undefined;
    this.#fill(new Uint8Array(HEAD_BYTES));
    return { value: parseValue(text), bytes };
  }

  #readHead(): void {
    const head = this.#buffer;
    const view = new DataView(head.buffer);
    const arrays = view.getUint32(0, true);
    if (arrays > MAX_ARRAYS) throw new FrameError("it isn't a message");
    const headBytes = HEAD_BYTES + arrays * NUMBER_BYTES;
    if (head.length < headBytes) {
      this.#fill(new Uint8Array(headBytes));
      this.#buffer.set(head);
      this.#filled = head.length;
      return;
    }
    const lengths = Array.from({ length: arrays + 1 }, (_, n) => view.getUint32((n + 1) * NUMBER_BYTES, true));
    const sizeBytes = lengths.reduce((sum, length) => sum + length, 0);
    if (lengths[0]! > this.maxTextBytes) throw new FrameError("its text is too long");
    if (sizeBytes > this.#maxBytes) throw new FrameError(`${sizeBytes} bytes; the limit is ${this.#maxBytes}`);
    // Each has its own buffer, because readers of binary formats use the whole buffer of an array.
    this.#parts = lengths.map((length) => new Uint8Array(length));
    this.#part = 0;
    this.#fill(this.#parts[0]!);
  }

  #fill(buffer: Uint8Array<ArrayBuffer>): void {
    this.#buffer = buffer;
    this.#filled = 0;
  }
}

function parseValue(text: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(text));
  } catch {
    throw new FrameError("it isn't JSON");
  }
}
