/** The session cookie (docs/protocols/auth.md#sessions). services/auth reads its value. */
import { isLoopbackName } from "../services/auth/host_names.ts";
import { SESSION_IDLE_MS } from "../services/auth/sessions.ts";
import type { AppContext, RequestFacts } from "./env.ts";

/** Returns the cookie's name; `__Host-` makes browsers refuse it from plain HTTP and from other hosts (RFC 6265bis). */
export function sessionCookieName(scheme: "http" | "https"): string {
  return scheme === "https" ? "__Host-app_sess" : "app_sess";
}

/** Returns whether sessions are possible: over HTTPS or on loopback names. Elsewhere the network can read cookies. */
export function canHoldSession({ scheme, host }: Pick<RequestFacts, "scheme" | "host">): boolean {
  return scheme === "https" || isLoopbackName(host);
}

/** Sends the cookie; the caller has asked `canHoldSession`. */
export function sendSessionCookie(c: AppContext, value: string): void {
  send(c, value, SESSION_IDLE_MS / 1000);
}

/** Makes the browser forget the cookie. */
export function clearSessionCookie(c: AppContext): void {
  send(c, "", 0);
}

function send(c: AppContext, value: string, maxAgeSeconds: number): void {
  const { scheme } = c.var.facts;
  const secure = scheme === "https" ? "; Secure" : "";
  const attributes = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax${secure}`;
  c.header("Set-Cookie", `${sessionCookieName(scheme)}=${value}; ${attributes}`, { append: true });
}
