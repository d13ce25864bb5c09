/** Identifies clients, for counting failures and ceremonies. */
import { parseAddress } from "./addresses.ts";

/**
 * Returns the key of a client: its IPv4 address, or the /64 network of its IPv6 address, because one customer gets a whole /64.
 *
 * @param address Canonical, or `"unknown"`.
 */
export function clientKey(address: string): string {
  const parsed = address.includes(":") ? parseAddress(address) : undefined;
  return parsed?.kind() === "ipv6" ? parsed.toNormalizedString().split(":").slice(0, 4).join(":") : address;
}
