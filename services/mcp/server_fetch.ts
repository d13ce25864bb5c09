/**
 * `fetch` for a tool server and its authorization server: through Parlor's HTTP clients, with size limits. The owner's
 * headers and the access token are only sent to the origin of the tool server. Other origins, which the server names, are
 * fetched through the guard unless the owner allowed them.
 */
import { AppError } from "../errors.ts";
import { isAddress, isPublicAddress, resolveWithSystem, toTarget } from "../http/guard/target_policy.ts";
import type { Guard } from "../http/guard/guarded_fetch.ts";
import { HttpCall, type HttpClient } from "../http/http_client.ts";
import { readText } from "../http/read_body.ts";
import { formatMebibytes } from "./mcp_result.ts";

/** HTTP clients for the requests. */
export interface ServerFetchDeps {
  client: HttpClient;
  openGuard(): Promise<Guard>;
}

/** One server. */
export interface FetchTarget {
  /** Name of the server, for errors. */
  name: string;
  url: URL;
  /** Added to requests to the server's origin. */
  headers: Record<string, string>;
  /** Other origins that the owner allowed. They may be in a private network. */
  trustedOrigins: readonly string[];
  /** Maximum size of a message: a JSON body, or one event of a stream. */
  maxMessageBytes: number;
  /** Called when a body exceeds the limit. */
  onTooLarge(error: AppError): void;
}

/** A subset of `fetch`. */
export type ServerFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** `fetch` for the sign-in at one server. */
export interface SignInFetch {
  fetch: ServerFetch;
  /**
   * Checks an address of the server for the owner's browser.
   *
   * @throws {AppError} `upstream_error` if it may not be used
   */
  checkPage(url: URL): Promise<void>;
}

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
    // Whatever the server's own name resolves to: a public one could resolve to a private address, too.
    if (target.trustedOrigins.includes(url.origin)) return await fetchOwn(deps.client, target, url, init, {});
    const { method, headers, body, signal } = init;
    try {
      const guard = await deps.openGuard();
      return await guard.fetch(url, {
        method,
        headers,
        body,
        signal,
        redirect: "manual",
        timeoutMs: SIGN_IN_MS,
        maxBytes: MAX_SIGN_IN_BYTES,
      });
    } catch (error) {
      const isRefusal = error instanceof AppError &&
        (error.code === "address_not_allowed" || error.code === "upstream_error");
      throw isRefusal ? createOriginError(target, url, error) : error;
    }
  };
}

/** Creates the check of pages that the server names. See `SignInFetch`. */
export function createPageCheck(
  deps: ServerFetchDeps,
  target: Pick<FetchTarget, "name" | "url" | "trustedOrigins">,
): SignInFetch["checkPage"] {
  return async (url) => {
    if (url.origin === target.url.origin || target.trustedOrigins.includes(url.origin)) return;
    try {
      (await deps.openGuard()).check(url);
    } catch (error) {
      throw createOriginError(target, url, error);
    }
    const { host } = toTarget(url);
    const addresses = isAddress(host) ? [] : await resolveWithSystem(host).catch(() => []);
    if (!addresses.every(isPublicAddress)) throw createOriginError(target, url);
  };
}

function createOriginError({ name }: Pick<FetchTarget, "name">, { origin, protocol }: URL, cause?: unknown): AppError {
  const where = origin === "null" ? protocol : origin;
  return new AppError(
    "upstream_error",
    `The tool server "${name}" leads to "${where}", which isn't allowed or doesn't answer. ` +
      "If it's a server of yours, add it to the tool server's other addresses",
    { cause },
  );
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
