/**
 * A GET request under the guard's policy but without its proxy, for large bodies: bytes go from the socket into the caller's
 * buffer. It also runs in Workers, which have no guard.
 */
import { AppError } from "../../errors.ts";
import { formatDuration } from "../upstream_error.ts";
import {
  closeQuietly,
  connectToFirst,
  formatHead,
  getHeaderValues,
  type HttpHead,
  readHead,
  writeAll,
} from "./sockets.ts";
import {
  DEFAULT_PROXY_LIMITS,
  isPublicAddress,
  OWN_VIA,
  REFUSAL_TEXT,
  type TargetPolicy,
  toTarget,
} from "./target_policy.ts";

/** Limits, like those of the proxy. */
export interface GuardedGetLimits {
  /** For the lookup, all connection attempts and TLS. */
  connectMs: number;
  headBytes: number;
  /** Maximum time without data. */
  idleMs: number;
}

/** Options of the request. */
export interface GuardedGetOptions {
  policy: TargetPolicy;
  /** Headers in addition to `Host` and `Connection`. */
  headers: Record<string, string>;
  /** Cancels the request. */
  signal: AbortSignal;
  limits?: Partial<GuardedGetLimits>;
  /** PEM certificates to trust in addition to the system's. */
  caCerts?: string[];
}

/** A response whose body hasn't been read. Dispose it at the end. */
export interface GuardedResponse extends Disposable {
  readonly status: number;
  /** The values of a header, joined by commas. */
  getHeader(name: string): string | undefined;
  /** Length of the body, if the head has it. */
  readonly bodyBytes: number | undefined;
  /**
   * Reads at least one byte.
   *
   * @returns 0 at the end of the body.
   * @throws {AppError} `upstream_timeout` if no data arrives, `upstream_error` if the connection breaks
   */
  read(into: Uint8Array): Promise<number>;
}

/**
 * Requests a URL. The caller follows redirects, each with a new request.
 *
 * @throws {AppError} `address_not_allowed` if the host or port is forbidden; `upstream_error` with the same message if the target
 *   is refused after the lookup, doesn't respond, or doesn't speak HTTP. The abort reason of the signal.
 */
export async function sendGuardedGet(url: URL, options: GuardedGetOptions): Promise<GuardedResponse> {
  const { policy, headers, signal, caCerts = [] } = options;
  const limits = { ...DEFAULT_PROXY_LIMITS, ...options.limits };
  const createRefusal = (code: "address_not_allowed" | "upstream_error", cause?: unknown) =>
    new AppError(code, `Can't fetch from "${url.host || url.protocol}": ${REFUSAL_TEXT}`, { cause });
  const isHttp = url.protocol === "http:" || url.protocol === "https:";
  const target = toTarget(url);
  if (!isHttp || url.username !== "" || url.password !== "" || policy.isRefusedUnresolved(target)) {
    throw createRefusal("address_not_allowed");
  }
  signal.throwIfAborted();
  const connection = new Connection(signal, limits);
  try {
    const dialed = await connectToFirst(() => policy.resolveAllowed(target), target.port, limits.connectMs, signal);
    if (dialed === undefined) throw new Error("Can't connect");
    connection.use(dialed);
    const isPublic = isPublicAddress((dialed.remoteAddr as Deno.NetAddr).hostname);
    if (url.protocol === "https:") {
      connection.use(await Deno.startTls(dialed, { hostname: target.host, caCerts }));
    }
    const request = formatHead({
      startLine: `GET ${url.pathname}${url.search} HTTP/1.1`,
      headers: [["Host", url.host], ...Object.entries(isPublic ? headers : { ...headers, ...OWN_VIA }), [
        "Connection",
        "close",
      ]],
    });
    await writeAll(connection.conn, request);
    let { head, rest } = await readHead(connection.conn, limits.headBytes);
    while (/^HTTP\/1\.[01] 1\d\d/.test(head.startLine)) {
      ({ head, rest } = await readHead(connection.conn, limits.headBytes, rest));
    }
    const [, status] = /^HTTP\/1\.[01] ([2-5]\d\d)(?: |$)/.exec(head.startLine) ?? [];
    if (status === undefined) throw new Error("Can't read the response: it isn't HTTP");
    const body = new BodyReader(head, rest, (into) => connection.read(into));
    return {
      status: Number(status),
      getHeader(name) {
        const values = getHeaderValues(head, name.toLowerCase());
        return values.length === 0 ? undefined : values.join(", ");
      },
      bodyBytes: body.lengthBytes,
      async read(into) {
        try {
          return await body.read(into);
        } catch (cause) {
          if (signal.aborted) throw signal.reason;
          const [code, found] = connection.isSilent
            ? ["upstream_timeout" as const, `no data for ${formatDuration(limits.idleMs)}`]
            : ["upstream_error" as const, "its response was cut off"];
          throw new AppError(code, `Can't fetch from "${url.host}": ${found}`, { cause });
        }
      },
      [Symbol.dispose]: () => connection.close(),
    };
  } catch (cause) {
    connection.close();
    throw signal.aborted ? signal.reason : createRefusal("upstream_error", cause);
  }
}

/** A socket that closes after too long a silence, or when the caller cancels. */
class Connection {
  /** True if it was closed because of silence. */
  isSilent = false;
  #conn: Deno.Conn | undefined;
  #activeAt = performance.now();
  readonly #watch: ReturnType<typeof setInterval>;
  readonly #close = () => this.close();

  constructor(readonly signal: AbortSignal, limits: GuardedGetLimits) {
    signal.addEventListener("abort", this.#close);
    // One timer for the whole body: resetting it for each read would cost more than the read.
    this.#watch = setInterval(() => {
      if (this.#conn === undefined || performance.now() - this.#activeAt < limits.idleMs) return;
      this.isSilent = true;
      this.close();
    }, Math.max(10, limits.idleMs / 10));
  }

  get conn(): Deno.Conn {
    if (this.#conn === undefined) throw new Error("The connection is not open yet");
    return this.#conn;
  }

  use(conn: Deno.Conn): void {
    this.#conn = conn;
    this.#activeAt = performance.now();
  }

  async read(into: Uint8Array): Promise<number | null> {
    const count = await this.conn.read(into);
    this.#activeAt = performance.now();
    return count;
  }

  close(): void {
    clearInterval(this.#watch);
    this.signal.removeEventListener("abort", this.#close);
    if (this.#conn !== undefined) closeQuietly(this.#conn);
  }
}

/** Reads from the socket. Returns `null` at its end. */
type ReadSocket = (into: Uint8Array) => Promise<number | null>;

const BUFFER_BYTES = 64 * 1024;
/** Limit of the line before a chunk, with its extensions. */
const MAX_LINE_BYTES = 1024;

/** Reads one body. */
class BodyReader {
  /** Content-Length, if there is one. */
  readonly lengthBytes: number | undefined;
  readonly #isChunked: boolean;
  readonly #readSocket: ReadSocket;
  /** Bytes read from the socket but not returned yet. */
  #rest: Uint8Array;
  #buffer: Uint8Array | undefined;
  /** Number of bytes missing from the body, or from the current chunk. */
  #missing: number;
  #isFirstChunk = true;
  #isOver = false;

  /**
   * @param rest Bytes received together with the head.
   * @throws {Error} if the head has two lengths or an invalid one
   */
  constructor(head: HttpHead, rest: Uint8Array, readSocket: ReadSocket) {
    const codings = getHeaderValues(head, "transfer-encoding");
    const lengths = new Set(getHeaderValues(head, "content-length"));
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
    if (this.#isChunked && this.#missing === 0 && !this.#isOver) await this.#readChunk();
    if (this.#isOver || this.#missing === 0) return 0;
    const maxCount = Math.min(into.length, this.#missing);
    let count: number | null = Math.min(maxCount, this.#rest.length);
    if (count > 0) {
      into.set(this.#rest.subarray(0, count));
      this.#rest = this.#rest.subarray(count);
    } else {
      count = await this.#readSocket(into.subarray(0, maxCount));
    }
    if (count !== null) {
      this.#missing -= count;
      return count;
    }
    this.#isOver = true;
    if (this.#missing !== Infinity) throw new Error(`The connection ended with ${this.#missing} bytes missing`);
    return 0;
  }

  async #readChunk(): Promise<void> {
    if (!this.#isFirstChunk && await this.#readLine() !== "") throw new Error("A chunk doesn't end where it should");
    this.#isFirstChunk = false;
    const [, size] = /^([0-9a-fA-F]{1,12})[ \t]*(?:;.*)?$/.exec(await this.#readLine()) ?? [];
    if (size === undefined) throw new Error("The size of a chunk isn't a number");
    this.#missing = parseInt(size, 16);
    this.#isOver = this.#missing === 0; // Trailers are ignored: the connection closes.
  }

  async #readLine(): Promise<string> {
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
    throw new Error("The size line of a chunk is too long");
  }
}
