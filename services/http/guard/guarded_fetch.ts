/** `fetch` for URLs from users, pages or redirects: only public addresses, each hop through a new connection of guard_proxy.ts. */
import { AppError } from "../../errors.ts";
import { formatDuration } from "../upstream_error.ts";
import { type GuardProxy, openGuardProxy, REFUSAL_HEADER } from "./guard_proxy.ts";
import {
  createTargetPolicy,
  DEFAULT_PROXY_LIMITS,
  dropProxyEnvironment,
  OWN_VIA,
  type ProxyLimits,
  REFUSAL_TEXT,
  type ResolveHost,
  resolveWithSystem,
  type TargetPolicy,
  toTarget,
} from "./target_policy.ts";
import { limitBody } from "../read_body.ts";
import type { OwnListeners } from "../own_listeners.ts";

/** Options of a guarded fetch. Other options of `fetch` (client, credentials, cache) are ignored. */
export type GuardedInit = RequestInit & {
  /** Limit of the decompressed body; default 32 MiB. */
  maxBytes?: number;
  /** Time limit until the last byte of the body, including redirects; default 30,000. */
  timeoutMs?: number;
};

/** Sends requests to public addresses only. */
export interface Guard {
  /** URL of the proxy with its password, for other programs: `http://guard:…@127.0.0.1:…`. Keep it secret. */
  readonly proxyUrl: string;
  /**
   * Fetches from a public address over http or https.
   *
   * Follows at most 5 redirects and checks each; `redirect: "manual"` returns the first response unchanged. The body
   * must be read or canceled; otherwise the time limit ends it.
   *
   * @throws {AppError} `invalid_request` if the text is not a URL; `address_not_allowed` if the host or port is
   *   forbidden; `upstream_error` with the same message if the target is refused after the lookup or doesn't respond;
   *   `not_available` if the guard is closed. While the body is read: `too_large`, `upstream_timeout`,
   *   `upstream_error`. The abort reason of `init.signal`.
   */
  fetch(url: string | URL, init?: GuardedInit): Promise<Response>;
  /**
   * Checks an address without a request. A name may still resolve to a forbidden address, which only `fetch` detects.
   *
   * @throws {AppError} Like `fetch`: `invalid_request`, `address_not_allowed`.
   */
  check(url: string | URL): void;
  /** Closes the proxy. Running requests fail. */
  close(): Promise<void>;
}

export interface GuardOptions {
  /** CIDRs that are allowed although they are not public, on any port (`guard_allow`). */
  allow: string[];
  /** URLs whose host and port are exempt from the name and port rules (`hub_url`, `card_site_url`). Their addresses are checked. */
  exactOrigins: string[];
  /** Default: the system's resolver. */
  resolve?: ResolveHost;
  /** PEM certificates to trust in addition to the system's. */
  caCerts?: string[];
  /** Addresses of Parlor itself, which are refused. */
  ownListeners?: OwnListeners;
  limits?: Partial<ProxyLimits>;
}

const DEFAULT_MAX_BYTES = 32 * 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 30_000;
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const MAX_REDIRECTS = 5;
const NO_BODY_STATUS = new Set([204, 205, 304]);

/** Opens the guard and its proxy. Removes the proxy variables of the environment, which would bypass it. */
// deno-lint-ignore require-await -- opening a resource is asynchronous everywhere
export async function openGuard(options: GuardOptions): Promise<Guard> {
  const limits = { ...DEFAULT_PROXY_LIMITS, ...options.limits };
  const policy = createTargetPolicy({ ...options, resolve: options.resolve ?? resolveWithSystem });
  dropProxyEnvironment();
  const proxy = openGuardProxy({ policy, limits, ownListeners: options.ownListeners });
  const calls = new Set<Call>();
  let isClosed = false;
  const parseUrl = (url: string | URL) => {
    if (!URL.canParse(`${url}`)) throw new AppError("invalid_request", "Can't fetch the address: it isn't a URL");
    return new URL(url);
  };
  return {
    proxyUrl: `http://${proxy.username}:${proxy.password}@127.0.0.1:${proxy.port}`,
    async fetch(url, init = {}) {
      if (isClosed) throw createClosedError();
      const call = new Call(
        { proxy, policy, limits, caCerts: options.caCerts ?? [] },
        parseUrl(url),
        init,
        () => calls.delete(call),
      );
      calls.add(call);
      return await call.run();
    },
    check(given) {
      const url = parseUrl(given);
      if (isForbidden(url, policy)) throw createRefusal(url, "address_not_allowed", REFUSAL_TEXT);
    },
    async close() {
      isClosed = true;
      for (const call of calls) call.stop(createClosedError());
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
  #hasResponse = false;

  constructor(
    readonly context: CallContext,
    readonly url: URL,
    readonly init: GuardedInit,
    readonly onEnd: () => void,
  ) {
    const timeoutMs = Math.min(init.timeoutMs ?? DEFAULT_TIMEOUT_MS, LONGEST_TIMER_MS);
    this.#timer = setTimeout(() => {
      this.stop(
        this.#hasResponse
          ? this.#createError("upstream_timeout", `not finished after ${formatDuration(timeoutMs)}`)
          : this.#createRefusal(),
      );
    }, timeoutMs);
  }

  /** Ends the call. Its promise or its body fails with the reason. */
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
      const next = redirect === "manual" ? undefined : toNextHop(hop, response);
      if (next === undefined) return this.#deliver(hop.url, hop.method, response);
      await response.body?.cancel();
      if (next === "refused" || redirects === MAX_REDIRECTS || redirect === "error") throw this.#createRefusal();
      hop = next;
    }
  }

  /**
   * Sends one hop with its own lookup, connection and client, so that earlier checks are never reused.
   *
   * Deno 2.9 also resolves the name for its --deny-net rules, and for nothing else.
   */
  async #ask({ url, ...sent }: Hop): Promise<Response> {
    const { proxy, policy, caCerts } = this.context;
    if (isForbidden(url, policy)) {
      throw this.#createRefusal("address_not_allowed");
    }
    const { signal } = this.#controller;
    signal.throwIfAborted();
    this.#client?.close();
    dropProxyEnvironment(); // The runtime reads them for each new client, and NO_PROXY would bypass the proxy.
    this.#client = Deno.createHttpClient({
      proxy: {
        url: `http://127.0.0.1:${proxy.port}`,
        basicAuth: { username: proxy.username, password: proxy.password },
      },
      caCerts,
      http2: false, // One request per connection
      poolMaxIdlePerHost: 0,
    });
    const request = { ...sent, client: this.#client, redirect: "manual", signal } satisfies RequestInit & {
      client?: Deno.HttpClient;
    };
    // The proxy adds it to requests that it can read.
    if (policy.allowsPrivate && url.protocol === "https:") sent.headers.set("via", OWN_VIA.via);
    const response = await fetch(url, request).catch((cause) => {
      throw this.#createRefusal("upstream_error", cause);
    });
    if (response.headers.get(REFUSAL_HEADER) !== proxy.refusalMark) return response;
    await response.body?.cancel();
    throw this.#createRefusal();
  }

  /** Checks the head and wraps the body. */
  #deliver(url: URL, method: string, response: Response): Response {
    this.#hasResponse = true;
    const maxBytes = this.init.maxBytes ?? DEFAULT_MAX_BYTES;
    const { headBytes, idleMs } = this.context.limits;
    const headers = new Headers(response.headers);
    if ([...headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0) > headBytes) {
      throw this.#createError("upstream_error", `its headers are longer than ${headBytes} bytes`);
    }
    const isEmpty = method === "HEAD" || NO_BODY_STATUS.has(response.status) || response.body === null;
    const createTooLargeError = () => this.#createError("too_large", `its response is larger than ${maxBytes} bytes`);
    if (!isEmpty && Number(headers.get("content-length") ?? 0) > maxBytes) throw createTooLargeError();
    if (/^\s*(gzip|br)\s*$/i.test(headers.get("content-encoding") ?? "") && !isEmpty) {
      // The runtime has decoded the body. Before Deno 2.9 it removed these headers itself.
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
          limit === "bytes"
            ? createTooLargeError()
            : this.#createError("upstream_timeout", `no data for ${formatDuration(idleMs)}`),
        );
      },
      onEnd: () => this.#end(),
      toError: (cause) => {
        const { aborted, reason } = this.#controller.signal;
        return aborted ? reason : this.#createError("upstream_error", "its response was cut off", cause);
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

  #createRefusal(code: "address_not_allowed" | "upstream_error" = "upstream_error", cause?: unknown): AppError {
    return this.#createError(code, REFUSAL_TEXT, cause);
  }

  /** Creates an error with the requested host, not the target of redirects. */
  #createError(
    code: "address_not_allowed" | "upstream_error" | "upstream_timeout" | "too_large",
    found: string,
    cause?: unknown,
  ): AppError {
    return createRefusal(this.url, code, found, cause);
  }
}

function isForbidden(url: URL, policy: TargetPolicy): boolean {
  const isHttp = url.protocol === "http:" || url.protocol === "https:";
  return !isHttp || url.username !== "" || url.password !== "" || policy.isRefusedUnresolved(toTarget(url));
}

function createRefusal(
  url: URL,
  code: "address_not_allowed" | "upstream_error" | "upstream_timeout" | "too_large",
  found: string,
  cause?: unknown,
): AppError {
  return new AppError(code, `Can't fetch from "${url.host || url.protocol}": ${found}`, { cause });
}

function createClosedError(): AppError {
  return new AppError("not_available", "Can't fetch the address: Parlor is shutting down");
}

// Follows redirects like the Fetch standard (https://fetch.spec.whatwg.org/#http-redirect-fetch), with stricter rules.

/** One request in a chain of redirects. */
interface Hop {
  url: URL;
  method: string;
  headers: Headers;
  body: BodyInit | undefined;
}

const REDIRECT_STATUS = new Set([301, 302, 303, 307, 308]);

// An allow list, because keys have many names (`Authorization`, `api-key`, `Cookie`, …).
const CROSS_ORIGIN_HEADERS = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "content-type",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "range",
  "user-agent",
]);

/**
 * Returns the next request. The caller checks its address.
 *
 * @returns `undefined` if the response isn't a redirect; `"refused"` if it has no valid URL, leads from https to http,
 *   or would send a stream a second time
 */
function toNextHop(hop: Hop, response: Response): Hop | "refused" | undefined {
  const location = response.headers.get("location");
  if (!REDIRECT_STATUS.has(response.status) || location === null) return undefined;
  if (!URL.canParse(location, hop.url)) return "refused";
  const url = new URL(location, hop.url);
  if (hop.url.protocol === "https:" && url.protocol === "http:") return "refused";
  const becomesGet = (response.status === 303 && hop.method !== "HEAD") ||
    (response.status < 303 && hop.method === "POST");
  if (!becomesGet && hop.body instanceof ReadableStream) return "refused";
  const headers = new Headers(hop.headers);
  for (const name of [...headers.keys()]) {
    const describesBody = name.startsWith("content-");
    if ((becomesGet && describesBody) || (url.origin !== hop.url.origin && !CROSS_ORIGIN_HEADERS.has(name))) {
      headers.delete(name);
    }
  }
  return { url, method: becomesGet ? "GET" : hop.method, headers, body: becomesGet ? undefined : hop.body };
}
