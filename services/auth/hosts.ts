/**
 * Hosts: parses names and addresses, recognizes loopback, derives RP IDs, checks the allowlist, and detects proxies
 * that send no forwarding headers.
 *
 * Requests through such a proxy on this machine come from 127.0.0.1 without forwarding headers, so its clients look
 * like the owner. The request alone doesn't reveal this, but the page does: it knows the URL it was loaded from.
 */
import ipaddr from "ipaddr.js";
import { AppError } from "../errors.ts";
import type { Log } from "../log.ts";

/** A parsed host. */
interface HostAndPort {
  /** Lower case, no trailing dot; IPv6 in brackets in its canonical spelling. */
  host: string;
  /** As written; `undefined` if there is none. */
  port: number | undefined;
}

// Letters, digits, "-" and "_" by label; browsers send international names as punycode.
const HOST_PATTERN = /^(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?(?::(\d{1,5}))?$/;

/**
 * Parses the value of a Host or X-Forwarded-Host header.
 *
 * @throws {AppError} `invalid_request` for anything but one host with an optional port.
 */
export function parseHost(text: string): HostAndPort {
  const match = text.length <= 300 ? HOST_PATTERN.exec(text.toLowerCase()) : null;
  const port = match?.[2] === undefined ? undefined : Number(match[2]);
  const host = match === null ? undefined : normalizeHost(match[1]!);
  if (host === undefined || (port !== undefined && port > 65535)) {
    throw new AppError(
      "invalid_request",
      "Invalid host of the request: expected a name or address and an optional port",
    );
  }
  return { host, port };
}

function normalizeHost(text: string): string | undefined {
  if (!text.startsWith("[")) return text;
  // A mapped address stays an IPv6 address here, as in the origins that browsers send. isLoopbackName recognizes it.
  return URL.canParse(`http://${text}`) ? new URL(`http://${text}`).hostname : undefined;
}

/** Returns whether a canonical host is this machine: `localhost`, names below it, loopback literals. */
export function isLoopbackName(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost") || parseAddress(host)?.range() === "loopback";
}

/** Facts of a request that the allowlist uses. */
interface HostFacts {
  host: string;
  isLocal: boolean;
  listener: "main" | "tailnet";
}

/** Last known names of Parlor's own tailnet node. */
export interface OwnNode {
  /** `"parlor.fox-owl.ts.net"`, no trailing dot. */
  fqdn: string;
  /** Its MagicDNS suffix: `"fox-owl.ts.net"`. */
  suffix: string;
}

/** Decides which hosts reach the API. */
export interface HostPolicy {
  /** Returns whether a host can use every route. */
  isAllowed(facts: HostFacts): boolean;
  /** Returns whether a host can use at least the status and ceremonies, so that a new origin can add a passkey. */
  allowsCeremonies(facts: HostFacts): boolean;
  /** Returns whether an RP ID belongs to a listed host, Parlor's own node or this machine. */
  ownsRpId(rpId: string): boolean;
}

/**
 * Creates the allowlist.
 *
 * @param options.allowedHosts Names, IPs, CIDRs and `*.suffix`; they count from any peer.
 * @param options.ownNode The own node's names; its FQDN counts on its own listener only.
 */
export function createHostPolicy(options: {
  allowedHosts: readonly string[];
  tailnetSuffix: string;
  ownNode?: () => OwnNode | undefined;
}): HostPolicy {
  const { allowedHosts, tailnetSuffix, ownNode = () => undefined } = options;
  const entries = allowedHosts.map((entry) => entry.toLowerCase().replace(/\.$/, ""));
  const names = new Set(entries.filter((entry) => !entry.startsWith("*.") && parseAddress(entry) === undefined));
  const suffixes = entries.filter((entry) => entry.startsWith("*.")).map((entry) => entry.slice(1));
  const isListedAddress = createAddressMatcher(entries);

  function isAllowed({ host, isLocal, listener }: HostFacts): boolean {
    if (isLoopbackName(host) && isLocal) return true;
    if (listener === "tailnet" && host === ownNode()?.fqdn) return true;
    return names.has(host) || isListedAddress(host) || suffixes.some((suffix) => host.endsWith(suffix));
  }

  /**
   * Returns whether an RP ID belongs to a listed host or the own node: an invented sibling must not enroll passkeys for
   * it.
   */
  function isOwnedRpId(rpId: string): boolean {
    const node = ownNode();
    if (node !== undefined && rpId === getRpId(node.fqdn, tailnetSuffix, node.suffix)) return true;
    return [...names].some((name) => getRpId(name, tailnetSuffix, node?.suffix) === rpId) ||
      suffixes.some((suffix) => suffix === `.${rpId}` || `.${rpId}`.endsWith(suffix));
  }

  return {
    isAllowed,
    allowsCeremonies(facts) {
      if (isAllowed(facts)) return true;
      if (isLoopbackName(facts.host)) return false;
      return !isOwnedRpId(getRpId(facts.host, tailnetSuffix, ownNode()?.suffix));
    },
    ownsRpId: (rpId) => isLoopbackName(rpId) || isListedAddress(rpId) || isOwnedRpId(rpId),
  };
}

/** The facts of a request that the detection uses. */
interface PageFacts {
  isPeerLoopback: boolean;
  hasForwardingHeader: boolean;
  /** `scheme://host[:port]` as computed from the request. */
  origin: string;
}

/** Detects such a proxy and remembers it until the process ends. */
export interface PageOriginWatch {
  /** True once a proxy was detected: the loopback bypass is off. */
  readonly isTripped: boolean;
  /** Compares the page's own origin (`X-Parlor-Page`) with the origin of the request. */
  note(pageOrigin: string, facts: PageFacts): void;
}

/** @param options.corsOrigins Pages of these origins may call the API, so their origin proves nothing. */
export function createPageOriginWatch(options: { corsOrigins: readonly string[]; log: Log }): PageOriginWatch {
  let isTripped = false;
  return {
    get isTripped() {
      return isTripped;
    },
    note(pageOrigin, facts) {
      if (isTripped || !facts.isPeerLoopback || facts.hasForwardingHeader || pageOrigin === facts.origin) return;
      if (options.corsOrigins.includes(pageOrigin)) return;
      isTripped = true;
      // Only a valid origin is logged: other text could contain control characters or a secret.
      const page = URL.canParse(pageOrigin) ? new URL(pageOrigin).origin : "another address";
      options.log(
        "warn",
        `A page at ${page} called this server as ${facts.origin}: a proxy on this machine forwards requests without X-Forwarded headers. ` +
          "The loopback bypass is off until the next start. Set loopback_auth_bypass = false, and set trusted_proxies to the " +
          "proxy's address once it sends X-Forwarded-For, -Proto and -Host",
      );
    },
  };
}

// IP addresses in canonical form, and the keys that count failures per client. IPv4-mapped IPv6 addresses are IPv4.

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * Parses an address in its usual spelling: four decimal parts, or IPv6 with or without brackets and zone.
 *
 * @returns `undefined` for anything else, `127.1`, `0x7f.1` and `2130706433` included.
 */
export function parseAddress(text: string): Address | undefined {
  const bare = text.startsWith("[") && text.endsWith("]") ? text.slice(1, -1) : text;
  if (ipaddr.IPv4.isValidFourPartDecimal(bare)) return ipaddr.IPv4.parse(bare);
  if (!bare.includes(":")) return undefined;
  const address = bare.split("%")[0]!;
  return ipaddr.IPv6.isValid(address) ? ipaddr.process(address) : undefined;
}

/** Returns whether an address is a loopback address. */
export function isLoopbackAddress(text: string): boolean {
  return parseAddress(text)?.range() === "loopback";
}

/**
 * Creates a function that checks whether an address is in a list of addresses and CIDRs. Other items are ignored.
 *
 * @returns A function of a canonical address, or of an IP literal host.
 */
export function createAddressMatcher(items: readonly string[]): (address: string) => boolean {
  const ranges = items.flatMap((item): [Address, number][] => {
    const [base, bits] = item.split("/") as [string, string?];
    const address = parseAddress(base);
    if (address === undefined) return [];
    const whole = address.kind() === "ipv4" ? 32 : 128;
    if (bits === undefined) return [[address, whole]];
    // A mapped range (::ffff:10.0.0.0/104) counts its bits in IPv6.
    const prefix = Number(bits) - (base.includes(":") && whole === 32 ? 96 : 0);
    return prefix >= 0 ? [[address, prefix]] : [];
  });
  return (text) => {
    const address = parseAddress(text);
    if (address === undefined) return false;
    return ranges.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits));
  };
}

/**
 * Returns the key of a client: its IPv4 address, or the /64 network of its IPv6 address, because one customer gets a whole /64.
 *
 * @param address Canonical, or `"unknown"`.
 */
export function getClientKey(address: string): string {
  const parsed = address.includes(":") ? parseAddress(address) : undefined;
  return parsed?.kind() === "ipv6" ? parsed.toNormalizedString().split(":").slice(0, 4).join(":") : address;
}

/**
 * Returns the WebAuthn RP ID for the host that the browser used.
 *
 * Machines of one tailnet share their parent domain, so one passkey works for all of them. Any other host is its own RP
 * ID.
 *
 * @param host Lower case, no port: `"desk.fox-owl.ts.net"`.
 * @param tailnetSuffix Without a leading dot: `"ts.net"`.
 * @param ownSuffix MagicDNS suffix of the own tailnet node, for control servers with their own domain: `"tail.test"`.
 * @returns `"fox-owl.ts.net"` for the host above; other hosts unchanged.
 * @throws {AppError} `invalid_request` if the host is empty.
 * @see WebAuthn Level 2, section 4, "Relying Party Identifier"
 */
export function getRpId(host: string, tailnetSuffix: string, ownSuffix?: string): string {
  if (host === "") throw new AppError("invalid_request", "Can't determine the RP ID: the host is empty");
  const parent = host.slice(host.indexOf(".") + 1);
  if (parent === host || parent === "") return host;
  // Only below the suffix, at a label boundary: the suffix itself is shared by strangers and never an RP ID.
  return parent.endsWith(`.${tailnetSuffix}`) || parent === ownSuffix ? parent : host;
}
