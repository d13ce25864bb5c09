/**
 * First middleware: determines peer, client, scheme, host and origin of the request. X-Forwarded-* headers are used
 * only from trusted proxies.
 */
import type { MiddlewareHandler } from "hono";
import {
  createAddressMatcher,
  isLoopbackAddress,
  isLoopbackName,
  parseAddress,
  parseHost,
} from "../services/auth/hosts.ts";
import { AppError } from "../services/errors.ts";
import type { ClientConnection, Env, RequestFacts } from "./env.ts";

/**
 * Sets `facts`.
 *
 * @param trustedProxies IPs and CIDRs of `trusted_proxies`.
 * @throws {AppError} `invalid_request` for a Host, target or forwarding header that can't be parsed.
 */
export function trustedProxies(trustedProxies: readonly string[]): MiddlewareHandler<Env> {
  const factsOf = requestFactsFor(trustedProxies);
  return async (c, next) => {
    c.set("facts", factsOf(c.req.raw, c.env));
    await next();
  };
}

/** Headers that proxies and CDNs add to requests they forward. Browsers send none of them. */
const FORWARDING_HEADERS = new Set([
  "forwarded", // RFC 7239
  "forwarded-for",
  "via", // RFC 9110, section 7.6.3
  "cdn-loop", // RFC 8586
  "client-ip",
  "true-client-ip",
  "x-client-ip",
  "x-cluster-client-ip",
  "x-forwarded",
  "x-original-forwarded-for",
  "x-original-host",
  "x-originating-ip",
  "x-proxyuser-ip",
  "x-real-ip",
  "x-remote-addr",
  "x-remote-ip",
  "x-appengine-user-ip",
  "x-azure-clientip",
  "x-azure-socketip",
  "x-envoy-external-address",
  "x-nf-client-connection-ip",
  "x-vercel-forwarded-for",
  "cf-connecting-ip",
  "cf-connecting-ipv6",
  "cf-pseudo-ipv4",
  "cf-ray",
  "cloudfront-viewer-address",
  "do-connecting-ip",
  "fastly-client-ip",
  "fly-client-ip",
  "incap-client-ip",
  "x-sucuri-clientip",
]);
/** The entry that Parlor's own requests to private addresses have. Proxies on the way add theirs. */
const OWN_VIA_ENTRY = /(?:^|,)\s*[\w.\/]+\s+parlor\s*(?=,|\(|$)/i;
const FORWARDING_PREFIXES = ["x-forwarded-", "tailscale-"];
/** Names that any proxy may invent. Parlor's page sends headers of its own. */
const INVENTED_NAME = /^x-(?!parlor-)|(?:^|-)forwarded(?:-|$)/;
/**
 * An IPv4 or IPv6 address, `host:port` or a URL. A bare dotted word isn't one: versions and titles look like that.
 */
const ADDRESS_IN_VALUE = new RegExp(
  [
    String.raw`(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])`,
    String.raw`(?<![\w:])(?:[\da-f]{0,4}:){2,7}[\da-f]{0,4}(?![\w:])`,
    String.raw`(?<![\w.-])(?=[\w.-]*[a-z])[\w.-]+:\d{2,5}(?!\w)`,
    String.raw`\bhttps?:\/\/\S`,
  ].join("|"),
  "i",
);

/** Reports whether Parlor itself sent a request, such as the check of a public address. */
export function isOwnRequest(headers: Headers): boolean {
  return OWN_VIA_ENTRY.test(headers.get("via") ?? "");
}

/** Creates the function that returns the facts of a request. @param trustedProxies IPs and CIDRs */
export function requestFactsFor(
  trustedProxies: readonly string[],
): (request: Request, connection: ClientConnection) => RequestFacts {
  const isTrusted = createAddressMatcher(trustedProxies);

  return (request, connection) => {
    const { headers } = request;
    const peerAddress = toCanonicalAddress(connection.peerAddress);
    // The tailnet's listener is reached only by the own node, which connects from this machine and sends the address of
    // its client.
    const isOwnNode = connection.listener === "tailnet";
    const isPeerLoopback = !isOwnNode && isLoopbackAddress(peerAddress);
    const isPeerTrusted = isOwnNode || isTrusted(peerAddress);
    const isTls = request.url.startsWith("https:");
    const hostHeader = readHostHeader(request, isTls);
    const forwarded = isPeerTrusted ? headers.get("x-forwarded-for") : null;
    const clientAddress = isOwnNode
      ? parseHopAddress(getLastItem(forwarded) ?? "unknown")
      : forwarded === null
      ? peerAddress
      : findClient(forwarded, peerAddress, isTrusted);
    const scheme = (isPeerTrusted && parseForwardedScheme(headers.get("x-forwarded-proto"))) ||
      (isTls ? "https" : "http");
    const forwardedHost = isPeerTrusted && !isOwnNode ? getLastItem(headers.get("x-forwarded-host")) : undefined;
    const requested = parseHost(hostHeader);
    const named = forwardedHost === undefined ? requested : parseHost(forwardedHost);
    const defaultPort = scheme === "https" ? 443 : 80;
    const port = named.port ?? defaultPort;
    const origin = `${scheme}://${named.host}${port === defaultPort ? "" : `:${port}`}`;
    const forwardingHeader = findForwardingHeader(headers);
    const hasForwardingHeader = forwardingHeader !== undefined;
    const requestOrigin = headers.get("origin");
    // What Parlor itself requests is never the owner's, whichever way it came back. A trusted proxy must name its client.
    const isClientHere = isPeerLoopback && !isOwnRequest(headers) &&
      (isPeerTrusted ? forwarded !== null && isLoopbackAddress(clientAddress) : !hasForwardingHeader);
    const isSameMachine = isClientHere && isLoopbackName(named.host);
    return {
      peerAddress,
      clientAddress,
      scheme,
      host: named.host,
      port,
      origin,
      hostHeader,
      isPeerLoopback,
      isLocal: isSameMachine && (requestOrigin === null || requestOrigin === origin),
      isSameMachine,
      hasForwardingHeader,
      forwardingHeader,
      untrustedProxy: hasForwardingHeader && !isPeerTrusted,
      listener: connection.listener,
      requestOrigin,
    };
  };
}

/** Returns the Host header after checking that the request target agrees (RFC 9112, section 3.2). */
function readHostHeader(request: Request, isTls: boolean): string {
  const authority = /^https?:\/\/([^/?#]*)/.exec(request.url)?.[1] ?? "";
  const header = request.headers.get("host");
  // If Host is missing, the runtime invents an authority, so the URL can't replace the header. This also rejects HTTP/2
  // with prior knowledge, whose requests have the host in ":authority" (docs/decisions/0004).
  if (header === null || header === "") {
    throw new AppError(
      "invalid_request",
      "The request has no Host header. This server supports HTTP/1.1, not HTTP/2",
    );
  }
  if (authority.toLowerCase() !== header.toLowerCase()) {
    // An absolute target may include the port that the header omits, or vice versa; nothing else may differ.
    const target = parseHost(authority);
    const named = parseHost(header);
    const defaultPort = isTls ? 443 : 80;
    if (target.host !== named.host || (target.port ?? defaultPort) !== (named.port ?? defaultPort)) {
      throw new AppError(
        "invalid_request",
        "The request target and the Host header name different hosts",
      );
    }
  }
  return header;
}

function toCanonicalAddress(text: string): string {
  return parseAddress(text)?.toString() ?? text;
}

/** Returns the rightmost address of X-Forwarded-For that isn't a trusted proxy. */
function findClient(header: string, peerAddress: string, isTrusted: (address: string) => boolean): string {
  const hops = header.split(",").map((hop) => hop.trim()).filter((hop) => hop !== "");
  if (hops.length === 0) return "unknown";
  let client = peerAddress;
  while (isTrusted(client)) {
    const hop = hops.pop();
    if (hop === undefined) break;
    client = parseHopAddress(hop);
  }
  return client;
}

/** Parses `1.2.3.4`, `1.2.3.4:5678`, `::1`, `[::1]`, `[::1]:5678`, `unknown` and `_hidden` (RFC 7239, section 6). */
function parseHopAddress(hop: string): string {
  if (/^unknown$|^_[\w.-]+$/i.test(hop)) return "unknown";
  const withoutPort = /^(\[[^\]]+\]|[0-9.]+):\d{1,5}$/.exec(hop)?.[1] ?? hop;
  const address = parseAddress(withoutPort);
  if (address === undefined) {
    throw new AppError("invalid_request", "Can't read X-Forwarded-For: it contains something that isn't an IP address");
  }
  return address.toString();
}

/** Returns the value that the nearest proxy added. It is the last one, and earlier ones may come from the client. */
function getLastItem(header: string | null): string | undefined {
  return header?.split(",").map((item) => item.trim()).filter((item) => item !== "").pop();
}

function parseForwardedScheme(header: string | null): "http" | "https" | undefined {
  const scheme = getLastItem(header)?.toLowerCase();
  if (scheme === undefined || scheme === "http" || scheme === "https") return scheme;
  throw new AppError("invalid_request", "Can't read X-Forwarded-Proto: expected http or https");
}

/** Returns the name of a header that a proxy has added. */
function findForwardingHeader(headers: Headers): string | undefined {
  for (const [name, value] of headers) {
    if (FORWARDING_HEADERS.has(name) || FORWARDING_PREFIXES.some((prefix) => name.startsWith(prefix))) return name;
    if (INVENTED_NAME.test(name) && ADDRESS_IN_VALUE.test(value)) return name;
  }
  return undefined;
}
