/** What a client asks of the guard's proxy: a tunnel, or one plain HTTP exchange. */
import { endToEndHeaders, type HttpHead, valuesOf } from "./http_head.ts";
import { type Target, targetOf } from "./target_policy.ts";

/** A tunnel to the target, whatever flows in it. */
export interface TunnelRequest {
  kind: "tunnel";
  target: Target;
}

/** One exchange over plain HTTP. */
export interface ForwardRequest {
  kind: "forward";
  target: Target;
  method: string;
  /** What goes upstream. */
  head: HttpHead;
  /** How many bytes of body follow the head. */
  bodyBytes: number;
  /** Whether the client understands a chunked answer, that is, speaks HTTP/1.1. */
  takesChunks: boolean;
}

export type ProxyRequest = TunnelRequest | ForwardRequest;

// Narrow on purpose: no credentials, escapes, backslashes or odd white space on which two parsers could disagree.
const AUTHORITY = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

/**
 * Parses the head of a proxy request: CONNECT with host and port, or any other method with an absolute `http:` target.
 *
 * The host that is judged is the host that is connected to and the one written into `Host`.
 *
 * @throws {Error} when it is anything else, a second `Content-Length`, or a body of unknown length.
 */
export function parseProxyRequest(head: HttpHead): ProxyRequest {
  const [, method, requestTarget, minor] = /^([A-Z]+) (\S+) HTTP\/1\.([01])$/.exec(head.startLine) ?? [];
  if (method === undefined || requestTarget === undefined) throw new Error("Cannot read the proxy request line");
  if (method === "CONNECT") {
    if (!/:\d+$/.test(requestTarget)) throw new Error("Cannot open a tunnel: the target has no port");
    return { kind: "tunnel", target: targetOf(parseAuthority(requestTarget)) };
  }
  const [, authority = "", path = ""] = /^http:\/\/([^/?#]*)([^#]*)$/i.exec(requestTarget) ?? [];
  const url = parseAuthority(authority);
  return {
    kind: "forward",
    target: targetOf(url),
    method,
    head: {
      startLine: `${method} ${path.startsWith("/") ? path : `/${path}`} HTTP/1.1`,
      headers: [
        ["Host", url.host],
        ...endToEndHeaders(head).filter(([name]) => name.toLowerCase() !== "host"),
        ["Connection", "close"], // the next request of this client needs its own judgement
      ],
    },
    bodyBytes: bodyBytesOf(head),
    takesChunks: minor === "1",
  };
}

function parseAuthority(authority: string): URL {
  const url = AUTHORITY.test(authority) && URL.canParse(`http://${authority}`)
    ? new URL(`http://${authority}`)
    : undefined;
  // The URL parser turns 0x7f.1 or 2130706433 into an address; whoever spells it so means to deceive somebody.
  if (url === undefined || (/^[\d.]+$/.test(url.hostname) && url.hostname !== authority.replace(/:\d+$/, ""))) {
    throw new Error("Cannot read the host and port of the proxy request");
  }
  return url;
}

function bodyBytesOf(head: HttpHead): number {
  const [length = "0", ...more] = valuesOf(head, "content-length");
  if (!/^\d{1,15}$/.test(length) || more.length > 0 || valuesOf(head, "transfer-encoding").length > 0) {
    throw new Error("Cannot forward a body whose length is not known");
  }
  return Number(length);
}
