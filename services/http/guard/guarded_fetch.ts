/** `fetch` for addresses that a user, a page or a redirect supplied. Each hop is a connection of its own through guard_proxy.ts. */
import { AppError } from "../../errors.ts";
import { type GuardProxy, openGuardProxy, REFUSAL_HEADER } from "./guard_proxy.ts";
import { DEFAULT_PROXY_LIMITS, type ProxyLimits, REFUSAL_TEXT } from "./guard_limits.ts";
import { limitBody } from "./limited_body.ts";
import { dropProxyEnvironment } from "./proxy_environment.ts";
import { type Hop, nextHop } from "./redirect.ts";
import { type ResolveHost, resolveWithSystem } from "./resolve_host.ts";
import { createTargetPolicy, targetOf, type TargetPolicy } from "./target_policy.ts";

/** What a guarded call may say; anything else of the runtime's own options (client, credentials, cache) is ignored. */
export type GuardedInit = RequestInit & {
  /** Bytes of the body after decompression; default 32 MiB. */
  maxBytes?: number;
  /** From the call to the last byte of the body, redirects included; default 30,000. */
  timeoutMs?: number;
};

/** The way out for public-only calls. */
export interface Guard {
  /** The proxy with its password, for other programs: `http://guard:…@127.0.0.1:…`. A secret. */
  readonly proxyUrl: string;
  /**
   * Fetches over http or https from a public address.
   *
   * At most 5 redirects are followed, each judged anew; `redirect: "manual"` returns the first answer as it is. The answer's
   * `url` is the address it came from. Its body has to be read or cancelled; the time limit ends it otherwise.
   *
   * @throws {AppError} `invalid_request` for text that is no URL; `address_not_allowed` when the words of the address forbid
   *   it; `upstream_error` with the same message when the target is refused after lookup or does not answer;
   *   `not_available` when the guard is closed. While the body is read: `too_large`, `upstream_timeout`, `upstream_error`.
   *   The reason of `init.signal` when that fires.
   */
  fetch(url: string | URL, init?: GuardedInit): Promise<Response>;
  /** Ends all calls and the proxy. */
  close(): Promise<void>;
}

export interface GuardOptions {
  /** CIDRs that pass although they are not public, on any port (`guard_allow`). */
  allow: string[];
  /** URLs whose exact host and port are free of the name and port rules (`hub_url`, `card_site_url`); their addresses are judged. */
  exactOrigins: string[];
  /** Default: the system's resolver. */
  resolve?: ResolveHost;
  /** PEM certificates trusted beside the runtime's own. */
  caCerts?: string[];
  limits?: Partial<ProxyLimits>;
}

const DEFAULT_MAX_BYTES = 32 * 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 30_000;
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const MAX_REDIRECTS = 5;
const NO_BODY_STATUS = new Set([204, 205, 304]);

/** Opens the guard with its proxy; drops the proxy variables of the environment, which would lead round it. */
// deno-lint-ignore require-await -- the contract leaves room for an opening that waits
export async function openGuard(options: GuardOptions): Promise<Guard> {
  const limits = { ...DEFAULT_PROXY_LIMITS, ...options.limits };
  const policy = createTargetPolicy({ ...options, resolve: options.resolve ?? resolveWithSystem });
  dropProxyEnvironment();
  const proxy = openGuardProxy(policy, limits);
  const calls = new Set<Call>();
  let isClosed = false;
  return {
    proxyUrl: `http://${proxy.username}:${proxy.password}@127.0.0.1:${proxy.port}`,
    async fetch(url, init = {}) {
      if (isClosed) throw closedError();
      if (!URL.canParse(`${url}`)) throw new AppError("invalid_request", "Cannot fetch the address: it is not a URL");
      const call = new Call(
        { proxy, policy, limits, caCerts: options.caCerts ?? [] },
        new URL(url),
        init,
        () => calls.delete(call),
      );
      calls.add(call);
      return await call.run();
    },
    async close() {
      isClosed = true;
      for (const call of calls) call.stop(closedError());
      await proxy.close();
    },
  };
}

interface CallContext {
  proxy: GuardProxy;
  policy: TargetPolicy;
  limits: ProxyLimits;
  caCerts: string[];
}

/** One guarded fetch from its first hop to the end of its body. */
class Call {
  readonly #controller = new AbortController();
  readonly #timer: ReturnType<typeof setTimeout>;
  readonly #onCallerAbort = () => this.stop(this.init.signal?.reason);
  #client: Deno.HttpClient | undefined;
  #hasAnswer = false;

  constructor(
    readonly context: CallContext,
    readonly url: URL,
    readonly init: GuardedInit,
    readonly onEnd: () => void,
  ) {
    const timeoutMs = Math.min(init.timeoutMs ?? DEFAULT_TIMEOUT_MS, LONGEST_TIMER_MS);
    this.#timer = setTimeout(() => {
      this.stop(
        this.#hasAnswer ? this.#error("upstream_timeout", `not finished after ${timeoutMs} ms`) : this.#refusal(),
      );
    }, timeoutMs);
  }

  /** Ends the call; whoever waits for it or reads its body gets the reason. */
  stop(reason: unknown): void {
    this.#controller.abort(reason);
    this.#end();
  }

  async run(): Promise<Response> {
    const { signal } = this.init;
    signal?.addEventListener("abort", this.#onCallerAbort);
    if (signal?.aborted) this.#onCallerAbort();
    try {
      return await this.#follow();
    } catch (thrown) {
      this.#end();
      throw this.#controller.signal.aborted ? this.#controller.signal.reason : thrown;
    }
  }

  async #follow(): Promise<Response> {
    const { method = "GET", headers, body, redirect = "follow" } = this.init;
    let hop: Hop = {
      url: this.url,
      method: method.toUpperCase(),
      headers: new Headers(headers),
      body: body ?? undefined,
    };
    for (let redirects = 0;; redirects++) {
      const response = await this.#ask(hop);
      const next = redirect === "manual" ? undefined : nextHop(hop, response);
      if (next === undefined) return this.#deliver(hop.url, hop.method, response);
      await response.body?.cancel();
      if (next === "refused" || redirects === MAX_REDIRECTS || redirect === "error") throw this.#refusal();
      hop = next;
    }
  }

  /**
   * One hop: a lookup, a connection and a client of its own, so that no earlier judgement is used again.
   *
   * Deno 2.9 looks the name up once more by itself, for its --deny-net rules; it uses the answer for nothing else.
   */
  async #ask({ url, ...sent }: Hop): Promise<Response> {
    const { proxy, policy, caCerts } = this.context;
    const isHttp = url.protocol === "http:" || url.protocol === "https:";
    if (!isHttp || url.username !== "" || url.password !== "" || policy.isRefusedUnresolved(targetOf(url))) {
      throw this.#refusal("address_not_allowed");
    }
    const { signal } = this.#controller;
    signal.throwIfAborted();
    this.#client?.close();
    dropProxyEnvironment(); // read by the runtime as it makes the client; NO_PROXY would bypass the proxy given here
    this.#client = Deno.createHttpClient({
      proxy: {
        url: `http://127.0.0.1:${proxy.port}`,
        basicAuth: { username: proxy.username, password: proxy.password },
      },
      caCerts,
      http2: false, // one request a connection, and no second protocol's limits to reckon with
      poolMaxIdlePerHost: 0,
    });
    const request = { ...sent, client: this.#client, redirect: "manual" as const, signal };
    const response = await fetch(url, request).catch((cause) => {
      throw this.#refusal("upstream_error", cause);
    });
    if (response.headers.get(REFUSAL_HEADER) !== proxy.refusalMark) return response;
    await response.body?.cancel();
    throw this.#refusal();
  }

  /** Checks what came before the body and wraps the body itself. */
  #deliver(url: URL, method: string, response: Response): Response {
    this.#hasAnswer = true;
    const maxBytes = this.init.maxBytes ?? DEFAULT_MAX_BYTES;
    const { headBytes, idleMs } = this.context.limits;
    const headers = new Headers(response.headers);
    if ([...headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0) > headBytes) {
      throw this.#error("upstream_error", `its headers are longer than ${headBytes} bytes`);
    }
    const isEmpty = method === "HEAD" || NO_BODY_STATUS.has(response.status) || response.body === null;
    const tooLarge = () => this.#error("too_large", `its answer is larger than ${maxBytes} bytes`);
    if (!isEmpty && Number(headers.get("content-length") ?? 0) > maxBytes) throw tooLarge();
    if (/^\s*(gzip|br)\s*$/i.test(headers.get("content-encoding") ?? "") && !isEmpty) {
      // The runtime has decoded the body and, before Deno 2.9, removed these itself.
      headers.delete("content-encoding");
      headers.delete("content-length");
    }
    if (isEmpty) this.#end();
    const body = isEmpty || response.body === null ? null : limitBody(response.body, {
      maxBytes,
      idleMs,
      signal: this.#controller.signal,
      onExceeded: (limit) => {
        this.#controller.abort(
          limit === "bytes" ? tooLarge() : this.#error("upstream_timeout", `silent for ${idleMs} ms`),
        );
      },
      onEnd: () => this.#end(),
      toError: (cause) => {
        const { aborted, reason } = this.#controller.signal;
        return aborted ? reason : this.#error("upstream_error", "its answer broke off", cause);
      },
    });
    const answer = new Response(body, { status: response.status, statusText: response.statusText, headers });
    return Object.defineProperty(answer, "url", { value: url.href });
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.init.signal?.removeEventListener("abort", this.#onCallerAbort);
    this.#client?.close();
    this.#client = undefined;
    this.onEnd();
  }

  #refusal(code: "address_not_allowed" | "upstream_error" = "upstream_error", cause?: unknown): AppError {
    return this.#error(code, REFUSAL_TEXT, cause);
  }

  /** Names the host that was asked for first; where it redirected to stays inside. */
  #error(
    code: "address_not_allowed" | "upstream_error" | "upstream_timeout" | "too_large",
    found: string,
    cause?: unknown,
  ): AppError {
    return new AppError(code, `Cannot fetch from "${this.url.host || this.url.protocol}": ${found}`, { cause });
  }
}

function closedError(): AppError {
  return new AppError("not_available", "Cannot fetch the address: the guard is closed");
}
