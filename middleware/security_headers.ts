/** Outermost middleware: request IDs and security headers on every response, including errors. */
import type { MiddlewareHandler } from "hono";
import { createUuidV7 } from "../services/crypto/random.ts";
import { createCorsHeaders } from "./cors.ts";
import type { Env } from "./env.ts";

/** Content security policy of everything except the page, which sets its own (routes/ui.ts). */
const DATA_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox";

/** What no page and frame here needs. Microphone and clipboard are for dictation and for copying. */
const PERMISSIONS = [
  ...[
    "accelerometer",
    "autoplay=(self)",
    "bluetooth",
    "browsing-topics",
    "camera",
    "display-capture",
    "encrypted-media",
  ],
  ...["geolocation", "gyroscope", "hid", "idle-detection", "local-fonts", "magnetometer", "microphone=(self)", "midi"],
  ...["payment", "publickey-credentials-create=(self)", "publickey-credentials-get=(self)", "serial", "usb"],
  ...["window-management", "xr-spatial-tracking"],
].map((feature) => feature.includes("=") ? feature : `${feature}=()`).join(", ");

/** One year, as the API promises. */
const HSTS = "max-age=31536000; includeSubDomains";

/**
 * Adds an ID to each request, and security and CORS headers to each response.
 *
 * @param corsOrigins Origins of `cors_origins`
 */
export function securityHeaders(corsOrigins: readonly string[]): MiddlewareHandler<Env> {
  return async (c, next) => {
    c.set("requestId", createUuidV7());
    await next();
    if (c.req.method === "HEAD" && c.res.body !== null) {
      // Hono answers HEAD with the GET handler and drops the body; an unread stream would never end.
      await c.res.body.cancel();
      c.res = new Response(null, c.res);
    }
    const { headers } = c.res;
    headers.set("X-Request-Id", c.var.requestId);
    headers.set("X-Content-Type-Options", "nosniff");
    headers.set("Referrer-Policy", "no-referrer");
    headers.set("Permissions-Policy", PERMISSIONS);
    if (!headers.has("x-frame-options")) headers.set("X-Frame-Options", "DENY");
    headers.set("Cross-Origin-Resource-Policy", "same-origin");
    headers.set("Cross-Origin-Opener-Policy", "same-origin");
    if (!headers.has("content-security-policy")) headers.set("Content-Security-Policy", DATA_POLICY);
    const facts: Env["Variables"]["facts"] | undefined = c.get("facts");
    const isHttps = facts === undefined ? c.req.raw.url.startsWith("https:") : facts.scheme === "https";
    if (isHttps) headers.set("Strict-Transport-Security", HSTS);
    for (const [name, value] of createCorsHeaders(facts?.requestOrigin ?? null, corsOrigins)) {
      if (name === "Vary") headers.append(name, value);
      else headers.set(name, value);
    }
  };
}
