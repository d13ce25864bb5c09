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
  /** The head, then the rest of the frame. */
  #buffer: Uint8Array<ArrayBuffer> = new Uint8Array(HEAD_BYTES);
  #filled = 0;
  #lengths: number[] | undefined;

  /** @param maxBytes Maximum size of one frame. @param maxTextBytes Maximum size of its JSON, which is parsed at once. */
  constructor(maxBytes: number, readonly maxTextBytes: number = maxBytes) {
    this.#maxBytes = maxBytes;
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

  /** Called when the buffer is full: reads the head, the lengths, or the rest. */
  #advance(): SandboxMessage | undefined {
    const view = new DataView(this.#buffer.buffer);
    if (this.#lengths === undefined) {
      const arrays = view.getUint32(0, true);
      if (arrays > MAX_ARRAYS) throw new FrameError("it isn't a message");
      const headBytes = HEAD_BYTES + arrays * NUMBER_BYTES;
      if (this.#buffer.length < headBytes) return void this.#grow(headBytes);
      this.#lengths = Array.from(
        { length: arrays + 1 },
        (_, n) => view.getUint32(NUMBER_BYTES + n * NUMBER_BYTES, true),
      );
      const sizeBytes = this.#lengths.reduce((sum, length) => sum + length, 0);
      if (this.#lengths[0]! > this.maxTextBytes) throw new FrameError("its text is too long");
      if (sizeBytes > this.#maxBytes) throw new FrameError(`${sizeBytes} bytes; the limit is ${this.#maxBytes}`);
      this.#buffer = new Uint8Array(sizeBytes);
      this.#filled = 0;
      if (sizeBytes > 0) return;
    }
    const [textBytes, ...lengths] = this.#lengths as [number, ...number[]];
    const value = parseValue(this.#buffer.subarray(0, textBytes));
    let at = textBytes;
    // Copies, because readers of binary formats use the whole buffer of an array.
    const bytes = lengths.map((length) => this.#buffer.slice(at, at += length));
    this.#buffer = new Uint8Array(HEAD_BYTES);
    this.#filled = 0;
    this.#lengths = undefined;
    return { value, bytes };
  }

  #grow(length: number): void {
    const larger = new Uint8Array(length);
    larger.set(this.#buffer);
    this.#buffer = larger;
  }
}

function parseValue(text: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(text));
  } catch {
    throw new FrameError("it isn't JSON");
  }
}
