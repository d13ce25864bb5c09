/**
 * HTTP calls to the owner's own servers that are no model servers (speech, images): address rules, key, redirects, limits,
 * and failures in plain words. What the answers mean is up to the rooms that ask.
 */
import { AppError } from "../errors.ts";
import { connectFinding } from "./connect_error.ts";
import { watchConnect } from "./connect_watch.ts";
import { assertOwnerAddress, parseOwnerUrl } from "./endpoint_address.ts";
import type { ResolveHost } from "./guard/resolve_host.ts";

/** One request to a server of the owner's. */
export interface OwnerRequest {
  url: string;
  method?: "GET" | "POST" | "PUT" | "DELETE";
  headers?: Record<string, string>;
  /** JSON text, a form, bytes. */
  body?: BodyInit;
  /** Sent as a bearer token, to this exact origin only. */
  apiKey?: string;
  /** Until the machine takes the connection. */
  connectMs: number;
  /** Until the head of the answer. */
  firstByteMs: number;
  /** Longest silence between two bytes of the answer's body; default is `firstByteMs`. */
  idleMs?: number;
  /** The caller's leaving. */
  signal?: AbortSignal;
}

/** The connections to such servers. */
export interface OwnerClient {
  /**
   * Sends a request and gives its answer, of whatever status. Its body has to be read or cancelled.
   *
   * @throws {AppError} `invalid_request`, `address_not_allowed`; `upstream_error` when the server cannot be reached or
   *   redirects to another origin, which is never followed; `upstream_timeout` when it is too slow. The same while the body
   *   is read. The reason of `signal` when that fired.
   */
  send(request: OwnerRequest): Promise<Response>;
  /** Closes idle connections and fails the calls that still run. */
  close(): void;
}

const MAX_REDIRECTS = 3;

/**
 * Opens the connections; nothing happens before the first call.
 *
 * @param options.what How errors name the server: `"the speech server"`.
 */
export function openOwnerClient(options: { what: string; resolve?: ResolveHost }): OwnerClient {
  let client: Deno.HttpClient | undefined;
  const running = new Set<Call>();
  return {
    async send(request) {
      // Below the 5 s after which common servers drop an idle connection.
      client ??= Deno.createHttpClient({ poolIdleTimeout: 4_000, http1: true, http2: false });
      const call = new Call(options.what, request, () => running.delete(call));
      running.add(call);
      return await call.run(client, options.resolve);
    },
    close() {
      for (const call of running) {
        call.stop(new AppError("not_available", `Cannot ask ${options.what}: Parlor is stopping`));
      }
      client?.close();
      client = undefined;
    },
  };
}

/** One request from its first hop to the end of its answer's body. */
class Call {
  readonly #controller = new AbortController();
  readonly #onLeave = () => this.stop(this.request.signal?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;

  constructor(readonly what: string, readonly request: OwnerRequest, readonly onEnd: () => void) {
    request.signal?.addEventListener("abort", this.#onLeave, { once: true });
    if (request.signal?.aborted) this.#onLeave();
  }

  stop(reason: unknown): void {
    this.#controller.abort(reason);
    this.#end();
  }

  async run(client: Deno.HttpClient, resolve: ResolveHost | undefined): Promise<Response> {
    try {
      let url = parseOwnerUrl(this.request.url);
      this.#expect(this.request.firstByteMs, "no answer");
      for (let hop = 0;; hop++) {
        await assertOwnerAddress(url, resolve);
        const response = await this.#ask(client, url);
        const next = this.#redirectTarget(url, response);
        if (next === undefined) return this.#deliver(response);
        await response.body?.cancel();
        if (hop === MAX_REDIRECTS) throw this.#redirected("in a circle");
        url = next;
      }
    } catch (thrown) {
      this.#end();
      throw this.#translate(thrown);
    }
  }

  async #ask(client: Deno.HttpClient, url: URL): Promise<Response> {
    const { method = "GET", headers, body, apiKey, connectMs } = this.request;
    const watch = watchConnect(url, connectMs, () => this.stop(this.#tooSlow("no answer", connectMs)));
    try {
      return await fetch(url, {
        client,
        method,
        headers: { ...headers, ...(apiKey && { authorization: `Bearer ${headerValue(apiKey)}` }) },
        body,
        redirect: "manual",
        signal: this.#controller.signal,
      });
    } finally {
      watch.done();
    }
  }

  /** Wraps the body, so that silence ends it and its failures speak our words. */
  #deliver(response: Response): Response {
    if (response.body === null) {
      this.#end();
      return response;
    }
    const idleMs = this.request.idleMs ?? this.request.firstByteMs;
    const reader = response.body.getReader();
    this.#expect(idleMs, "silent");
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      pull: async (controller) => {
        try {
          const { done, value } = await reader.read();
          if (done) {
            this.#end();
            controller.close();
            return;
          }
          this.#expect(idleMs, "silent");
          controller.enqueue(value);
        } catch (thrown) {
          this.#end();
          controller.error(this.#translate(thrown));
        }
      },
      cancel: (reason) => {
        this.#end();
        return reader.cancel(reason);
      },
    }, { highWaterMark: 0 });
    return new Response(body, { status: response.status, statusText: response.statusText, headers: response.headers });
  }

  #expect(limitMs: number, finding: string): void {
    clearTimeout(this.#timer);
    if (!this.#isOver) this.#timer = setTimeout(() => this.stop(this.#tooSlow(finding, limitMs)), limitMs);
  }

  #redirectTarget(from: URL, response: Response): URL | undefined {
    if (![301, 302, 303, 307, 308].includes(response.status)) return undefined;
    const location = response.headers.get("location") ?? "";
    if (location === "" || !URL.canParse(location, from)) throw this.#redirected("to nowhere");
    const to = new URL(location, from);
    const keepsMethod = [307, 308].includes(response.status) || (this.request.method ?? "GET") === "GET";
    if (to.origin === from.origin && keepsMethod) return to;
    throw this.#redirected(`to "${to.origin === "null" ? to.protocol : to.origin}"`);
  }

  #redirected(where: string): AppError {
    const origin = new URL(this.request.url).origin;
    return new AppError(
      "upstream_error",
      `${
        capitalised(this.what)
      } at "${origin}" redirects ${where}, which is not followed: enter the final address itself`,
    );
  }

  #tooSlow(finding: string, limitMs: number): AppError {
    const origin = new URL(this.request.url).origin;
    return new AppError("upstream_timeout", `Cannot reach ${this.what} at "${origin}": ${finding} for ${limitMs} ms`);
  }

  #translate(thrown: unknown): unknown {
    const { aborted, reason } = this.#controller.signal;
    if (aborted) return reason;
    if (thrown instanceof AppError) return thrown;
    const origin = new URL(this.request.url).origin;
    const { finding } = connectFinding(thrown);
    return new AppError("upstream_error", `Cannot reach ${this.what} at "${origin}": ${finding}`, { cause: thrown });
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.request.signal?.removeEventListener("abort", this.#onLeave);
    this.onEnd();
  }
}

/** Checked here because the runtime's own complaint about a bad header value quotes the value. */
function headerValue(apiKey: string): string {
  const key = apiKey.trim();
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new AppError("invalid_request", "Cannot use the API key: it holds spaces or characters other than plain ASCII");
}

function capitalised(text: string): string {
  return text[0]!.toUpperCase() + text.slice(1);
}
