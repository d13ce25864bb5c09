/**
 * A GET request under the guard's policy but without its proxy, for large bodies: bytes go from the socket into the caller's
 * buffer. It also runs in Workers, which have no guard.
 */
import { AppError } from "../../errors.ts";
import { dialFirst } from "./dial.ts";
import { BodyReader } from "./body_reader.ts";
import { formatDuration } from "../timeouts.ts";
import { DEFAULT_PROXY_LIMITS, REFUSAL_TEXT } from "./guard_limits.ts";
import { formatHead, listValues, readHead } from "./http_head.ts";
import { closeQuietly, writeAll } from "./sockets.ts";
import { type TargetPolicy, toTarget } from "./target_policy.ts";

/** Limits, as for the proxy. */
export interface GuardedGetLimits {
  /** For the lookup, all connection attempts and TLS. */
  connectMs: number;
  headBytes: number;
  /** Without data. */
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

/** A response whose body has not been read. Dispose it at the end. */
export interface GuardedResponse extends Disposable {
  readonly status: number;
  /** The values of a header, joined by commas. */
  header(name: string): string | undefined;
  /** Length of the body, if the head has it. */
  readonly bodyBytes: number | undefined;
  /**
   * Reads at least one byte.
   *
   * @returns 0 at the end of the body.
   * @throws {AppError} `upstream_timeout` if no data arrives, `upstream_error` if the body breaks off
   */
  read(into: Uint8Array): Promise<number>;
}

/**
 * Requests a URL. The caller follows redirects, each with a new request.
 *
 * @throws {AppError} `address_not_allowed` if the host or port is forbidden; `upstream_error` with the same message if the target
 *   is refused after the lookup, doesn't respond, or doesn't speak HTTP. The abort reason of the signal.
 */
export async function guardedGet(url: URL, options: GuardedGetOptions): Promise<GuardedResponse> {
  const { policy, headers, signal, caCerts = [] } = options;
  const limits = { ...DEFAULT_PROXY_LIMITS, ...options.limits };
  const refusal = (code: "address_not_allowed" | "upstream_error", cause?: unknown) =>
    new AppError(code, `Can't fetch from "${url.host || url.protocol}": ${REFUSAL_TEXT}`, { cause });
  const isHttp = url.protocol === "http:" || url.protocol === "https:";
  const target = toTarget(url);
  if (!isHttp || url.username !== "" || url.password !== "" || policy.isRefusedUnresolved(target)) {
    throw refusal("address_not_allowed");
  }
  signal.throwIfAborted();
  const connection = new Connection(signal, limits);
  try {
    const dialed = await dialFirst(() => policy.resolveAllowed(target), target.port, limits.connectMs, signal);
    if (dialed === undefined) throw new Error("Can't connect");
    connection.use(dialed);
    if (url.protocol === "https:") {
      connection.use(await Deno.startTls(dialed, { hostname: target.host, caCerts }));
    }
    const request = formatHead({
      startLine: `GET ${url.pathname}${url.search} HTTP/1.1`,
      headers: [["Host", url.host], ...Object.entries(headers), ["Connection", "close"]],
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
      header(name) {
        const values = listValues(head, name.toLowerCase());
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
    throw signal.aborted ? signal.reason : refusal("upstream_error", cause);
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
