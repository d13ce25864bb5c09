/**
 * MCP over HTTP: the SDK's transport, extended so that each request gets a response even if its stream breaks.
 *
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http
 */
import { delay } from "../async/delay.ts";
import type { AppError } from "../errors.ts";
import { createFaultResponse } from "./mcp_result.ts";
import { StreamableHTTPClientTransport } from "./sdk.ts";
import type { JSONRPCMessage, RequestId, Transport } from "./sdk.ts";
import type { ServerFetch } from "./server_fetch.ts";

/** Time limit for ending a session. */
const SESSION_END_MS = 1_000;
/** Delay until the messages in the last bytes of a stream are passed on. */
const LAST_MESSAGE_MS = 50;

/** Receivers of the messages. */
export interface HttpTransportOptions {
  url: URL;
  fetch: ServerFetch;
}

/** The transport. */
export class HttpTransport implements Transport {
  onmessage?: Transport["onmessage"];
  onclose?: () => void;
  onerror?: (error: Error) => void;
  /** Why the transport closed without a call of `close`. */
  failure: AppError | undefined;
  readonly #inner: StreamableHTTPClientTransport;
  /** Requests without a response. */
  readonly #pending = new Set<RequestId>();

  constructor({ url, fetch: fetchServer }: HttpTransportOptions) {
    this.#inner = new StreamableHTTPClientTransport(url, {
      fetch: async (input, init) => {
        const response = await fetchServer(input, init);
        const ids = readRequestIds(init?.body);
        return ids.length === 0 ? response : this.#watch(response, ids);
      },
      reconnectionOptions: {
        initialReconnectionDelay: 1_000,
        maxReconnectionDelay: 30_000,
        reconnectionDelayGrowFactor: 1.5,
        maxRetries: 5,
      },
    });
    this.#inner.onmessage = (message) => {
      if (!("method" in message) && message.id !== undefined) this.#pending.delete(message.id);
      this.onmessage?.(message);
    };
    this.#inner.onclose = () => this.onclose?.();
    this.#inner.onerror = (error) => this.onerror?.(error);
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  async send(message: JSONRPCMessage, options?: Parameters<StreamableHTTPClientTransport["send"]>[1]): Promise<void> {
    const id = "method" in message && "id" in message ? message.id : undefined;
    if (id !== undefined) this.#pending.add(id);
    try {
      await this.#inner.send(message, options);
    } catch (error) {
      if (id !== undefined) this.#pending.delete(id);
      throw this.failure ?? error;
    }
  }

  /** Closes the connection, because the server broke a limit. Pending requests fail. */
  fail(failure: AppError): void {
    this.failure ??= failure;
    void this.#inner.close();
  }

  /** Ends the session, if there is one, and closes the connection. */
  async close(): Promise<void> {
    if (this.failure === undefined && this.sessionId !== undefined) {
      await delay(SESSION_END_MS, undefined, this.#inner.terminateSession());
    }
    await this.#inner.close();
  }

  /**
   * Passes an event stream on. Fails its requests if it ends without their responses and can't be resumed, because no
   * event had an ID.
   */
  #watch(response: Response, ids: RequestId[]): Response {
    if (!response.ok || response.body === null || !isEventStream(response)) return response;
    const reader = response.body.getReader();
    const idLine = new LineStartFinder("id:");
    const onEnd = () => {
      if (!idLine.isFound) setTimeout(() => this.#failPending(ids), LAST_MESSAGE_MS);
    };
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (done) {
            onEnd();
            return controller.close();
          }
          idLine.read(value as Uint8Array<ArrayBuffer>);
          controller.enqueue(value as Uint8Array<ArrayBuffer>);
        } catch (error) {
          onEnd();
          controller.error(error);
        }
      },
      cancel: (reason) => reader.cancel(reason),
    }, { highWaterMark: 0 });
    const { status, statusText, headers } = response;
    return new Response(body, { status, statusText, headers });
  }

  #failPending(ids: RequestId[]): void {
    for (const id of ids) {
      if (!this.#pending.delete(id)) continue;
      this.onmessage?.(createFaultResponse(id, "it closed the connection before the result was complete"));
    }
  }
}

function isEventStream(response: Response): boolean {
  return /^\s*text\/event-stream\s*(;|$)/i.test(response.headers.get("content-type") ?? "");
}

function readRequestIds(body: BodyInit | null | undefined): RequestId[] {
  if (typeof body !== "string" || !body.startsWith("{")) return [];
  const { id, method } = JSON.parse(body) as { id?: RequestId; method?: string };
  return id === undefined || method === undefined ? [] : [id];
}

/** Finds text at the start of a line, even across chunks. */
class LineStartFinder {
  isFound = false;
  readonly #prefix: Uint8Array;
  /** Number of bytes of the current line that match so far; -1 if the line doesn't match. */
  #matched = 0;

  constructor(text: string) {
    this.#prefix = new TextEncoder().encode(text);
  }

  read(chunk: Uint8Array): void {
    for (const byte of chunk) {
      if (this.isFound) return;
      if (byte === 10 || byte === 13) this.#matched = 0;
      else if (this.#matched !== -1) {
        this.#matched = byte === this.#prefix[this.#matched] ? this.#matched + 1 : -1;
        this.isFound = this.#matched === this.#prefix.length;
      }
    }
  }
}
