/** Whom to count failures and open ceremonies against. */
import { parseAddress } from "./addresses.ts";

/**
 * Gives the key of a client: its IPv4 address, or the /64 of its IPv6 address, since one customer has all of that.
 *
 * @param address Canonical, or `"unknown"`.
 */
export function clientKey(address: string): string {
  const parsed = address.includes(":") ? parseAddress(address) : undefined;
  return parsed?.kind() === "ipv6" ? parsed.toNormalizedString().split(":").slice(0, 4).join(":") : address;
}
