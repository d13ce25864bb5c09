/** IP addresses as the access rules see them: one spelling each, and IPv4-mapped IPv6 is IPv4. */
import { type Cidr, type IpAddress, ipText, isInNetwork, parseCidr, parseIp, unmapped } from "../net/ip_address.ts";

const LOOPBACK = [parseCidr("127.0.0.0/8"), parseCidr("::1/128")];

/**
 * Parses an address in its usual spelling: four decimal parts, or IPv6 with or without brackets and zone.
 *
 * @returns `undefined` for anything else, `127.1`, `0x7f.1` and `2130706433` included.
 */
export function parseAddress(text: string): IpAddress | undefined {
  const bare = text.startsWith("[") && text.endsWith("]") ? text.slice(1, -1) : text;
  const address = parseIp(bare.includes(":") ? bare.split("%")[0]! : bare);
  return address && unmapped(address);
}

/** Gives an address in the one spelling that addresses are compared in; `undefined` as `parseAddress` does. */
export function canonicalAddress(text: string): string | undefined {
  const address = parseAddress(text);
  return address && ipText(address);
}

/** Tells whether an address is this machine talking to itself. */
export function isLoopbackAddress(text: string): boolean {
  const address = parseAddress(text);
  return address !== undefined && LOOPBACK.some((network) => isInNetwork(address, network));
}

/**
 * Makes a test for membership in a list of addresses and CIDRs; items of another kind are passed over.
 *
 * @returns A function of a canonical address, or of an IP literal host.
 */
export function addressMatcher(items: readonly string[]): (address: string) => boolean {
  const ranges = items.flatMap((item): Cidr[] => {
    const [base, bits] = item.split("/") as [string, string?];
    const address = parseAddress(base);
    if (address === undefined) return [];
    const whole = 8 * address.bytes.length;
    if (bits === undefined) return [[address, whole]];
    // A mapped range (::ffff:10.0.0.0/104) counts its bits in IPv6.
    const prefix = Number(bits) - (base.includes(":") && whole === 32 ? 96 : 0);
    return prefix >= 0 && prefix <= whole ? [[address, prefix]] : [];
  });
  return (text) => {
    const address = parseAddress(text);
    return address !== undefined && ranges.some((network) => isInNetwork(address, network));
  };
}
