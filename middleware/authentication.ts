/**
 * Fourth middleware: authentication. Maps paths and headers to the rules in services/auth/access_policy.ts, and reads and writes the
 * session cookie (docs/protocols/auth.md#sessions).
 */
import type { MiddlewareHandler } from "hono";
import type { AccessPolicy, PresentedCredentials, RouteAccess } from "../services/auth/access_policy.ts";
import { isLoopbackName, type PageOriginWatch } from "../services/auth/hosts.ts";
import type { OpenStreams } from "../services/auth/auth.ts";
import type { AppContext, Env, RequestFacts } from "./env.ts";
import { SESSION_IDLE_MS } from "../services/auth/sessions.ts";

/** Paths open to callers who want to sign in or add a passkey. */
const CEREMONY_PATH = /^\/api\/auth\/(status|register\/[^/]+|login\/[^/]+)$/;

/** Where the command line redeems its one-time code: open like a ceremony, but only on listed hosts. */
const REDEEM_PATH = "/api/auth/cli/redeem";

/** Returns whether a path is open to callers without credentials, even on unlisted hosts. */
export function isCeremonyPath(path: string): boolean {
  return CEREMONY_PATH.test(path);
}

/** Returns whether a path belongs to the OpenAI-compatible API. */
export function isOpenAiPath(path: string): boolean {
  return path === "/api/v1" || path.startsWith("/api/v1/");
}

/** Returns whether a request is a CORS preflight, which has no credentials and never reaches the router. */
export function isPreflight(request: Request): boolean {
  return request.method === "OPTIONS" && request.headers.has("access-control-request-method");
}

/**
 * Sets `identity`, renews the session cookie, and ends streams whose access is revoked.
 *
 * @throws {AppError} `unauthenticated`; `forbidden` for a token of another scope; `too_many_requests` after too many wrong tokens from one address.
 */
export function authentication(options: {
  access: AccessPolicy;
  streams: OpenStreams;
  pageOrigins: PageOriginWatch;
}): MiddlewareHandler<Env> {
  const { access, streams, pageOrigins } = options;
  return async (c, next) => {
    const { facts } = c.var;
    const pageOrigin = c.req.header("x-parlor-page");
    if (pageOrigin !== undefined) pageOrigins.note(pageOrigin, facts);
    if (isPreflight(c.req.raw)) {
      c.set("identity", { method: null, bypass: null });
    } else {
      c.set("identity", await access.decide(facts, readCredentials(c.req.raw, facts), getRouteAccess(c.req.path)));
    }
    await next();
    finish(c, streams, access);
  };
}

function finish(c: AppContext, streams: OpenStreams, access: AccessPolicy): void {
  const { identity, facts } = c.var;
  // A route that opens or ends a session sets the cookie itself.
  if (identity.method === "session" && identity.renewal !== undefined && !c.res.headers.has("set-cookie")) {
    sendSessionCookie(c, identity.renewal);
  }
  // Checks the type first: reading `body` turns a body that isn't a stream into one.
  if (!c.res.headers.get("content-type")?.startsWith("text/event-stream") || c.res.body === null) return;
  const watched = streams.watch(identity, access.getRpId(facts.host));
  if (watched !== undefined) c.res = new Response(endBodyOnRevocation(c.res.body, watched), c.res);
}

function getRouteAccess(path: string): RouteAccess {
  if (isCeremonyPath(path) || path === REDEEM_PATH) return "ceremony";
  if (path === "/api/setup/status") return "setup_status";
  return isOpenAiPath(path) ? "openai" : "other";
}

/** Reads the credentials of a request. */
export function readCredentials(request: Request, facts: Pick<RequestFacts, "scheme">): PresentedCredentials {
  return {
    bearerToken: findToken(request),
    sessionCookie: findCookie(request.headers.get("cookie"), getSessionCookieName(facts.scheme)),
  };
}

/** Finds the token of a request. A header takes precedence: another scheme in it disables `api_token`. */
function findToken(request: Request): string | null | undefined {
  const header = request.headers.get("authorization");
  if (header !== null) return /^Bearer +([^\s,]+)$/i.exec(header)?.[1] ?? null;
  if (!request.url.includes("api_token=")) return undefined;
  const values = new URL(request.url).searchParams.getAll("api_token");
  return values.length === 1 ? values[0] : null;
}

/** Finds a cookie by its exact name. Ignores cookies that occur twice, because an attacker could have set one. */
export function findCookie(header: string | null, name: string): string | undefined {
  if (header === null) return undefined;
  const values = header.split(";").map((pair) => pair.replace(/^[ \t]+|[ \t]+$/g, ""))
    .filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1));
  return values.length === 1 ? values[0] : undefined;
}

/**
 * Passes a body on until the signal fires; then the body ends and its source is canceled.
 *
 * @param watched.release Called once, however the body ends.
 */
export function endBodyOnRevocation(
  body: ReadableStream<Uint8Array>,
  watched: { signal: AbortSignal; release(): void },
): ReadableStream<Uint8Array> {
  const { signal, release } = watched;
  const reader = body.getReader();
  const onAbort = () => {
    // A waiting read ends at once, even if cancelling the source takes long (Streams, 4.3.3).
    reader.cancel(new Error("Access to this response was revoked")).catch(() => {});
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  const close = () => {
    signal.removeEventListener("abort", onAbort);
    release();
  };
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        close();
        controller.close();
      } catch (error) {
        close();
        controller.error(error);
      }
    },
    async cancel(reason) {
      close();
      await reader.cancel(reason);
    },
  }, { highWaterMark: 0 }); // The source is read only when the client is ready, as without this wrapper.
}

/** Returns the cookie's name; `__Host-` makes browsers refuse it from plain HTTP and from other hosts (RFC 6265bis). */
export function getSessionCookieName(scheme: "http" | "https"): string {
  return scheme === "https" ? "__Host-app_sess" : "app_sess";
}

/** Returns whether sessions are possible: over HTTPS or on loopback names. Elsewhere the network can read cookies. */
export function canHoldSession({ scheme, host }: Pick<RequestFacts, "scheme" | "host">): boolean {
  return scheme === "https" || isLoopbackName(host);
}

/** Sets the session cookie. Call only if `canHoldSession`. */
export function sendSessionCookie(c: AppContext, value: string): void {
  send(c, value, SESSION_IDLE_MS / 1000);
}

/** Makes the browser delete the cookie. */
export function clearSessionCookie(c: AppContext): void {
  send(c, "", 0);
}

function send(c: AppContext, value: string, maxAgeSeconds: number): void {
  const { scheme } = c.var.facts;
  const secure = scheme === "https" ? "; Secure" : "";
  const attributes = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax${secure}`;
  c.header("Set-Cookie", `${getSessionCookieName(scheme)}=${value}; ${attributes}`, { append: true });
}
