/** Facts about a request that the middleware computes once. Later code reads no raw headers. */
import type { Context } from "hono";
import type { Identity } from "../services/auth/access_policy.ts";

export type { Identity } from "../services/auth/access_policy.ts";

/** What the listener knows about the connection of a request. */
export interface ClientConnection {
  /** Address of the socket's other end as the runtime gives it. */
  peerAddress: string;
  listener: "main" | "tailnet";
  /** Fires when the listener starts to close: endless streams end then. */
  closing: AbortSignal;
  /** How long an answer waits for a client that takes nothing of it; the default of the answer if absent. */
  stalledMs?: number;
  /** Ends the connection at once, also in the middle of an answer. */
  abort?(): void;
}

/** Client and origin of the request, set by trusted_proxies. */
export interface RequestFacts {
  /** Canonical address of the socket's other end; IPv4-mapped IPv6 as IPv4. */
  peerAddress: string;
  /** Canonical address of the client: the peer, or what a trusted proxy said; `"unknown"` where it said so. */
  clientAddress: string;
  scheme: "http" | "https";
  /** Lower case, no port, no trailing dot; IPv6 in brackets. */
  host: string;
  /** The default port of the scheme where none was written. */
  port: number;
  /** `scheme://host[:port]`, as a browser would write it. */
  origin: string;
  /** The Host header as it came. */
  hostHeader: string;
  /** The other end is this machine; never behind the tailnet's listener, where it is but the node. */
  isPeerLoopback: boolean;
  /** The request was made on this machine (docs/protocols/auth.md#origin). */
  isLocal: boolean;
  /** As `isLocal`, whatever the Origin header says. */
  isSameMachine: boolean;
  hasForwardingHeader: boolean;
  /** True if a peer that isn't in `trusted_proxies` sent forwarding headers, which were ignored. */
  untrustedProxy: boolean;
  listener: "main" | "tailnet";
  /** The `Origin` header; `null` when there is none. */
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
