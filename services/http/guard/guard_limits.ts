/** Limits and texts shared by the guard's proxy and guarded_get.ts. */

/** Limits of guarded requests. */
export interface ProxyLimits {
  /** For the lookup and all connection attempts. */
  connectMs: number;
  /** Until a client has sent its request head. */
  headMs: number;
  /** Of one head, request or response. */
  headBytes: number;
  /** Without data in either direction. */
  idleMs: number;
  /** Concurrent connections. Beyond that, a new one replaces the oldest that has not authenticated. */
  connections: number;
}

export const DEFAULT_PROXY_LIMITS: ProxyLimits = {
  connectMs: 10_000,
  headMs: 10_000,
  headBytes: 32 * 1024,
  idleMs: 30_000,
  connections: 128,
};

/** One text for a target that is forbidden, closed, silent or unknown, so that it reveals nothing about the network. */
export const REFUSAL_TEXT = "the address is not allowed or does not answer";
