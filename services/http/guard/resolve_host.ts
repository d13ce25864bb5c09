/** Names to addresses, for the guard and for the check of owner endpoints. */
import { lookup } from "node:dns/promises";

/** Gives every address of a host name, in the order they should be tried; throws or gives none when there is none. */
export type ResolveHost = (host: string) => Promise<string[]>;

/**
 * Resolves as the system does.
 *
 * getaddrinfo through node:dns rather than `Deno.resolveDns`: it reads /etc/hosts and nsswitch, which names at home live in,
 * gives both families in one answer, behaves alike on Deno 2.6 and 2.9, and is what a plain `fetch` of the runtime asks.
 */
export const resolveWithSystem: ResolveHost = async (host) => {
  const found = await lookup(host, { all: true });
  return found.map((entry) => entry.address);
};
