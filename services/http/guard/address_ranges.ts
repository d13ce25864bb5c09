/** Which IP addresses outbound requests may reach: public ones for guarded requests, all but a few for the owner's servers. */
import ipaddr from "ipaddr.js";

type Address = ipaddr.IPv4 | ipaddr.IPv6;
/** A network and its prefix length. */
export type Cidr = [Address, number];

const cidrs = (list: string): Cidr[] => list.trim().split(/\s+/).map((text) => ipaddr.parseCIDR(text));

// IANA IPv4 Special-Purpose Address Registry, multicast, class E; 168.63.129.16 is Azure's host agent on a public number.
const NOT_PUBLIC_V4 = cidrs(`
  0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32`);

// All global unicast addresses are in 2000::/3 (RFC 4291, section 2.4); everything else is not public.
const GLOBAL_UNICAST_V6 = cidrs("2000::/3");
const NOT_PUBLIC_V6 = cidrs("2001::/23 2001:db8::/32 2002::/16 3fff::/20");
const NAT64_WELL_KNOWN = cidrs("64:ff9b::/96"); // RFC 6052: the last 32 bits are the IPv4 address

// Link-local, and the metadata services of clouds: Azure, Alibaba, Oracle; AWS, Google and Scaleway over IPv6.
const FORBIDDEN_TO_OWNER = cidrs(`
  169.254.0.0/16 168.63.129.16/32 100.100.100.200/32 192.0.0.192/32
  fe80::/10 fd00:ec2::/32 fd20:ce::254/128 fd00:42::42/128`);

// Forms that end in an IPv4 address: compatible, mapped, translated (RFC 2765), NAT64 well-known and local (RFC 8215).
const ENDS_IN_V4 = cidrs("::/96 ::ffff:0:0/96 ::ffff:0:0:0/96 64:ff9b::/96 64:ff9b:1::/48");
const SIX_TO_FOUR = cidrs("2002::/16"); // RFC 3056: the IPv4 address follows the prefix

/**
 * Returns whether a public-only call may reach this address.
 *
 * IPv6 outside global unicast is never public.
 *
 * @param ip Canonical dotted IPv4, or IPv6 without brackets and zone; any other spelling (octal, hex, short) is not public.
 * @see https://www.iana.org/assignments/iana-ipv4-special-registry
 */
export function isPublicAddress(ip: string): boolean {
  const address = parseAddress(ip);
  if (address === undefined) return false;
  if (address instanceof ipaddr.IPv4) return !isInside(address, NOT_PUBLIC_V4);
  if (isInside(address, NAT64_WELL_KNOWN)) return !isInside(embeddedV4(address, 12), NOT_PUBLIC_V4);
  return isInside(address, GLOBAL_UNICAST_V6) && !isInside(address, NOT_PUBLIC_V6);
}

/**
 * Reports whether an address is forbidden even for the owner's servers: link-local and cloud metadata.
 *
 * IPv6 addresses that embed such an IPv4 address are forbidden, too. Loopback and private addresses are allowed.
 *
 * @param ip As for {@link isPublicAddress}. Text that isn't an address is forbidden.
 */
export function isForbiddenToOwner(ip: string): boolean {
  const address = parseAddress(ip);
  if (address === undefined || isInside(address, FORBIDDEN_TO_OWNER)) return true;
  if (address instanceof ipaddr.IPv4) return false;
  if (isInside(address, ENDS_IN_V4)) return isInside(embeddedV4(address, 12), FORBIDDEN_TO_OWNER);
  return isInside(address, SIX_TO_FOUR) && isInside(embeddedV4(address, 2), FORBIDDEN_TO_OWNER);
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

/** Reports whether the text is an address in the spelling this file accepts. */
export function isAddress(text: string): boolean {
  return parseAddress(text) !== undefined;
}

/** Parses strictly: one spelling of IPv4, and no IPv6 zone, which would select an interface. */
function parseAddress(text: string): Address | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  return !text.includes("%") && ipaddr.IPv6.isValid(text) ? ipaddr.IPv6.parse(text) : undefined;
}

function isInside(address: Address, networks: readonly Cidr[]): boolean {
  return networks.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits));
}

function embeddedV4(address: ipaddr.IPv6, firstByte: number): ipaddr.IPv4 {
  return new ipaddr.IPv4(address.toByteArray().slice(firstByte, firstByte + 4));
}
