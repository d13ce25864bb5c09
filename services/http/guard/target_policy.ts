/** Decides where a guarded request may go (first by host and port, then by every address of the host), and its limits. */
import { lookup } from "node:dns/promises";
import { type Cidr, isAddress, isInsideCidrs, isPublicAddress, parseCidr } from "./address_ranges.ts";

/** A host without brackets and trailing dot, in lower case, and a port. */
export interface Target {
  host: string;
  port: number;
}

export interface TargetPolicy {
  /** Reports whether the target is refused without a lookup: wrong port, blocked name, or an address that isn't public. */
  isRefusedUnresolved(target: Target): boolean;
  /** Resolves the target once and checks every address. Returns none if the target is refused or has no address. */
  resolveAllowed(target: Target): Promise<string[]>;
}

export interface TargetPolicyOptions {
  /** CIDRs that are allowed on any port and under any name. */
  allow: string[];
  /** URLs whose host and port are exempt from the name and port rules. Their addresses are checked like all others. */
  exactOrigins: string[];
  resolve: ResolveHost;
}

const USUAL_PORTS = new Set([80, 443]);

// RFC 6761 (localhost), RFC 6762 (local), RFC 8375 (home.arpa), ICANN's private-use internal.
const BLOCKED_SUFFIXES = ["localhost", "local", "internal", "home.arpa"];

/** Creates the policy. The configuration has validated `allow` and `exactOrigins`. */
export function createTargetPolicy({ allow, exactOrigins, resolve }: TargetPolicyOptions): TargetPolicy {
  const networks: Cidr[] = allow.map(parseCidr);
  const exact = new Set(exactOrigins.map((origin) => toKey(toTarget(new URL(origin)))));
  const hasAllowedName = (target: Target) =>
    exact.has(toKey(target)) ||
    (USUAL_PORTS.has(target.port) && (isAddress(target.host) || !isBlockedName(target.host)));
  const isAllowed = (address: string, target: Target) =>
    isInsideCidrs(address, networks) || (isPublicAddress(address) && hasAllowedName(target));
  const isRefusedUnresolved = (target: Target) =>
    isAddress(target.host)
      ? !isAllowed(target.host, target)
      // Any other name can still resolve to an allowed network.
      : networks.length === 0 && !hasAllowedName(target);
  return {
    isRefusedUnresolved,
    async resolveAllowed(target) {
      if (isRefusedUnresolved(target)) return [];
      const addresses = isAddress(target.host) ? [target.host] : await resolve(target.host);
      // One forbidden address refuses all: a mix is an attack or a mistake.
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

/** Returns all addresses of a host name in the order to try them. Throws or returns none if there are none. */
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

/** Limits and texts shared by the guard's proxy and guarded_get.ts. */

/** Limits of guarded requests. */
export interface ProxyLimits {
  /** For the lookup and all connection attempts. */
  connectMs: number;
  /** Until a client has sent its request head. */
  headMs: number;
  /** Of one head, request or response. */
  headBytes: number;
  /** Without data in either direction. */
  idleMs: number;
  /** Concurrent connections. Beyond that, a new one replaces the oldest that has not authenticated. */
  connections: number;
}

export const DEFAULT_PROXY_LIMITS: ProxyLimits = {
  connectMs: 10_000,
  headMs: 10_000,
  headBytes: 32 * 1024,
  idleMs: 30_000,
  connections: 128,
};

/** One text for a target that is forbidden, closed, silent or unknown, so that it reveals nothing about the network. */
export const REFUSAL_TEXT = "the address is not allowed or does not answer";
