/** Facts about a request that the middleware computes once. Later code reads no raw headers. */
import type { Context } from "hono";
import type { Identity } from "../services/auth/access_policy.ts";

export type { Identity } from "../services/auth/access_policy.ts";

/** What the listener knows about the connection of a request. */
export interface ClientConnection {
  /** Address of the socket's other end, as returned by the runtime. */
  peerAddress: string;
  listener: "main" | "tailnet";
  /** Fires when the listener starts to close: endless streams end then. */
  closing: AbortSignal;
  /**
   * How long a response waits for a client that doesn't read it, in milliseconds. If absent, the default of the
   * response applies.
   */
  stalledMs?: number;
  /** Ends the connection immediately, even during a response. */
  abort?(): void;
}

/** Client and origin of the request, set by trusted_proxies. */
export interface RequestFacts {
  /** Canonical address of the socket's other end; IPv4-mapped IPv6 as IPv4. */
  peerAddress: string;
  /**
   * Canonical address of the client: the peer, or the address that a trusted proxy sent; `"unknown"` if the proxy sent
   * that.
   */
  clientAddress: string;
  scheme: "http" | "https";
  /** Lowercase, without port and trailing dot; IPv6 in brackets. */
  host: string;
  /** Port, by default that of the scheme. */
  port: number;
  /** `scheme://host[:port]`, as browsers write it. */
  origin: string;
  /** The unchanged Host header. */
  hostHeader: string;
  /** Whether the peer is on this machine. Always false on the tailnet's listener, where the peer is the node. */
  isPeerLoopback: boolean;
  /** Whether the request was made on this machine (docs/protocols/auth.md#origin). */
  isLocal: boolean;
  /** Like `isLocal`, but ignores the Origin header. */
  isSameMachine: boolean;
  hasForwardingHeader: boolean;
  /** Name of the first one, for the log. */
  forwardingHeader: string | undefined;
  /** True if a peer that isn't in `trusted_proxies` sent forwarding headers, which were ignored. */
  untrustedProxy: boolean;
  listener: "main" | "tailnet";
  /** The `Origin` header; `null` if there is none. */
  requestOrigin: string | null;
}

/** Hono environment of all routes and middleware. */
export interface Env {
  Bindings: ClientConnection;
  Variables: {
    requestId: string;
    facts: RequestFacts;
    identity: Identity;
    /** Keeps the call counted against its token's limit until a promise settles. Absent for calls without a limit. */
    holdCall?(done: Promise<unknown>): void;
  };
}

/** Context of routes and middleware. */
export type AppContext = Context<Env>;

/**
 * Returns a signal that fires if the client disconnects before the response is complete.
 *
 * Needs the runtime's `no-legacy-abort` (deno.json): otherwise it fires after a success, too.
 */
export function getClientSignal(c: AppContext): AbortSignal {
  return c.req.raw.signal;
}
