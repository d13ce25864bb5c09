/**
 * `fetch` for a tool server and its authorization server: through Parlor's HTTP clients, with size limits. The owner's
 * headers and the access token are only sent to the origin of the tool server.
 */
import { AppError } from "../errors.ts";
import {
  isAddress,
  isPublicAddress,
  type ResolveHost,
  resolveWithSystem,
  toTarget,
} from "../http/guard/target_policy.ts";
import type { Guard } from "../http/guard/guarded_fetch.ts";
import { HttpCall, type HttpClient } from "../http/http_client.ts";
import { readText } from "../http/read_body.ts";
import { formatMebibytes } from "./mcp_result.ts";

/** HTTP clients for the requests. */
export interface ServerFetchDeps {
  client: HttpClient;
  openGuard(): Promise<Guard>;
  /** Default: the system's resolver. */
  resolve?: ResolveHost;
}

/** One server. */
export interface FetchTarget {
  /** Name of the server, for errors. */
  name: string;
  url: URL;
  /** Added to requests to the server's origin. */
  headers: Record<string, string>;
  /** Maximum size of a message: a JSON body, or one event of a stream. */
  maxMessageBytes: number;
  /** Called when a body exceeds the limit. */
  onTooLarge(error: AppError): void;
}

/** A subset of `fetch`. */
export type ServerFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** Longer than any call: callers have their own limits. */
const RESPONSE_MS = 15 * 60_000;
const CONNECT_MS = 10_000;
/** An event stream without requests can be silent for hours. */
const SILENCE_MS = 2 ** 31 - 1;
/** Time limit of requests to an authorization server. */
const SIGN_IN_MS = 30_000;
const MAX_SIGN_IN_BYTES = 1024 * 1024;
/** Time limit for the body of an error. */
const ERROR_MS = 10_000;
const MAX_ERROR_BYTES = 64 * 1024;

/** Creates the `fetch` of one server. */
export function createServerFetch(deps: ServerFetchDeps, target: FetchTarget): ServerFetch {
  return async (input, init = {}) => {
    const url = new URL(input);
    if (url.origin === target.url.origin) return await fetchOwn(deps.client, target, url, init, target.headers);
    // A server on the owner's network may use an authorization server there. A public server must not lead into that
    // network.
    if (await isOnOwnNetwork(target.url, deps.resolve)) return await fetchOwn(deps.client, target, url, init, {});
    const guard = await deps.openGuard();
    const { method, headers, body, signal } = init;
    return await guard.fetch(url, {
      method,
      headers,
      body,
      signal,
      redirect: "manual",
      timeoutMs: SIGN_IN_MS,
      maxBytes: MAX_SIGN_IN_BYTES,
    });
  };
}

async function fetchOwn(
  client: HttpClient,
  target: FetchTarget,
  url: URL,
  { method, headers, body, signal }: RequestInit,
  ownHeaders: Record<string, string>,
): Promise<Response> {
  const timeouts = { connectMs: CONNECT_MS, firstByteMs: RESPONSE_MS, idleMs: SILENCE_MS };
  const call = new HttpCall(`the tool server "${target.name}"`, { baseUrl: url.origin, timeouts }, signal ?? undefined);
  let response: Response;
  try {
    response = await client.send(call, {
      url: url.href,
      method: (method ?? "GET") as "GET",
      headers: { ...Object.fromEntries(new Headers(headers)), ...ownHeaders },
      body: body ?? undefined,
    });
  } catch (error) {
    call.timer.end();
    throw error;
  }
  call.timer.markActive();
  const { status, statusText } = response;
  if (response.body === null) {
    call.timer.release();
    return new Response(null, { status, statusText, headers: response.headers });
  }
  if (!response.ok) return await readError(response, call);
  const isEvents = /^\s*text\/event-stream\s*(;|$)/i.test(response.headers.get("content-type") ?? "");
  return new Response(limitBody(response.body, call, target, isEvents), {
    status,
    statusText,
    headers: response.headers,
  });
}

/** Reads an error immediately: the SDK doesn't read some of them, which would leave their connections open. */
async function readError(response: Response, call: HttpCall): Promise<Response> {
  const { status, statusText, headers } = response;
  const limit = setTimeout(() => call.timer.end(), ERROR_MS);
  try {
    const text = await readText(response, MAX_ERROR_BYTES).catch(() => "");
    return new Response(text, { status, statusText, headers });
  } finally {
    clearTimeout(limit);
    call.timer.end();
  }
}

/** Passes a body on until it exceeds the limit. In an event stream, the limit applies to each event. */
function limitBody(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  call: HttpCall,
  target: FetchTarget,
  isEvents: boolean,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const { maxMessageBytes, name } = target;
  const reader = body.getReader();
  let sizeBytes = 0;
  /** The two bytes before the chunk. */
  let before: [number, number] = [0, 0];
  return new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          call.timer.release();
          controller.close();
          return;
        }
        const end = isEvents ? findLastEventEnd(value, before) : -1;
        before = [value.at(-2) ?? before[1], value.at(-1) ?? before[1]];
        sizeBytes = end === -1 ? sizeBytes + value.length : value.length - end;
        if (sizeBytes <= maxMessageBytes) return controller.enqueue(value);
        const limit = formatMebibytes(maxMessageBytes);
        const error = new AppError("upstream_error", `The tool server "${name}" sent a message of more than ${limit}`);
        await reader.cancel(error).catch(() => {});
        call.timer.end();
        target.onTooLarge(error);
        controller.error(error);
      } catch (thrown) {
        const error = call.toError(thrown);
        call.timer.end();
        controller.error(error);
      }
    },
    async cancel(reason) {
      await reader.cancel(reason).catch(() => {});
      call.timer.end();
    },
  }, { highWaterMark: 0 });
}

/**
 * Finds the end of the last complete event in a chunk: after an empty line, which is two line ends in a row. CR LF is
 * one line end.
 *
 * @returns -1 if no event ends in the chunk.
 */
function findLastEventEnd(chunk: Uint8Array, before: [number, number]): number {
  const CR = 13, LF = 10;
  const isAt = (index: number) => index < 0 ? before[index + 2] ?? 0 : chunk[index]!;
  for (let index = chunk.length - 1; index >= 0; index--) {
    const byte = isAt(index);
    if (byte !== LF && byte !== CR) continue;
    const previous = isAt(index - 1);
    if ((byte === LF && previous === LF) || (byte === CR && (previous === CR || previous === LF))) return index + 1;
    if (byte === LF && previous === CR && (isAt(index - 2) === LF || isAt(index - 2) === CR)) return index + 1;
  }
  return -1;
}

/** Returns whether a server has an address that isn't public. A name that can't be resolved counts as public. */
async function isOnOwnNetwork(url: URL, resolve: ResolveHost = resolveWithSystem): Promise<boolean> {
  const { host } = toTarget(url);
  const addresses = isAddress(host) ? [host] : await resolve(host).catch(() => []);
  return addresses.some((address) => !isPublicAddress(address));
}
