/** Reads the body of an HTTP/1.1 response from a socket: by length, in chunks, or until the connection ends (RFC 9112, section 6). */
import { type HttpHead, listValues } from "./http_head.ts";

/** Reads from the socket. Returns null at its end. */
type ReadSocket = (into: Uint8Array) => Promise<number | null>;

const BUFFER_BYTES = 64 * 1024;
/** Limit of the line before a chunk, with its extensions. */
const MAX_LINE_BYTES = 1024;

/** Reads one body. */
export class BodyReader {
  /** Content-Length, if there is one. */
  readonly lengthBytes: number | undefined;
  readonly #isChunked: boolean;
  readonly #readSocket: ReadSocket;
  /** Bytes read from the socket but not returned yet. */
  #rest: Uint8Array;
  #buffer: Uint8Array | undefined;
  /** Bytes missing from the body, or from the current chunk. */
  #missing: number;
  #isFirstChunk = true;
  #isOver = false;

  /**
   * @param rest Bytes received together with the head.
   * @throws {Error} if the head has two lengths or an invalid one
   */
  constructor(head: HttpHead, rest: Uint8Array, readSocket: ReadSocket) {
    const codings = listValues(head, "transfer-encoding");
    const lengths = new Set(listValues(head, "content-length"));
    this.#isChunked = codings.length > 0;
    if (this.#isChunked && (codings.length > 1 || codings[0]!.toLowerCase() !== "chunked" || lengths.size > 0)) {
      throw new Error("Can't read the body: its framing is ambiguous");
    }
    const [length] = lengths;
    if (lengths.size > 1 || (length !== undefined && !/^\d{1,15}$/.test(length))) {
      throw new Error("Can't read the body: its length isn't a number");
    }
    this.lengthBytes = length === undefined ? undefined : Number(length);
    this.#missing = this.#isChunked ? 0 : this.lengthBytes ?? Infinity;
    this.#rest = rest.slice();
    this.#readSocket = readSocket;
  }

  /**
   * Reads at least one byte.
   *
   * @returns 0 at the end.
   * @throws {Error} if the connection ends before the body, or a chunk is malformed
   */
  async read(into: Uint8Array): Promise<number> {
    if (this.#isChunked && this.#missing === 0 && !this.#isOver) await this.#nextChunk();
    if (this.#isOver || this.#missing === 0) return 0;
    const wanted = Math.min(into.length, this.#missing);
    let count: number | null = Math.min(wanted, this.#rest.length);
    if (count > 0) {
      into.set(this.#rest.subarray(0, count));
      this.#rest = this.#rest.subarray(count);
    } else {
      count = await this.#readSocket(into.subarray(0, wanted));
    }
    if (count !== null) {
      this.#missing -= count;
      return count;
    }
    this.#isOver = true;
    if (this.#missing !== Infinity) throw new Error(`The connection ended with ${this.#missing} bytes missing`);
    return 0;
  }

  async #nextChunk(): Promise<void> {
    if (!this.#isFirstChunk && await this.#line() !== "") throw new Error("A chunk does not end where it should");
    this.#isFirstChunk = false;
    const [, size] = /^([0-9a-fA-F]{1,12})[ \t]*(?:;.*)?$/.exec(await this.#line()) ?? [];
    if (size === undefined) throw new Error("The size of a chunk isn't a number");
    this.#missing = parseInt(size, 16);
    this.#isOver = this.#missing === 0; // trailers are ignored; the connection closes
  }

  async #line(): Promise<string> {
    let line = "";
    while (line.length <= MAX_LINE_BYTES) {
      if (this.#rest.length === 0) {
        this.#buffer ??= new Uint8Array(BUFFER_BYTES);
        const count = await this.#readSocket(this.#buffer);
        if (count === null) throw new Error("The connection ended between two chunks");
        this.#rest = this.#buffer.subarray(0, count);
      }
      const end = this.#rest.indexOf(10);
      const part = this.#rest.subarray(0, end < 0 ? undefined : end);
      line += String.fromCharCode(...part.subarray(0, MAX_LINE_BYTES + 1));
      this.#rest = this.#rest.subarray(end < 0 ? this.#rest.length : end + 1);
      if (end >= 0) return line.replace(/\r$/, "");
    }
    throw new Error("The line before a chunk is too long");
  }
}
