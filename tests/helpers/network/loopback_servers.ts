/** Misbehaving servers on loopback addresses: any bytes at any speed. */
import { readToEnd } from "./raw_http.ts";

/** A listener that records everything and never responds, to prove that nothing was sent. */
export interface SilentListener extends AsyncDisposable {
  readonly port: number;
  readonly connections: number;
  /** All bytes received so far, one character each. */
  readonly received: string;
  /** Resolves once anything was received. */
  readonly firstBytes: Promise<void>;
}

/** Opens a listener that reads and never answers. */
export function openSilentListener(hostname = "127.0.0.1", port = 0): SilentListener {
  const { promise: firstBytes, resolve } = Promise.withResolvers<void>();
  const seen = { connections: 0, received: "" };
  const server = openStreamServer(async (conn) => {
    seen.connections++;
    const buffer = new Uint8Array(4096);
    for (let count = await conn.read(buffer); count !== null; count = await conn.read(buffer)) {
      seen.received += String.fromCharCode(...buffer.subarray(0, count));
      resolve();
    }
  }, { hostname, port });
  return {
    port: server.port,
    get connections() {
      return seen.connections;
    },
    get received() {
      return seen.received;
    },
    firstBytes,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

export interface StreamServer extends AsyncDisposable {
  readonly port: number;
  /** Heads of the requests served, in order; empty for `openStreamServer`. */
  readonly requests: string[];
}

export interface ListenOptions {
  hostname?: string;
  port?: number;
  /** PEM texts: serve TLS. */
  tls?: { cert: string; key: string };
}

/** Opens a server that hands every connection to `serve` and closes it afterwards, whatever became of it. */
export function openStreamServer(serve: (conn: Deno.Conn) => Promise<void>, options: ListenOptions = {}): StreamServer {
  const { hostname = "127.0.0.1", port = 0, tls } = options;
  const listener = tls === undefined ? Deno.listen({ hostname, port }) : Deno.listenTls({ hostname, port, ...tls });
  const open = new Set<Deno.Conn>();
  const closeQuietly = (conn: Deno.Conn) => {
    if (open.delete(conn)) conn.close();
  };
  let isOpen = true;
  const accepting = (async () => {
    while (isOpen) {
      const conn = await listener.accept().catch(() => undefined); // The client reports a failed handshake.
      if (conn === undefined) continue;
      if (!isOpen) return conn.close(); // Accepted just before the listener was closed.
      open.add(conn);
      serve(conn).catch(() => {}).finally(() => closeQuietly(conn));
    }
  })();
  return {
    port: (listener.addr as Deno.NetAddr).port,
    requests: [],
    async [Symbol.asyncDispose]() {
      isOpen = false;
      listener.close();
      open.forEach(closeQuietly);
      await accepting;
    },
  };
}

/** Opens a server that reads one request head and lets `reply` write the response, byte by byte. */
export function openHttpServer(
  reply: (conn: Deno.Conn, head: string) => Promise<unknown>,
  options: ListenOptions = {},
): StreamServer {
  const requests: string[] = [];
  const server = openStreamServer(async (conn) => {
    const head = await readRequestHead(conn);
    requests.push(head);
    await reply(conn, head);
    await conn.closeWrite().catch(() => {}); // the TLS of Deno 2.6 has closed already
    await readToEnd(conn); // closing on unread bytes would reset what is under way
  }, options);
  return { port: server.port, requests, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

/** Writes all of a text or of bytes. */
export async function send(conn: Deno.Conn, content: string | Uint8Array): Promise<void> {
  let bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  while (bytes.length > 0) bytes = bytes.subarray(await conn.write(bytes));
}

/** A short complete response. */
export function sendText(conn: Deno.Conn, body: string): Promise<void> {
  return send(conn, `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
}

async function readRequestHead(conn: Deno.Conn): Promise<string> {
  const buffer = new Uint8Array(16 * 1024);
  let text = "";
  while (!text.includes("\r\n\r\n")) {
    const count = await conn.read(buffer);
    if (count === null) throw new Error("The client ended before its request head");
    text += String.fromCharCode(...buffer.subarray(0, count));
  }
  return text;
}
