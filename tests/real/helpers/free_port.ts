/** The lowest port that is given: above those of usual programs, and of those that browsers refuse. */
const FIRST_PORT = 15_000;
/** Where Linux begins to choose ports itself; macOS begins at 49,152. */
const USUAL_FIRST = 32_768;

/**
 * Returns a free port on loopback, below those that the system assigns by itself: a server may take half a minute until it
 * listens, or be away for a while, and no other program gets the port meanwhile.
 */
export function freePort(): number {
  const end = firstSystemPort();
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * (end - FIRST_PORT));
    try {
      using _listener = Deno.listen({ hostname: "127.0.0.1", port });
      return port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
}

/** The first port that the system chooses itself. @see ip(7) */
function firstSystemPort(): number {
  try {
    const first = Number.parseInt(Deno.readTextFileSync("/proc/sys/net/ipv4/ip_local_port_range"));
    return first > FIRST_PORT ? first : USUAL_FIRST;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return USUAL_FIRST; // Not Linux.
    throw error;
  }
}
