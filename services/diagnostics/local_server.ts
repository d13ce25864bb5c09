/** Finds the server of a configuration on this machine, and connects to it without DNS. */
import { X509Certificate } from "node:crypto";

/** The configuration values that say where the server is. */
export interface ListenConfig {
  /** Address it listens on. */
  host: string;
  port: number;
  /** PEM file; `null` for plain HTTP. */
  tlsCert: string | null;
  allowedHosts: readonly string[];
}

/** Where the server is. */
export interface LocalServer {
  /** `"http://localhost:8787"`; over TLS with a name of the certificate. */
  url: string;
  /** Address to connect to over TLS, because the name in the URL may lead elsewhere or nowhere. */
  connectTo?: { hostname: string; port: number };
}

/** Finds the server. Over TLS, its name is one that the certificate is for. */
export function findLocalServer({ host, port, tlsCert, allowedHosts }: ListenConfig): LocalServer {
  const hostname = toLoopback(host);
  if (tlsCert === null) {
    return { url: `http://${hostname === "127.0.0.1" ? "localhost" : toUrlHost(hostname)}:${port}` };
  }
  const allowed = allowedHosts.filter((name) => /[a-z]/i.test(name) && !/[*/:]/.test(name));
  const certified = listNames(tlsCert);
  const name = allowed.find((name) => certified.some((pattern) => covers(pattern, name.toLowerCase()))) ??
    allowed[0] ?? certified.find((name) => !name.startsWith("*")) ?? "localhost";
  return { url: `https://${name}:${port}`, connectTo: { hostname, port } };
}

/** A client for one server. */
export interface LocalClient extends Disposable {
  /** For `fetch`; `undefined` if the usual one does. */
  readonly client: Deno.HttpClient | undefined;
}

/** Opens a client that trusts `caCert`, a PEM text, and connects to `connectTo` whatever the name in the URL is. */
export function openLocalClient(
  { caCert, connectTo }: { caCert?: string; connectTo?: LocalServer["connectTo"] },
): LocalClient {
  if (caCert === undefined && connectTo === undefined) return { client: undefined, [Symbol.dispose]() {} };
  // A fetch can't name another address than its host, so a proxy in this process leads it there. TLS stays end to end,
  // with the host as server name.
  const forwarder = connectTo && openForwarder(connectTo);
  const client = Deno.createHttpClient({
    ...(caCert !== undefined && { caCerts: [caCert] }),
    ...(forwarder && { proxy: { url: forwarder.url } }),
  });
  return {
    client,
    [Symbol.dispose]() {
      client.close();
      forwarder?.close();
    },
  };
}

/** Returns the address at which a listener on `host` can be reached from its machine. */
function toLoopback(host: string): string {
  if (host === "0.0.0.0" || host === "localhost") return "127.0.0.1";
  return host === "::" || host === "[::]" ? "::1" : host;
}

function toUrlHost(hostname: string): string {
  return hostname.includes(":") && !hostname.startsWith("[") ? `[${hostname}]` : hostname;
}

/** Names in the first certificate of a PEM file; none if it can't be read. */
function listNames(path: string): string[] {
  try {
    const { subjectAltName = "" } = new X509Certificate(Deno.readTextFileSync(path));
    return [...subjectAltName.matchAll(/DNS:([^,\s]+)/g)].map(([, name]) => name!.toLowerCase());
  } catch {
    return []; // the start and the findings say what is wrong with the file
  }
}

function covers(pattern: string, name: string): boolean {
  return pattern === name || (pattern.startsWith("*.") && name.slice(name.indexOf(".") + 1) === pattern.slice(2));
}

const CONNECT_HEAD_BYTES = 4096;

/** Opens a proxy on loopback whose CONNECT requests all lead to one address. */
function openForwarder(to: { hostname: string; port: number }): { url: string; close(): void } {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open = new Set<Deno.TcpConn>();
  const close = (connection: Deno.TcpConn) => {
    if (open.delete(connection)) connection.close();
  };
  async function forward(client: Deno.TcpConn): Promise<void> {
    open.add(client);
    let server: Deno.TcpConn | undefined;
    try {
      await readConnect(client);
      server = await Deno.connect({ ...to, hostname: to.hostname.replace(/[[\]]/g, "") });
      open.add(server);
      await client.write(new TextEncoder().encode("HTTP/1.1 200 OK\r\n\r\n"));
      await Promise.race([copy(client, server), copy(server, client)]);
    } catch {
      // The fetch fails with the connection.
    } finally {
      close(client);
      if (server !== undefined) close(server);
    }
  }
  (async () => {
    for await (const connection of listener) forward(connection);
  })().catch(() => {}); // it was closed
  return {
    url: `http://127.0.0.1:${listener.addr.port}`,
    close() {
      listener.close();
      for (const connection of open) close(connection);
    },
  };
}

/** Reads the head of the CONNECT request, which has no body. */
async function readConnect(connection: Deno.TcpConn): Promise<void> {
  const buffer = new Uint8Array(CONNECT_HEAD_BYTES);
  let size = 0;
  while (!new TextDecoder().decode(buffer.subarray(0, size)).endsWith("\r\n\r\n")) {
    const count = size < buffer.byteLength ? await connection.read(buffer.subarray(size)) : null;
    if (count === null) throw new Error("not a CONNECT request");
    size += count;
  }
}

async function copy(from: Deno.TcpConn, to: Deno.TcpConn): Promise<void> {
  const buffer = new Uint8Array(16 * 1024);
  for (let count = await from.read(buffer); count !== null; count = await from.read(buffer)) {
    for (let at = 0; at < count;) at += await to.write(buffer.subarray(at, count));
  }
}
