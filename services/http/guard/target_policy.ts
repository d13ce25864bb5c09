/**
 * Decides which targets guarded requests may have: first by host and port, then by every address of the host. Also
 * decides which addresses the owner's servers may have (all but a few), defines the limits of requests, and removes
 * proxy settings from the environment, because they would bypass the guard.
 */
import { lookup } from "node:dns/promises";
import ipaddr from "ipaddr.js";

/** A host without brackets and trailing dot, in lower case, and a port. */
export interface Target {
  host: string;
  port: number;
}

export interface TargetPolicy {
  /** Reports whether the target is refused without a lookup: wrong port, blocked name, or an address that isn't public. */
  isRefusedUnresolved(target: Target): boolean;
  /**
   * Resolves the target once and checks every address. Returns an empty list if the target is refused or has no
   * address.
   */
  resolveAllowed(target: Target): Promise<string[]>;
  /** True if some addresses that aren't public are allowed. */
  readonly allowsPrivate: boolean;
}

export interface TargetPolicyOptions {
  /** CIDRs that are allowed on any port and under any name. */
  allow: string[];
  /** URLs whose host and port are exempt from the name and port rules. Their addresses are still checked. */
  exactOrigins: string[];
  resolve: ResolveHost;
  /** Refused in any case: what Parlor itself listens on. */
  ownListeners?: Endpoints;
}

/** A set of addresses with ports. */
export interface Endpoints {
  includes(address: string, port: number): boolean;
}

const USUAL_PORTS = new Set([80, 443]);

// RFC 6761 (localhost), RFC 6762 (local), RFC 8375 (home.arpa), ICANN's private-use internal.
const BLOCKED_SUFFIXES = ["localhost", "local", "internal", "home.arpa"];

/** Creates the policy. The configuration has validated `allow` and `exactOrigins`. */
export function createTargetPolicy(
  { allow, exactOrigins, resolve, ownListeners }: TargetPolicyOptions,
): TargetPolicy {
  const networks: Cidr[] = allow.map(parseCidr);
  const exact = new Set(exactOrigins.map((origin) => toKey(toTarget(new URL(origin)))));
  const hasAllowedName = (target: Target) =>
    exact.has(toKey(target)) ||
    (USUAL_PORTS.has(target.port) && (isAddress(target.host) || !isBlockedName(target.host)));
  const isAllowed = (address: string, target: Target) =>
    (isInsideCidrs(address, networks) || (isPublicAddress(address) && hasAllowedName(target))) &&
    ownListeners?.includes(address, target.port) !== true;
  const isRefusedUnresolved = (target: Target) =>
    isAddress(target.host)
      ? !isAllowed(target.host, target)
      // Any other name can still resolve to an allowed network.
      : networks.length === 0 && !hasAllowedName(target);
  return {
    allowsPrivate: networks.length > 0,
    isRefusedUnresolved,
    async resolveAllowed(target) {
      if (isRefusedUnresolved(target)) return [];
      const addresses = isAddress(target.host) ? [target.host] : await resolve(target.host);
      // One forbidden address forbids all: a mixture is an attack or a mistake.
      return addresses.every((address) => isAllowed(address, target)) ? addresses : [];
    },
  };
}

/** Returns the host and port of an http(s) URL. */
export function toTarget(url: URL): Target {
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  return { host, port: url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port) };
}

function isBlockedName(host: string): boolean {
  return !host.includes(".") || BLOCKED_SUFFIXES.some((suffix) => host.endsWith(`.${suffix}`));
}

function toKey({ host, port }: Target): string {
  return `${host} ${port}`;
}

/** Returns all addresses of a host name in the order to try them. Throws or returns an empty list if there are none. */
export type ResolveHost = (host: string) => Promise<string[]>;

/**
 * Resolves with the system's resolver.
 *
 * Uses getaddrinfo through node:dns instead of `Deno.resolveDns`: it reads /etc/hosts and nsswitch, returns both families at
 * once, and is what `fetch` uses.
 */
export const resolveWithSystem: ResolveHost = async (host) => {
  const found = await lookup(host, { all: true });
  return found.map((entry) => entry.address);
};

// Limits and texts shared by the guard's proxy and guarded_get.ts.

/** Limits of guarded requests. */
export interface ProxyLimits {
  /** For the lookup and all connection attempts. */
  connectMs: number;
  /** Time limit for the request head of a client. */
  headMs: number;
  /** Maximum size of a request or response head. */
  headBytes: number;
  /** Maximum time without data in either direction. */
  idleMs: number;
  /** Maximum number of connections. Above it, a new one replaces the oldest that hasn't authenticated. */
  connections: number;
}

export const DEFAULT_PROXY_LIMITS: ProxyLimits = {
  connectMs: 10_000,
  headMs: 10_000,
  headBytes: 32 * 1024,
  idleMs: 30_000,
  connections: 128,
};

/** Header of requests to addresses that aren't public. A request that has it never counts as local. */
export const OWN_VIA = { via: "1.1 parlor" };

/** The same text for forbidden, closed, silent and unknown targets, so that it reveals nothing about the network. */
export const REFUSAL_TEXT =
  "the address is not allowed or does not answer. Addresses that aren't public are refused, unless guard_allow includes them";

type Address = ipaddr.IPv4 | ipaddr.IPv6;
/** A network and its prefix length. */
export type Cidr = [Address, number];

const parseCidrs = (list: string): Cidr[] => list.trim().split(/\s+/).map((text) => ipaddr.parseCIDR(text));

// IANA IPv4 Special-Purpose Address Registry, multicast, class E; 168.63.129.16 is Azure's host agent, which has a
// public address.
const NOT_PUBLIC_V4 = parseCidrs(`
  0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32`);

// All global unicast addresses are in 2000::/3 (RFC 4291, section 2.4); everything else is not public.
const GLOBAL_UNICAST_V6 = parseCidrs("2000::/3");
const NOT_PUBLIC_V6 = parseCidrs("2001::/23 2001:db8::/32 2002::/16 3fff::/20");
const NAT64_WELL_KNOWN = parseCidrs("64:ff9b::/96"); // RFC 6052: the last 32 bits are the IPv4 address.

// Link-local, and the metadata services of clouds: Azure, Alibaba, Oracle; AWS, Google and Scaleway over IPv6.
const FORBIDDEN_TO_OWNER = parseCidrs(`
  169.254.0.0/16 168.63.129.16/32 100.100.100.200/32 192.0.0.192/32
  fe80::/10 fd00:ec2::/32 fd20:ce::254/128 fd00:42::42/128`);

// Forms that end in an IPv4 address: compatible, mapped, translated (RFC 2765), NAT64 well-known and local (RFC 8215).
const ENDS_IN_V4 = parseCidrs("::/96 ::ffff:0:0/96 ::ffff:0:0:0/96 64:ff9b::/96 64:ff9b:1::/48");
const SIX_TO_FOUR = parseCidrs("2002::/16"); // RFC 3056: the IPv4 address follows the prefix.

/**
 * Returns whether a public-only call may reach this address.
 *
 * IPv6 outside global unicast is never public.
 *
 * @param ip Canonical dotted IPv4, or IPv6 without brackets and zone; any other notation (octal, hex, short) isn't
 *   public.
 * @see https://www.iana.org/assignments/iana-ipv4-special-registry
 */
export function isPublicAddress(ip: string): boolean {
  const address = parseAddress(ip);
  if (address === undefined) return false;
  if (address instanceof ipaddr.IPv4) return !isInside(address, NOT_PUBLIC_V4);
  if (isInside(address, NAT64_WELL_KNOWN)) return !isInside(extractIpv4(address, 12), NOT_PUBLIC_V4);
  return isInside(address, GLOBAL_UNICAST_V6) && !isInside(address, NOT_PUBLIC_V6);
}

/**
 * Reports whether an address is forbidden even for the owner's servers: link-local and cloud metadata.
 *
 * IPv6 addresses that embed such an IPv4 address are forbidden, too. Loopback and private addresses are allowed.
 *
 * @param ip Like for {@link isPublicAddress}. Text that isn't an address is forbidden.
 */
export function isForbiddenToOwner(ip: string): boolean {
  const address = parseAddress(ip);
  if (address === undefined || isInside(address, FORBIDDEN_TO_OWNER)) return true;
  if (address instanceof ipaddr.IPv4) return false;
  if (isInside(address, ENDS_IN_V4)) return isInside(extractIpv4(address, 12), FORBIDDEN_TO_OWNER);
  return isInside(address, SIX_TO_FOUR) && isInside(extractIpv4(address, 2), FORBIDDEN_TO_OWNER);
}

/**
 * Returns an address in canonical form, and the IPv4 address inside it if there is one: `["::ffff:7f00:1", "127.0.0.1"]`.
 *
 * @returns Empty if the text isn't an address.
 */
export function unwrapAddress(ip: string): string[] {
  const address = parseAddress(ip);
  if (address === undefined) return [];
  if (address instanceof ipaddr.IPv4) return [address.toString()];
  const inner = isInside(address, ENDS_IN_V4) ? 12 : isInside(address, SIX_TO_FOUR) ? 2 : undefined;
  return [address.toString(), ...inner === undefined ? [] : [extractIpv4(address, inner).toString()]];
}

/**
 * Parses one network such as `"10.0.0.0/8"` or `"fd00::/8"`.
 *
 * @throws {Error} if the text is not a CIDR
 */
export function parseCidr(text: string): Cidr {
  return ipaddr.parseCIDR(text);
}

/** Reports whether an address is in one of the networks. IPv4 inside IPv6 is not unwrapped. */
export function isInsideCidrs(ip: string, networks: readonly Cidr[]): boolean {
  const address = parseAddress(ip);
  return address !== undefined && isInside(address, networks);
}

/** Reports whether text is an address in the notation that this file accepts. */
export function isAddress(text: string): boolean {
  return parseAddress(text) !== undefined;
}

/** Parses strictly: one notation for IPv4, and no IPv6 zones, which would select an interface. */
function parseAddress(text: string): Address | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  return !text.includes("%") && ipaddr.IPv6.isValid(text) ? ipaddr.IPv6.parse(text) : undefined;
}

function isInside(address: Address, networks: readonly Cidr[]): boolean {
  return networks.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits));
}

function extractIpv4(address: ipaddr.IPv6, firstByte: number): ipaddr.IPv4 {
  return new ipaddr.IPv4(address.toByteArray().slice(firstByte, firstByte + 4));
}

// NODE_USE_ENV_PROXY makes Node-compatible clients read the other variables.
const NAMES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NODE_USE_ENV_PROXY"];

/**
 * Deletes the proxy variables, in upper and lower case, from the environment of this process.
 *
 * The runtime reads them for every new HTTP client, and `NO_PROXY` would bypass the guard. Call this at startup, before the
 * first client. Child processes don't inherit them either.
 */
export function dropProxyEnvironment(): void {
  for (const name of NAMES) {
    Deno.env.delete(name);
    Deno.env.delete(name.toLowerCase());
  }
}
