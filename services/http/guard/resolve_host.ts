/** Resolves host names, for the guard and for the owner's servers. */
import { lookup } from "node:dns/promises";

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
