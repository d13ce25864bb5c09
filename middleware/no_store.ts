/** Third middleware: no caching below /api/. A route can make it stricter (`no-store, no-transform`), but not looser. */
import type { MiddlewareHandler } from "hono";
import type { Env } from "./env.ts";

/** Adds `Cache-Control: no-store` to all responses, including errors. */
export function noStore(): MiddlewareHandler<Env> {
  return async (c, next) => {
    await next();
    const header = c.res.headers.get("cache-control");
    if (header === null || !/\bno-store\b/.test(header)) c.res.headers.set("Cache-Control", "no-store");
  };
}
