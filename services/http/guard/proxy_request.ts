/** Parses requests to the guard's proxy (a tunnel or one plain HTTP request), and forwards the response of the latter. */
import { Buffer } from "node:buffer";
import { formatHead, type HttpHead, keepEndToEndHeaders, listValues, pump, readHead, writeAll } from "./sockets.ts";
import { type Target, toTarget } from "./target_policy.ts";

/** A tunnel to the target. */
export interface TunnelRequest {
  kind: "tunnel";
  target: Target;
}

/** One plain HTTP request. */
interface ForwardRequest {
  kind: "forward";
  target: Target;
  method: string;
  /** The head to send upstream. */
  head: HttpHead;
  /** Size of the body after the head. */
  bodyBytes: number;
  /** True if the client speaks HTTP/1.1 and accepts chunks. */
  takesChunks: boolean;
}

export type ProxyRequest = TunnelRequest | ForwardRequest;

// Narrow on purpose: no credentials, escapes, backslashes or whitespace that two parsers could read differently.
const AUTHORITY = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

/**
 * Parses the head of a proxy request: CONNECT with host and port, or any other method with an absolute `http:` target.
 *
 * The host that is checked is the one that is connected to and sent as `Host`.
 *
 * @throws {Error} for anything else, a second `Content-Length`, or a body of unknown length
 */
export function parseProxyRequest(head: HttpHead): ProxyRequest {
  const [, method, requestTarget, minor] = /^([A-Z]+) (\S+) HTTP\/1\.([01])$/.exec(head.startLine) ?? [];
  if (method === undefined || requestTarget === undefined) throw new Error("Can't read the proxy request line");
  if (method === "CONNECT") {
    if (!/:\d+$/.test(requestTarget)) throw new Error("Can't open a tunnel: the target has no port");
    return { kind: "tunnel", target: toTarget(parseAuthority(requestTarget)) };
  }
  const [, authority = "", path = ""] = /^http:\/\/([^/?#]*)([^#]*)$/i.exec(requestTarget) ?? [];
  const url = parseAuthority(authority);
  return {
    kind: "forward",
    target: toTarget(url),
    method,
    head: {
      startLine: `${method} ${path.startsWith("/") ? path : `/${path}`} HTTP/1.1`,
      headers: [
        ["Host", url.host],
        ...keepEndToEndHeaders(head).filter(([name]) => name.toLowerCase() !== "host"),
        ["Connection", "close"], // the next request needs its own check
      ],
    },
    bodyBytes: parseBodyBytes(head),
    takesChunks: minor === "1",
  };
}

function parseAuthority(authority: string): URL {
  const url = AUTHORITY.test(authority) && URL.canParse(`http://${authority}`)
    ? new URL(`http://${authority}`)
    : undefined;
  // The URL parser turns 0x7f.1 or 2130706433 into an address. Nobody writes that in good faith.
  if (url === undefined || (/^[\d.]+$/.test(url.hostname) && url.hostname !== authority.replace(/:\d+$/, ""))) {
    throw new Error("Can't read the host and port of the proxy request");
  }
  return url;
}

function parseBodyBytes(head: HttpHead): number {
  const [length = "0", ...more] = listValues(head, "content-length");
  if (!/^\d{1,15}$/.test(length) || more.length > 0 || listValues(head, "transfer-encoding").length > 0) {
    throw new Error("Can't forward a body whose length is not known");
  }
  return Number(length);
}

/**
 * Forwards interim heads, the final head with `Connection: close`, and the body.
 *
 * A body without a length is sent in chunks. Otherwise a broken connection would look like the end of a shorter response.
 *
 * @param touch Called whenever the server has sent part of the body.
 * @throws {Error} if the response isn't HTTP, its head is too long, or a socket fails
 */
export async function forwardResponse(
  upstream: Deno.Conn,
  client: Deno.Conn,
  request: ForwardRequest,
  headBytes: number,
  touch: () => void,
): Promise<void> {
  let { head, rest } = await readHead(upstream, headBytes);
  let status = parseStatus(head);
  for (; status < 200; status = parseStatus(head)) {
    await writeAll(client, formatHead({ startLine: toOwnVersion(head), headers: keepEndToEndHeaders(head) }));
    ({ head, rest } = await readHead(upstream, headBytes, rest));
  }
  touch();
  const hasBody = request.method !== "HEAD" && status !== 204 && status !== 304;
  const hasLength = listValues(head, "content-length").length > 0 || listValues(head, "transfer-encoding").length > 0;
  const isChunked = hasBody && !hasLength && request.takesChunks;
  const headers = keepEndToEndHeaders(head);
  headers.push(["Connection", "close"]);
  if (isChunked) headers.push(["Transfer-Encoding", "chunked"]);
  await writeAll(client, formatHead({ startLine: toOwnVersion(head), headers }));
  const pass = async (bytes: Uint8Array) => {
    touch();
    if (bytes.length > 0) await writeAll(client, isChunked ? toChunk(bytes) : bytes);
  };
  await pass(rest);
  await pump(upstream, pass);
  if (isChunked) await writeAll(client, Buffer.from("0\r\n\r\n"));
}

function parseStatus(head: HttpHead): number {
  const [, status] = /^HTTP\/1\.[01] ([1-9]\d\d)(?: |$)/.exec(head.startLine) ?? [];
  if (status === undefined) throw new Error("Can't read the response: it isn't HTTP");
  return Number(status);
}

/** A proxy responds with its own HTTP version (RFC 9110, section 2.5); chunks need 1.1. */
function toOwnVersion({ startLine }: HttpHead): string {
  return startLine.replace(/^HTTP\/1\.0/, "HTTP/1.1");
}

function toChunk(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
}
