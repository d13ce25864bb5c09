/**
 * A client over one bare connection: it costs next to nothing, so that what is measured is the server. HTTP/1.1, one
 * request at a time, the connection kept.
 */
import { joined } from "../helpers/app/joined.ts";

/** Status and headers of a response; names in lower case. */
export interface AnswerHead {
  status: number;
  headers: Map<string, string>;
}

/** Receives the bytes of a body as they arrive. They are only valid until it returns. */
export type BodyListener = (bytes: Uint8Array) => void;

const BUFFER_BYTES = 256 * 1024;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** One connection to 127.0.0.1. */
export class HttpConnection implements Disposable {
  #conn: Deno.TcpConn;
  #host: string;
  #buffer = new Uint8Array(BUFFER_BYTES);
  #start = 0;
  #end = 0;

  private constructor(conn: Deno.TcpConn, port: number) {
    this.#conn = conn;
    this.#host = `127.0.0.1:${port}`;
    conn.setNoDelay(true);
  }

  static async open(port: number): Promise<HttpConnection> {
    return new HttpConnection(await Deno.connect({ hostname: "127.0.0.1", port }), port);
  }

  /** Sends a request and reads the whole response. */
  async request(method: string, path: string, body?: string | Uint8Array, onBody?: BodyListener): Promise<AnswerHead> {
    const bytes = typeof body === "string" ? encoder.encode(body) : body;
    const about = bytes === undefined ? "" : `Content-Type: application/json\r\nContent-Length: ${bytes.length}\r\n`;
    const head = encoder.encode(`${method} ${path} HTTP/1.1\r\nHost: ${this.#host}\r\n${about}\r\n`);
    // Headers and a small body in one write, like browsers.
    const isSmall = bytes !== undefined && bytes.length <= 16 * 1024;
    await this.#write(isSmall ? joined([head, bytes]) : head);
    if (bytes !== undefined && !isSmall) await this.#write(bytes);
    return await this.#answer(onBody ?? (() => {}));
  }

  /**
   * Sends a request and gives the answer's body.
   *
   * @throws {Error} when the status is none of success.
   */
  async bytes(method: string, path: string, body?: string | Uint8Array): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    const { status } = await this.request(method, path, body, (part) => parts.push(part.slice()));
    const whole = parts.length === 1 ? parts[0]! : joined(parts);
    if (status < 200 || status > 299) {
      throw new Error(`${method} ${path} was answered with ${status}: ${decoder.decode(whole).slice(0, 500)}`);
    }
    return whole;
  }

  /** Like `bytes`, but returns the parsed JSON. */
  async json<T>(method: string, path: string, body?: unknown): Promise<T> {
    const sent = body === undefined ? undefined : JSON.stringify(body);
    return JSON.parse(decoder.decode(await this.bytes(method, path, sent)));
  }

  close(): void {
    this.#conn.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let written = 0; written < bytes.length;) written += await this.#conn.write(bytes.subarray(written));
  }

  async #answer(onBody: BodyListener): Promise<AnswerHead> {
    const status = Number((await this.#line()).split(" ")[1]);
    const headers = new Map<string, string>();
    for (let line = await this.#line(); line !== ""; line = await this.#line()) {
      const colon = line.indexOf(":");
      headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
    }
    if (headers.get("transfer-encoding") === "chunked") {
      for (let size = await this.#chunkSize(); size > 0; size = await this.#chunkSize()) {
        await this.#take(size, onBody);
        await this.#line();
      }
      await this.#line();
    } else await this.#take(Number(headers.get("content-length") ?? 0), onBody);
    return { status, headers };
  }

  async #chunkSize(): Promise<number> {
    return parseInt(await this.#line(), 16);
  }

  async #line(): Promise<string> {
    for (let from = this.#start;;) {
      const at = this.#buffer.subarray(0, this.#end).indexOf(0x0a, from);
      if (at >= 0) {
        const line = decoder.decode(this.#buffer.subarray(this.#start, at)).trimEnd();
        this.#start = at + 1;
        return line;
      }
      const searched = this.#end - this.#start;
      await this.#fill();
      from = this.#start + searched;
    }
  }

  async #take(length: number, onBody: BodyListener): Promise<void> {
    while (length > 0) {
      if (this.#start === this.#end) await this.#fill();
      const part = this.#buffer.subarray(this.#start, Math.min(this.#end, this.#start + length));
      this.#start += part.length;
      length -= part.length;
      onBody(part);
    }
  }

  async #fill(): Promise<void> {
    if (this.#start > 0) {
      this.#buffer.copyWithin(0, this.#start, this.#end);
      this.#end -= this.#start;
      this.#start = 0;
    }
    if (this.#end === this.#buffer.length) throw new Error("The server sent a header line without an end");
    const count = await this.#conn.read(this.#buffer.subarray(this.#end));
    if (count === null) throw new Error("The server closed the connection in the middle of an answer");
    this.#end += count;
  }
}
