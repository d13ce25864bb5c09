/** Third link: nothing under /api/ is kept by a cache. A route may tighten it (`no-store, no-transform`), none loosens it. */
import type { MiddlewareHandler } from "hono";
import type { Env } from "./env.ts";

/** Puts `Cache-Control: no-store` on answers and on failures of the links behind it. */
export function noStore(): MiddlewareHandler<Env> {
  return async (c, next) => {
    await next();
    const given = c.res.headers.get("cache-control");
    if (given === null || !/\bno-store\b/.test(given)) c.res.headers.set("Cache-Control", "no-store");
  };
}
