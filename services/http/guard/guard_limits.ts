/** What both ways out for public-only calls have in common: guard_proxy.ts, and guarded_get.ts, which runs without it. */

/** What a call may cost. */
export interface ProxyLimits {
  /** Lookup and connection attempts together. */
  connectMs: number;
  /** From accepting a client to the end of its request head. */
  headMs: number;
  /** One head, request or answer. */
  headBytes: number;
  /** Without a byte in either direction. */
  idleMs: number;
  /** At one time; a newcomer then takes the place of the oldest that has not shown the password. */
  connections: number;
}

export const DEFAULT_PROXY_LIMITS: ProxyLimits = {
  connectMs: 10_000,
  headMs: 10_000,
  headBytes: 32 * 1024,
  idleMs: 30_000,
  connections: 128,
};

/** The one text for a target that is not allowed, closed, silent or unknown: whoever asks learns nothing of our network. */
export const REFUSAL_TEXT = "the address is not allowed or does not answer";
