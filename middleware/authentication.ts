/** Fourth link: who is asking. The rules are in services/auth/access.ts; here they meet paths and headers. */
import type { MiddlewareHandler } from "hono";
import type { AccessPolicy, PresentedCredentials, RouteAccess } from "../services/auth/access.ts";
import type { PageOriginWatch } from "../services/auth/page_origin.ts";
import type { Env, RequestFacts } from "./env.ts";

/** Paths that a stranger needs in order to become somebody. */
const CEREMONY_PATH = /^\/api\/auth\/(status|register\/[^/]+|login\/[^/]+)$/;

/** Tells whether a path is open to callers without credentials, and on hosts not listed yet. */
export function isCeremonyPath(path: string): boolean {
  return CEREMONY_PATH.test(path);
}

/** Tells whether a request is a browser's CORS preflight: it carries no credentials and never reaches the router. */
export function isPreflight(request: Request): boolean {
  return request.method === "OPTIONS" && request.headers.has("access-control-request-method");
}

/**
 * Sets `identity`.
 *
 * @throws {AppError} `unauthenticated`
 */
export function authentication(options: {
  access: AccessPolicy;
  pageOrigins: PageOriginWatch;
}): MiddlewareHandler<Env> {
  const { access, pageOrigins } = options;
  return async (c, next) => {
    const { facts } = c.var;
    const pageOrigin = c.req.header("x-parlor-page");
    if (pageOrigin !== undefined) pageOrigins.note(pageOrigin, facts);
    if (isPreflight(c.req.raw)) {
      c.set("identity", { method: null, bypass: null });
    } else {
      c.set("identity", await access.decide(facts, presentedBy(c.req.raw, facts), routeAccess(c.req.path)));
    }
    await next();
  };
}

function routeAccess(path: string): RouteAccess {
  if (isCeremonyPath(path)) return "ceremony";
  return path === "/api/setup/status" ? "setup_status" : "other";
}

/** Picks out what a request presents as its credentials. */
export function presentedBy(request: Request, facts: Pick<RequestFacts, "scheme">): PresentedCredentials {
  const cookieName = facts.scheme === "https" ? "__Host-app_sess" : "app_sess";
  return {
    bearerToken: presentedToken(request),
    sessionCookie: cookieValue(request.headers.get("cookie"), cookieName),
  };
}

/** The header decides where there is one (SPEC): another scheme in it rules `api_token` out. */
function presentedToken(request: Request): string | null | undefined {
  const header = request.headers.get("authorization");
  if (header !== null) return /^Bearer +([^\s,]+)$/i.exec(header)?.[1] ?? null;
  if (!request.url.includes("api_token=")) return undefined;
  const values = new URL(request.url).searchParams.getAll("api_token");
  return values.length === 1 ? values[0] : null;
}

/** Finds a cookie by its exact name; a name given twice is nobody's (an attacker may have planted the first). */
function cookieValue(header: string | null, name: string): string | undefined {
  if (header === null) return undefined;
  const values = header.split(";").map((pair) => pair.replace(/^[ \t]+|[ \t]+$/g, ""))
    .filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1));
  return values.length === 1 ? values[0] : undefined;
}
