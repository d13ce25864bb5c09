/** IP addresses in canonical form, and the keys that count failures per client. IPv4-mapped IPv6 addresses are IPv4. */
import ipaddr from "ipaddr.js";

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
export function addressMatcher(items: readonly string[]): (address: string) => boolean {
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
