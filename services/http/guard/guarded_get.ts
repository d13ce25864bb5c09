/**
 * One GET over a judged connection of its own, for bodies too large to pass through guard_proxy.ts: the same policy decides,
 * but the bytes go from the socket into the caller's buffer. It runs in Workers, where no guard is open.
 */
import { AppError } from "../../errors.ts";
import { dialFirst } from "./dial.ts";
import { BodyReader } from "./body_reader.ts";
import { DEFAULT_PROXY_LIMITS, REFUSAL_TEXT } from "./guard_limits.ts";
import { formatHead, readHead, valuesOf } from "./http_head.ts";
import { closeQuietly, writeAll } from "./sockets.ts";
import { targetOf, type TargetPolicy } from "./target_policy.ts";

/** What a call may cost; as for the proxy. */
export interface GuardedGetLimits {
  /** Lookup, connection attempts and TLS together. */
  connectMs: number;
  headBytes: number;
  /** Longest wait for the next byte. */
  idleMs: number;
}

/** How to ask. */
export interface GuardedGetOptions {
  policy: TargetPolicy;
  /** Headers beside `Host` and `Connection`. */
  headers: Record<string, string>;
  /** Ends the call. */
  signal: AbortSignal;
  limits?: Partial<GuardedGetLimits>;
  /** PEM certificates trusted beside the runtime's own. */
  caCerts?: string[];
}

/** An answer whose body has not been read yet. Close it in the end. */
export interface GuardedAnswer extends Disposable {
  readonly status: number;
  /** The values of a header, joined by commas; `undefined` when there is none. */
  header(name: string): string | undefined;
  /** Length of the body, where the head tells it. */
  readonly bodyBytes: number | undefined;
  /**
   * Reads what is there next, at least one byte.
   *
   * @returns 0 at the end of the body.
   * @throws {AppError} `upstream_timeout` when nothing comes, `upstream_error` when the body breaks off before its end.
   */
  read(into: Uint8Array): Promise<number>;
}

/**
 * Asks for an address; redirects are the caller's to follow, each by a call of its own.
 *
 * @throws {AppError} `address_not_allowed` when the words of the address forbid it; `upstream_error` with one and the same
 *   message when the target is refused after lookup, does not answer, or answers no HTTP. The signal's reason when it fires.
 */
export async function guardedGet(url: URL, options: GuardedGetOptions): Promise<GuardedAnswer> {
  const { policy, headers, signal, caCerts = [] } = options;
  const limits = { ...DEFAULT_PROXY_LIMITS, ...options.limits };
  const refusal = (code: "address_not_allowed" | "upstream_error", cause?: unknown) =>
    new AppError(code, `Cannot fetch from "${url.host || url.protocol}": ${REFUSAL_TEXT}`, { cause });
  const isHttp = url.protocol === "http:" || url.protocol === "https:";
  const target = targetOf(url);
  if (!isHttp || url.username !== "" || url.password !== "" || policy.isRefusedUnresolved(target)) {
    throw refusal("address_not_allowed");
  }
  signal.throwIfAborted();
  const connection = new Connection(signal, limits);
  try {
    const dialed = await dialFirst(() => policy.resolveAllowed(target), target.port, limits.connectMs, signal);
    if (dialed === undefined) throw new Error("Cannot connect");
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
    if (status === undefined) throw new Error("Cannot read the answer: it is no HTTP");
    const body = new BodyReader(head, rest, (into) => connection.read(into));
    return {
      status: Number(status),
      header(name) {
        const values = valuesOf(head, name.toLowerCase());
        return values.length === 0 ? undefined : values.join(", ");
      },
      bodyBytes: body.lengthBytes,
      async read(into) {
        try {
          return await body.read(into);
        } catch (cause) {
          if (signal.aborted) throw signal.reason;
          const [code, found] = connection.isSilent
            ? ["upstream_timeout" as const, `silent for ${limits.idleMs} ms`]
            : ["upstream_error" as const, "its answer broke off"];
          throw new AppError(code, `Cannot fetch from "${url.host}": ${found}`, { cause });
        }
      },
      [Symbol.dispose]: () => connection.close(),
    };
  } catch (cause) {
    connection.close();
    throw signal.aborted ? signal.reason : refusal("upstream_error", cause);
  }
}

/** A socket that closes when it has been silent for too long, or when its caller gives up. */
class Connection {
  /** True when it was closed for its silence. */
  isSilent = false;
  #conn: Deno.Conn | undefined;
  #activeAt = performance.now();
  readonly #watch: ReturnType<typeof setInterval>;
  readonly #close = () => this.close();

  constructor(readonly signal: AbortSignal, limits: GuardedGetLimits) {
    signal.addEventListener("abort", this.#close);
    // One timer for the whole body: setting one anew for each of its reads would cost more than the read.
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
