/** Decides where a public-only call may go: by the words of the target first, then by every address its name has. */
import { type Cidr, isAddress, isInsideCidrs, isPublicAddress, parseCidr } from "./address_ranges.ts";
import type { ResolveHost } from "./resolve_host.ts";

/** Where a connection is wanted: the host without brackets and trailing dot, in lower case. */
export interface Target {
  host: string;
  port: number;
}

export interface TargetPolicy {
  /** Tells what no lookup could change: wrong port, blocked name, literal address that is not public. A function of the words alone. */
  isRefusedUnresolved(target: Target): boolean;
  /** Gives the addresses to connect to, resolved once and each one judged; none when the target is refused or has no address. */
  resolveAllowed(target: Target): Promise<string[]>;
}

export interface TargetPolicyOptions {
  /** CIDRs whose addresses pass, on any port and under any name. */
  allow: string[];
  /** URLs whose exact host and port are free of the name and port rules; their addresses are judged like all others. */
  exactOrigins: string[];
  resolve: ResolveHost;
}

const USUAL_PORTS = new Set([80, 443]);

// RFC 6761 (localhost), RFC 6762 (local), RFC 8375 (home.arpa), ICANN's private-use internal.
const BLOCKED_SUFFIXES = ["localhost", "local", "internal", "home.arpa"];

/** Builds the policy; throws when `allow` holds no CIDR or `exactOrigins` no URL, which the configuration has checked before. */
export function createTargetPolicy({ allow, exactOrigins, resolve }: TargetPolicyOptions): TargetPolicy {
  const networks: Cidr[] = allow.map(parseCidr);
  const exact = new Set(exactOrigins.map((origin) => keyOf(targetOf(new URL(origin)))));
  const hasPlainWords = (target: Target) =>
    exact.has(keyOf(target)) ||
    (USUAL_PORTS.has(target.port) && (isAddress(target.host) || !isBlockedName(target.host)));
  const isAllowed = (address: string, target: Target) =>
    isInsideCidrs(address, networks) || (isPublicAddress(address) && hasPlainWords(target));
  const isRefusedUnresolved = (target: Target) =>
    isAddress(target.host)
      ? !isAllowed(target.host, target)
      // A name with odd words can still belong to an allowed network, which only a lookup can tell.
      : networks.length === 0 && !hasPlainWords(target);
  return {
    isRefusedUnresolved,
    async resolveAllowed(target) {
      if (isRefusedUnresolved(target)) return [];
      const addresses = isAddress(target.host) ? [target.host] : await resolve(target.host);
      // One bad address refuses them all: a name that mixes them is a trick or a mistake.
      return addresses.every((address) => isAllowed(address, target)) ? addresses : [];
    },
  };
}

/** Gives host and port of a parsed http(s) URL, as the rules compare them. */
export function targetOf(url: URL): Target {
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  return { host, port: url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port) };
}

function isBlockedName(host: string): boolean {
  return !host.includes(".") || BLOCKED_SUFFIXES.some((suffix) => host.endsWith(`.${suffix}`));
}

function keyOf({ host, port }: Target): string {
  return `${host} ${port}`;
}
