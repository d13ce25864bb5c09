/** Finds the server of a configuration on this machine, and connects to it without DNS. */
import { Buffer } from "node:buffer";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { type IncomingMessage, request as httpRequest } from "node:http";
import { connect } from "node:tls";
import { createAddressMatcher } from "../auth/hosts.ts";

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
  /**
   * Over TLS: the address, because the name in the URL may lead elsewhere or nowhere, and the server's certificate (DER),
   * which needs no authority then; absent if it can't be read.
   */
  connectTo?: { hostname: string; port: number; certificate?: Buffer };
}

/** Finds the server. Over TLS, its name is one that the certificate is for. */
export function findLocalServer({ host, port, tlsCert, allowedHosts }: ListenConfig): LocalServer {
  const hostname = toLoopback(host);
  if (tlsCert === null) {
    return { url: `http://${hostname === "127.0.0.1" ? "localhost" : toUrlHost(hostname)}:${port}` };
  }
  const allowed = allowedHosts.filter((name) => /[a-z]/i.test(name) && !/[*/:]/.test(name));
  const certificate = readCertificate(tlsCert);
  const certified = listNames(certificate);
  const name = allowed.find((name) => certified.some((pattern) => covers(pattern, name.toLowerCase()))) ??
    allowed[0] ?? certified.find((name) => !name.startsWith("*")) ?? "localhost";
  return { url: `https://${name}:${port}`, connectTo: { hostname, port, certificate: certificate?.raw } };
}

/** Returns the address to open in a browser, if it's another one than the server's own on this machine. */
export function findPublicUrl(config: ListenConfig & { trustedProxies: readonly string[] }): string | undefined {
  if (config.tlsCert !== null) {
    const { url } = findLocalServer(config);
    return new URL(url).hostname === "localhost" ? undefined : url;
  }
  if (config.trustedProxies.length === 0) return undefined;
  const name = config.allowedHosts.find((name) => /[a-z]/i.test(name) && !/[*/:]/.test(name));
  return name === undefined ? undefined : `https://${name}`;
}

/** Returns whether this machine's own address is a trusted proxy. Then every request from it must name its client. */
export function mustNameClient(
  { host, trustedProxies }: { host: string; trustedProxies: readonly string[] },
): boolean {
  return createAddressMatcher(trustedProxies)(/^\[?::/.test(host) ? "::1" : "127.0.0.1");
}

/** The server uses another certificate than the file in `tls_cert`, and it isn't trusted otherwise. */
export class CertificateMismatchError extends Error {
  constructor() {
    super("it uses another certificate than the file in tls_cert. If you renewed the certificate, restart the server");
  }
}

/** Sends requests to one server. */
export interface LocalClient extends Disposable {
  /** Like the global `fetch` with a text as body, but doesn't follow redirects. */
  fetch(url: string, init?: LocalRequest): Promise<Response>;
}

/** A request. */
interface LocalRequest {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  signal?: AbortSignal;
}

/** Opens a client that trusts `caCert` (PEM), or connects to `connectTo` regardless of the host name in the URL. */
export function openLocalClient(
  { caCert, connectTo }: { caCert?: string; connectTo?: LocalServer["connectTo"] },
): LocalClient {
  if (connectTo !== undefined) {
    return { fetch: (url, init = {}) => fetchAt(connectTo, new URL(url), init), [Symbol.dispose]() {} };
  }
  const client = caCert === undefined ? undefined : Deno.createHttpClient({ caCerts: [caCert] });
  return {
    fetch: (url, init) => fetch(url, { ...init, client, redirect: "manual" }),
    [Symbol.dispose]: () => client?.close(),
  };
}

/**
 * Sends a request over TLS to an address. `fetch` can't connect to an address other than the URL's host, and can't trust
 * a single certificate, such as a self-signed one or one from a private authority.
 */
async function fetchAt(
  { hostname, port, certificate }: Required<LocalServer>["connectTo"],
  { hostname: servername, host, pathname, search }: URL,
  { method = "GET", headers = {}, body, signal }: LocalRequest,
): Promise<Response> {
  const socket = connect({ host: hostname.replace(/[[\]]/g, ""), port, servername, rejectUnauthorized: false });
  const onAbort = () => socket.destroy(signal!.reason);
  try {
    signal?.throwIfAborted();
    signal?.addEventListener("abort", onAbort);
    await once(socket, "secureConnect");
    if (!socket.authorized && certificate?.equals(socket.getPeerCertificate().raw) !== true) {
      throw new CertificateMismatchError();
    }
    const request = httpRequest({
      createConnection: () => socket,
      method,
      path: pathname + search,
      headers: {
        Host: host,
        Connection: "close",
        ...(body !== undefined && { "Content-Length": Buffer.byteLength(body) }),
        ...headers,
      },
    });
    request.end(body);
    const [answer] = await once(request, "response") as [IncomingMessage];
    const chunks = await Array.fromAsync(answer as AsyncIterable<Uint8Array<ArrayBuffer>>);
    const { statusCode: status = 502, rawHeaders } = answer;
    const pairs = rawHeaders.flatMap((name, i): [string, string][] => i % 2 === 0 ? [[name, rawHeaders[i + 1]!]] : []);
    return new Response([204, 304].includes(status) ? null : new Blob(chunks), { status, headers: pairs });
  } finally {
    signal?.removeEventListener("abort", onAbort);
    socket.destroy();
  }
}

/** Returns the address at which a listener on `host` can be reached from its machine. */
function toLoopback(host: string): string {
  if (host === "0.0.0.0" || host === "localhost") return "127.0.0.1";
  return host === "::" || host === "[::]" ? "::1" : host;
}

function toUrlHost(hostname: string): string {
  return hostname.includes(":") && !hostname.startsWith("[") ? `[${hostname}]` : hostname;
}

/** Reads the first certificate of a PEM file. `undefined` if it can't be read, which other findings report. */
export function readCertificate(path: string): X509Certificate | undefined {
  try {
    return new X509Certificate(Deno.readTextFileSync(path));
  } catch {
    return undefined;
  }
}

function listNames(certificate: X509Certificate | undefined): string[] {
  const names = certificate?.subjectAltName ?? "";
  return [...names.matchAll(/DNS:([^,\s]+)/g)].map(([, name]) => name!.toLowerCase());
}

function covers(pattern: string, name: string): boolean {
  return pattern === name || (pattern.startsWith("*.") && name.slice(name.indexOf(".") + 1) === pattern.slice(2));
}
