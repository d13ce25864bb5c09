/** Parses requests to the guard's proxy: a tunnel, or one plain HTTP request. */
import { type HttpHead, keepEndToEndHeaders, listValues } from "./http_head.ts";
import { type Target, toTarget } from "./target_policy.ts";

/** A tunnel to the target. */
export interface TunnelRequest {
  kind: "tunnel";
  target: Target;
}

/** One plain HTTP request. */
export interface ForwardRequest {
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
