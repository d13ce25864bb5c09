/** A raw HTTP/1.1 server for fakes. Handlers control each byte, framing, disconnects and resets. */
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

/** A request and its outcome. */
export interface RecordedRequest {
  method: string;
  /** Path with its query. */
  path: string;
  headers: Headers;
  body: string;
  /** The parsed body; `undefined` if it isn't JSON. */
  json: Record<string, unknown> | undefined;
  /** True if the client disconnected before the response was complete. */
  closedEarly: boolean;
  /** Resolves when the response is complete or the connection is closed. */
  over: Promise<void>;
}

/** Framing of the body: Content-Length, chunked, or closing the connection (HTTP/1.0). */
export type Framing = "length" | "chunked" | "close";

/** The response to a request. */
export class FakeAnswer {
  readonly #socket: Socket;
  readonly #done: () => void;
  readonly #onClose: () => void;
  #framing: Framing = "length";
  /** Fires when the client has disconnected or the response was cut. */
  readonly gone: Promise<void>;
  isGone = false;
  isOver = false;
  /** Gets the body, also when the client has left. */
  keeper: { push(bytes: Uint8Array): void; end(): void; readonly isDropped: boolean } | undefined;

  constructor(socket: Socket, done: () => void) {
    this.#socket = socket;
    this.#done = done;
    let resolveGone = () => {};
    this.gone = new Promise((resolve) => (resolveGone = resolve));
    this.#onClose = () => {
      this.isGone = true;
      resolveGone();
    };
    socket.once("close", this.#onClose);
  }

  /** Sends a complete response. */
  async send(status: number, type: string, body: string, headers: Record<string, string> = {}): Promise<void> {
    const bytes = new TextEncoder().encode(body);
    await this.head(status, { "content-type": type, "content-length": String(bytes.length), ...headers }, "length");
    await this.write(bytes);
    await this.end();
  }

  /** Sends a complete JSON response. */
  async json(status: number, value: unknown, headers: Record<string, string> = {}): Promise<void> {
    await this.send(status, "application/json", JSON.stringify(value), headers);
  }

  /** Sends the status line and the headers. */
  async head(status: number, headers: Record<string, string>, framing: Framing): Promise<void> {
    this.#framing = framing;
    const lines = Object.entries(headers).filter(([, value]) => value !== "").map(([name, value]) =>
      `${name}: ${value}`
    );
    if (framing === "chunked") lines.push("transfer-encoding: chunked");
    if (framing === "close") lines.push("connection: close");
    await this.#put(new TextEncoder().encode(`HTTP/1.1 ${status} Status\r\n${lines.join("\r\n")}\r\n\r\n`));
  }

  /** Sends bytes of the body. Resolves when they have been written to the socket. */
  async write(body: Uint8Array | string): Promise<void> {
    const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
    if (bytes.length === 0) return;
    this.keeper?.push(bytes);
    if (this.#framing !== "chunked") return await this.#put(bytes);
    const size = new TextEncoder().encode(`${bytes.length.toString(16)}\r\n`);
    const framed = new Uint8Array(size.length + bytes.length + 2);
    framed.set(size);
    framed.set(bytes, size.length);
    framed.set([13, 10], size.length + bytes.length);
    await this.#put(framed);
  }

  /** Ends the response according to its framing. */
  async end(): Promise<void> {
    this.keeper?.end();
    if (this.#framing === "chunked") await this.#put(new TextEncoder().encode("0\r\n\r\n"));
    this.isOver = true;
    this.#socket.off("close", this.#onClose);
    if (this.#framing === "close") this.#socket.end();
    this.#done();
  }

  /** Closes the connection in the middle of the response. */
  cut(): void {
    this.isOver = true;
    this.#socket.end();
    this.#done();
  }

  /** Resets the connection (RST) in the middle of the response. */
  reset(): void {
    this.isOver = true;
    this.#socket.resetAndDestroy();
    this.#done();
  }

  /** Waits for the system to take the bytes; the write's own callback comes before that and would starve the event loop. */
  async #put(bytes: Uint8Array): Promise<void> {
    if (this.isGone) return;
    if (this.#socket.write(bytes)) return await new Promise((resolve) => setImmediate(resolve));
    await new Promise<void>((resolve) => {
      const done = () => {
        this.#socket.off("drain", done);
        this.#socket.off("close", done);
        resolve();
      };
      this.#socket.once("drain", done);
      this.#socket.once("close", done);
    });
  }
}

/** Handles one request. */
export type FakeHandler = (request: RecordedRequest, answer: FakeAnswer) => Promise<void> | void;

/** A running server. */
export interface FakeHttp {
  port: number;
  /** All requests so far, in order. */
  requests: RecordedRequest[];
  /** Accepted connections so far. */
  connectionCount(): number;
  close(): Promise<void>;
}

/** Starts the server on a free port of 127.0.0.1 (or `host`), or on the port given. */
export async function openFakeHttp(handler: FakeHandler, host = "127.0.0.1", port = 0): Promise<FakeHttp> {
  const requests: RecordedRequest[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  let isClosing = false;
  const server: Server = createServer((socket) => {
    // Accepted just before the listener was closed, which then waits for it.
    if (isClosing) return void socket.destroy();
    connections++;
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    serveSocket(socket, handler, requests);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => resolve());
  });
  return {
    port: (server.address() as AddressInfo).port,
    requests,
    connectionCount: () => connections,
    close: async () => {
      isClosing = true;
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Reads one request after another; a body of unknown length (chunked) is kept with its framing, which fakes refuse. */
function serveSocket(socket: Socket, handler: FakeHandler, requests: RecordedRequest[]): void {
  let buffer = new Uint8Array();
  let isBusy = false;

  const next = () => {
    if (isBusy) return;
    const parsed = parseRequest(buffer);
    if (parsed === undefined) return;
    buffer = buffer.subarray(parsed.size);
    isBusy = true;
    let done = () => {};
    const over = new Promise<void>((resolve) => (done = resolve));
    const request: RecordedRequest = { ...parsed.request, closedEarly: false, over };
    requests.push(request);
    const answer = new FakeAnswer(socket, () => {
      done();
      isBusy = false;
      queueMicrotask(next);
    });
    answer.gone.then(() => {
      if (!answer.isOver) request.closedEarly = true;
      done();
    });
    Promise.resolve(handler(request, answer)).catch((error) => {
      console.error("A double failed while it answered:", error);
      answer.cut();
    });
  };

  socket.on("data", (bytes: Uint8Array) => {
    const joined = new Uint8Array(buffer.length + bytes.length);
    joined.set(buffer);
    joined.set(bytes, buffer.length);
    buffer = joined;
    next();
  });
}

type ParsedRequest = Omit<RecordedRequest, "closedEarly" | "over">;

function parseRequest(buffer: Uint8Array): { request: ParsedRequest; size: number } | undefined {
  const text = new TextDecoder("latin1").decode(buffer);
  const headEnd = text.indexOf("\r\n\r\n");
  if (headEnd === -1) return undefined;
  const [requestLine = "", ...lines] = text.slice(0, headEnd).split("\r\n");
  const [method = "", path = ""] = requestLine.split(" ");
  const headers = new Headers(lines.map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  }));
  const length = Number(headers.get("content-length") ?? 0);
  const size = headEnd + 4 + length;
  if (buffer.length < size) return undefined;
  const body = new TextDecoder().decode(buffer.subarray(headEnd + 4, size));
  let json: Record<string, unknown> | undefined;
  try {
    json = JSON.parse(body);
  } catch {
    json = undefined;
  }
  return { request: { method, path, headers, body, json }, size };
}
