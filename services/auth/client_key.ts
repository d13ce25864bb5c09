/** Whom to count failures and open ceremonies against. */
import { ipText } from "../net/ip_address.ts";
import { parseAddress } from "./addresses.ts";

/**
 * Gives the key of a client: its IPv4 address, or the /64 of its IPv6 address, since one customer has all of that.
 *
 * @param address Canonical, or `"unknown"`.
 */
export function clientKey(address: string): string {
  const parsed = address.includes(":") ? parseAddress(address) : undefined;
  if (parsed?.kind !== "ipv6") return address;
  return `${ipText({ ...parsed, bytes: parsed.bytes.map((byte, at) => at < 8 ? byte : 0) })}/64`;
}
