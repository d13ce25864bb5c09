/** First middleware: client address and origin of the request. X-Forwarded-* headers count only from trusted proxies. */
import type { MiddlewareHandler } from "hono";
import type { Env } from "./env.ts";
import { requestFactsFor } from "./request_facts.ts";

/**
 * Sets `facts`.
 *
 * @param trustedProxies IPs and CIDRs of `trusted_proxies`.
 * @throws {AppError} `invalid_request` for a Host, target or forwarding header that cannot be read.
 */
export function trustedProxies(trustedProxies: readonly string[]): MiddlewareHandler<Env> {
  const factsOf = requestFactsFor(trustedProxies);
  return async (c, next) => {
    c.set("facts", factsOf(c.req.raw, c.env));
    await next();
  };
}
