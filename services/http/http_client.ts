/**
 * The HTTP client for the owner's own servers: model, speech and image servers, and discovery. It checks addresses, follows
 * redirects within an origin, enforces timeouts and explains failures. Public addresses are fetched through guard/ instead.
 */
import { connect } from "node:net";
import { raceAbort, yieldToEventLoop } from "../async/delay.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import { maskKey, parseOwnerUrl } from "./base_url.ts";
import { OwnerConnections, type OwnerConnectionsOptions, type Route } from "./owner_connections.ts";
import { type CallTimeouts, CallTimer, explainConnectError, formatDuration, UpstreamError } from "./upstream_error.ts";
import type { ResolveHost } from "./guard/target_policy.ts";
import type { OwnListeners } from "./own_listeners.ts";
import { readText } from "./read_body.ts";

/** A server of the owner. */
export interface HttpTarget {
  /** From `normalizeBaseUrl`. Shown in errors. */
  baseUrl: string;
  /** Masked in errors. The caller builds the header: each protocol has its own. */
  apiKey?: string;
  timeouts: CallTimeouts;
}

/** One request to a server. */
export interface HttpRequest {
  url: string;
  method?: "GET" | "POST" | "PUT" | "DELETE";
  headers?: Record<string, string>;
  /** Text is sent with its length, because some servers reject a body of unknown length. */
  body?: BodyInit;
  /** `"manual"` returns redirects as they are. By default they are followed within the origin. */
  redirect?: "manual";
}

/** One call to a server: its timeouts and the errors it can fail with, which never contain the key. */
export class HttpCall<Target extends HttpTarget = HttpTarget> {
  readonly timer: CallTimer;
  /** Name of the server in errors: `the model at "http://127.0.0.1:8080"`. */
  readonly server: string;

  /** @param label Kind of server, for errors: `"the model"`. */
  constructor(label: string, readonly target: Target, signal?: AbortSignal) {
    this.server = `${label} at "${target.baseUrl}"`;
    this.timer = new CallTimer(target.timeouts, this.server, signal);
  }

  /** Turns a value thrown by `fetch` or a read into the caller's abort reason or an AppError. */
  toError(thrown: unknown): unknown {
    const aborted = this.timer.findAbortReason();
    if (aborted !== undefined) return aborted.reason;
    if (thrown instanceof AppError) return thrown;
    const { kind, reason } = explainConnectError(thrown);
    const hint = kind === "refused" ? ". Is the server running?" : "";
    return new UpstreamError(kind, `Can't reach ${this.server}: ${reason}${hint}`);
  }

  /** Replaces the target's key with `[key]` in text from the server. */
  mask(text: string): string {
    return maskKey(text, this.target.apiKey);
  }
}

/** Client for the owner's servers. */
export interface HttpClient {
  /**
   * Sends one request of a call. Returns the response, whatever its status. The caller manages the call's timer and
   * ends it.
   *
   * @throws {AppError} `invalid_request`, `address_not_allowed`, `upstream_error`, `upstream_timeout`
   * @throws The caller's abort reason.
   */
  send(call: HttpCall, request: HttpRequest): Promise<Response>;
  /**
   * Makes a call of one request. Returns the response, whatever its status. Its body must be read or canceled;
   * otherwise it fails after the idle limit. Reading it throws the same errors as `send`.
   *
   * @param label Kind of server, for errors: `"the speech server"`.
   * @throws Like `send`
   */
  fetch(label: string, target: HttpTarget, request: HttpRequest, signal?: AbortSignal): Promise<Response>;
  /**
   * Creates a web socket, which may not be open yet.
   *
   * @param url With `http:` or `https:`
   * @param timeoutMs For choosing one of the host's addresses.
   * @returns `undefined` if the host can't be resolved.
   * @throws {AppError} `invalid_request`, `address_not_allowed`
   */
  createWebSocket(url: string, headers: Record<string, string>, timeoutMs: number): Promise<WebSocket | undefined>;
  /** Closes all connections. Calls that are still running fail. */
  close(): void;
}

/** Options of the client. */
export type HttpClientOptions = OwnerConnectionsOptions;

/** The runtime's constructor, whose options the DOM's types lack. @see https://docs.deno.com/api/web/~/WebSocketOptions */
type WebSocketWithHeaders = new (
  url: string,
  options: { headers: Record<string, string>; client: Deno.HttpClient },
) => WebSocket;

const MAX_REDIRECTS = 3;
/** Names the phase in the runtime's errors. Nothing of the request has been sent then. */
const CONNECT_ERROR = /client error \(Connect\)/;
/** The runtime's error if the proxy couldn't connect. */
const TUNNEL_ERROR = /unsuccessful tunnel/;

/** Opens a client. It connects with the first request. */
export function openHttpClient(options: HttpClientOptions = {}): HttpClient {
  const running = new Set<HttpCall>();
  const connections = new OwnerConnections(options);

  async function send(call: HttpCall, request: HttpRequest): Promise<Response> {
    const { method = "GET" } = request;
    try {
      let url = parseOwnerUrl(request.url);
      for (let redirects = 0;; redirects++) {
        const response = await sendHop(call, url, request);
        const next = request.redirect === "manual" ? undefined : findRedirectTarget(call, method, url, response);
        if (next === undefined) return response;
        await response.body?.cancel();
        if (redirects === MAX_REDIRECTS) throw createRedirectError(call, "too many times");
        url = next;
      }
    } catch (thrown) {
      throw call.toError(thrown);
    }
  }

  async function sendHop(call: HttpCall, url: URL, request: HttpRequest): Promise<Response> {
    const { method = "GET", headers, body } = request;
    const { timer: { signal }, target: { timeouts } } = call;
    for (;;) {
      const route = await raceAbort(connections.route(url, timeouts.connectMs, signal), signal);
      if (route === undefined) {
        throw new UpstreamError("unresolved", `Can't reach ${call.server}: unknown host name`);
      }
      const connecting = watchConnecting(call, route);
      try {
        return await fetch(route.url, {
          client: route.client,
          method,
          headers: { ...headers, ...route.headers },
          body,
          redirect: "manual",
          signal,
        });
      } catch (thrown) {
        const text = thrown instanceof Error ? `${thrown.message} ${getErrorMessage(thrown.cause)}` : "";
        const reason = route.fail();
        if (TUNNEL_ERROR.test(text)) throw reason ?? new Error("timed out");
        const canRepeat = route.isRemembered && CONNECT_ERROR.test(text) && !(body instanceof ReadableStream);
        if (!canRepeat) throw thrown;
      } finally {
        connecting.stop();
      }
    }
  }

  return {
    send,

    async fetch(label, target, request, signal) {
      const call = new HttpCall(label, target, signal);
      running.add(call);
      try {
        return withTimeouts(call, await send(call, request), () => running.delete(call));
      } catch (thrown) {
        call.timer.end();
        running.delete(call);
        throw thrown;
      }
    },

    async createWebSocket(url, headers, timeoutMs) {
      const route = await connections.route(parseOwnerUrl(url), timeoutMs, AbortSignal.timeout(timeoutMs));
      if (route === undefined) return undefined;
      return new (WebSocket as unknown as WebSocketWithHeaders)(route.url.href.replace(/^http/, "ws"), {
        headers: { ...headers, ...route.headers },
        client: route.client,
      });
    },

    close() {
      for (const call of running) {
        call.timer.fail(new AppError("not_available", `Can't reach ${call.server}: Parlor is shutting down`));
      }
      connections.close();
    },
  };
}

/** Wraps a response so that reading its body is subject to the call's timeouts and throws its errors. */
function withTimeouts(call: HttpCall, response: Response, onEnd: () => void): Response {
  const { timer } = call;
  const reader = response.body?.getReader();
  const { status, statusText, headers } = response;
  const end = () => (timer.end(), onEnd());
  // Time of a slow reader counts, too: a browser that stops reading must not block a server that handles one call at a
  // time.
  const startWaiting = () => (timer.markActive(), timer.startReading());
  startWaiting();
  if (reader === undefined) {
    end();
    return new Response(null, { status, statusText, headers });
  }
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) {
          startWaiting();
          return controller.enqueue(value);
        }
        timer.release();
        onEnd();
        controller.close();
      } catch (thrown) {
        controller.error(call.toError(thrown));
        end();
      }
    },
    async cancel(reason) {
      await reader.cancel(reason).catch(() => {});
      end();
    },
  }, { highWaterMark: 0 });
  return new Response(body, { status, statusText, headers });
}

/** Returns the target of a redirect. A redirect to another origin is an error, with or without a key. */
function findRedirectTarget(call: HttpCall, method: string, from: URL, response: Response): URL | undefined {
  if (![301, 302, 303, 307, 308].includes(response.status)) return undefined;
  const location = response.headers.get("location") ?? "";
  if (location === "" || !URL.canParse(location, from)) throw createRedirectError(call, "without a valid location");
  const to = new URL(location, from);
  const keepsMethod = response.status === 307 || response.status === 308 || method === "GET";
  if (to.origin === from.origin && keepsMethod) return to;
  throw createRedirectError(call, `to "${to.origin === "null" ? to.protocol : call.mask(to.origin + to.pathname)}"`);
}

function createRedirectError(call: HttpCall, where: string): UpstreamError {
  const server = call.server[0]!.toUpperCase() + call.server.slice(1);
  return new UpstreamError("redirect", `${server} redirects ${where}. Enter the final address instead`);
}

/**
 * Fails a call whose server doesn't accept a connection within `connectMs`.
 *
 * `fetch` doesn't report when it has connected. When half of the limit has passed without a response, a bare TCP connection
 * tries the same address: a server that is still thinking accepts it at once, a machine that is off does not.
 */
function watchConnecting(call: HttpCall, { addresses, port }: Route): { stop(): void } {
  const { connectMs } = call.target.timeouts;
  let sockets: ReturnType<typeof connect>[] = [];
  let isOver = false;
  const stop = () => {
    isOver = true;
    clearTimeout(timer);
    sockets.forEach((socket) => socket.destroy());
  };
  let timer = setTimeout(() => {
    let refusals = 0;
    sockets = addresses.map((host) => connect({ host, port }));
    for (const socket of sockets) {
      socket.once("connect", stop);
      // `fetch` reports refused connections itself.
      socket.once("error", () => ++refusals === sockets.length && stop());
    }
    timer = setTimeout(async () => {
      // After a pause of this process, the limit is over before the runtime has looked at the sockets.
      await yieldToEventLoop();
      if (isOver) return;
      stop();
      const limit = formatDuration(connectMs);
      const message = `Can't reach ${call.server}: no response after ${limit}. Is the server running?`;
      call.timer.fail(new UpstreamError("unreachable", message));
    }, connectMs / 2);
  }, connectMs / 2);
  return { stop };
}

/** The response to one probe. */
export interface ProbeResponse {
  status: number;
  headers: Headers;
  text: string;
  /** The parsed body; `undefined` if it isn't JSON. */
  json: unknown;
}

/** Requests one path of a server. Returns `undefined` if there is no response in time. */
export type Probe = (path: string) => Promise<ProbeResponse | undefined>;

/** What to probe. */
export interface ProbeOptions<Port> {
  /** From the configuration, never from a request: otherwise any client could use Parlor as a port scanner. */
  hosts: readonly string[];
  /** Ports to probe on hosts without a port of their own, such as `192.168.1.20:9000`. */
  ports: readonly (Port & { port: number })[];
  /** How to probe a port that isn't among `ports`. */
  otherPort: Port;
  /** Time limit per request. */
  deadlineMs?: number;
  resolve?: ResolveHost;
  ownListeners?: OwnListeners;
}

const DEADLINE_MS = 700;
const MAX_BODY_BYTES = 256 * 1024;

/**
 * Probes all hosts and ports at once.
 *
 * Hosts that aren't allowed (link-local, cloud metadata) or can't be resolved are skipped.
 *
 * @param detect Identifies the server by its responses. Returns `undefined` if it's of no interest.
 * @returns The detected servers, in the order of hosts and ports.
 */
export async function probeAll<Port, Found>(
  options: ProbeOptions<Port>,
  detect: (origin: string, port: Port, probe: Probe) => Promise<Found | undefined>,
): Promise<Found[]> {
  const { hosts, ports, otherPort, deadlineMs = DEADLINE_MS, resolve, ownListeners } = options;
  const client = openHttpClient({ resolve, ownListeners, keepsConnections: false });
  try {
    const probes = hosts.flatMap((item) => {
      const { host, port: only } = parseHostAndPort(item);
      const probed = only === undefined
        ? ports
        : [ports.find(({ port }) => port === only) ?? { ...otherPort, port: only }];
      return probed.map(async (port) => {
        const origin = findOrigin(host, port.port);
        if (origin === undefined) return undefined;
        return await detect(origin, port, (path) => probe(client, origin, path, deadlineMs));
      });
    });
    return (await Promise.all(probes)).filter((found) => found !== undefined);
  } finally {
    client.close();
  }
}

/**
 * Probes one address that the owner entered, which may have the path of a reverse proxy.
 *
 * @param baseUrl From `normalizeBaseUrl`.
 */
export async function probeAddress<Found>(
  { baseUrl, deadlineMs, ...policy }: {
    baseUrl: string;
    deadlineMs: number;
    resolve?: ResolveHost;
    ownListeners?: OwnListeners;
  },
  detect: (probe: Probe) => Promise<Found>,
): Promise<Found> {
  const client = openHttpClient({ ...policy, keepsConnections: false });
  try {
    return await detect((path) => probe(client, baseUrl, path, deadlineMs));
  } finally {
    client.close();
  }
}

/** Splits `"192.168.1.20:9000"` and `"[::1]:9000"`. An IPv6 address without brackets has no port. */
function parseHostAndPort(item: string): { host: string; port?: number } {
  const [, host, port] = /^(\[.*\]|[^:]*):(\d{1,5})$/.exec(item) ?? [];
  return host === undefined ? { host: item } : { host, port: Number(port) };
}

/** Returns the origin for a host, or `undefined` if the host is invalid or not allowed. */
function findOrigin(host: string, port: number): string | undefined {
  try {
    return parseOwnerUrl(`http://${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}`).origin;
  } catch {
    return undefined;
  }
}

async function probe(
  client: HttpClient,
  baseUrl: string,
  path: string,
  deadlineMs: number,
): Promise<ProbeResponse | undefined> {
  // The signal is the limit. The client's own limits are longer: its check for a missing machine would open a second connection.
  const limitMs = 10 * deadlineMs;
  const target = { baseUrl, timeouts: { connectMs: limitMs, firstByteMs: limitMs, idleMs: limitMs } };
  const request = { url: baseUrl + path, headers: { accept: "application/json" }, redirect: "manual" } as const;
  try {
    const response = await client.fetch("the server", target, request, AbortSignal.timeout(deadlineMs));
    const { status, headers } = response;
    const text = await readText(response, MAX_BODY_BYTES);
    return { status, headers, text, json: parseJson(text) };
  } catch {
    return undefined;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
