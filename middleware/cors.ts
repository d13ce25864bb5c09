/** Sixth middleware: rejects requests from other sites, both reads and writes, and answers preflights. */
import type { MiddlewareHandler } from "hono";
import { AppError } from "../services/errors.ts";
import { isOpenAiPath, isPreflight } from "./authentication.ts";
import type { AppContext, Env, RequestFacts } from "./env.ts";
import type { RouteTable } from "./route_table.ts";

const ALLOWED_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE";
const ALLOWED_HEADERS =
  "Accept, Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID, Range, X-Parlor-Page";
const EXPOSED_HEADERS = "Content-Disposition, ETag, Retry-After, X-Parlor-Assistant-Message-Id, " +
  "X-Parlor-Conversation-Id, X-Parlor-Job-Id, X-Parlor-Trash-Id, X-Parlor-User-Message-Id, " +
  "X-Parlor-Warning, X-Request-Id";
const PREFLIGHT_MAX_AGE_SECONDS = 600;

/** Types an HTML form can send without a preflight (Fetch, "CORS-safelisted request-header"). */
const FORM_TYPES = new Set(["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]);

/**
 * Returns the CORS headers of a response: all for a listed origin, otherwise only `Vary`.
 *
 * Also used for errors before the CORS middleware: a page on a listed origin must be able to read its 401.
 */
export function createCorsHeaders(requestOrigin: string | null, corsOrigins: readonly string[]): [string, string][] {
  if (requestOrigin === null || !corsOrigins.includes(requestOrigin)) return [["Vary", "Origin"]];
  return [
    ["Vary", "Origin"],
    ["Access-Control-Allow-Origin", requestOrigin],
    ["Access-Control-Allow-Credentials", "true"],
    ["Access-Control-Expose-Headers", EXPOSED_HEADERS],
  ];
}

/**
 * @param options.corsOrigins Exact origins of `cors_origins`.
 * @throws {AppError} `cross_site`; `unsupported_media_type` for a write that an HTML form could have sent.
 */
export function cors(options: {
  corsOrigins: readonly string[];
  routes: () => RouteTable;
}): MiddlewareHandler<Env> {
  const { corsOrigins, routes } = options;
  return async (c, next) => {
    const { facts } = c.var;
    if (isPreflight(c.req.raw)) return respondToPreflight(c, corsOrigins);
    if (!isSignInCallback(c.req) && isCrossSite(facts, c.req.header("sec-fetch-site"), corsOrigins)) {
      throw new AppError(
        "cross_site",
        "The request comes from a page on another site. To allow it, add the site to cors_origins",
      );
    }
    const takesMultipart = routes().find(c.req.method, c.req.path)?.bodyTypes.includes("multipart/form-data") ?? false;
    assertNoFormType(c.req.raw, takesMultipart);
    await next();
  };
}

function respondToPreflight(c: AppContext, corsOrigins: readonly string[]): Response {
  const { requestOrigin, origin } = c.var.facts;
  if (requestOrigin !== origin && (requestOrigin === null || !corsOrigins.includes(requestOrigin))) {
    throw new AppError(
      "cross_site",
      "Pages of this origin can't call this server. To allow it, add the origin to cors_origins",
    );
  }
  return c.body(null, 204, {
    "Access-Control-Allow-Methods": ALLOWED_METHODS,
    "Access-Control-Allow-Headers": isOpenAiPath(c.req.path) ? allowRequestedHeaders(c) : ALLOWED_HEADERS,
    "Access-Control-Max-Age": String(PREFLIGHT_MAX_AGE_SECONDS),
  });
}

/** Allows the headers that the page requests: OpenAI's client sends a dozen of its own, more with each version. */
function allowRequestedHeaders(c: AppContext): string {
  const requested = c.req.header("access-control-request-headers") ?? "";
  return /^[\w\-, ]+$/.test(requested) ? `${ALLOWED_HEADERS}, ${requested}` : ALLOWED_HEADERS;
}

/**
 * Returns whether a request is the callback of a sign-in, to which an authorization server sends the browser. It still
 * needs the owner's session, and the secret of a sign-in that the owner has started.
 */
function isSignInCallback(request: AppContext["req"]): boolean {
  const { method, path } = request;
  return method === "GET" && path === "/api/tools/callback" && request.header("sec-fetch-dest") === "document";
}

/**
 * Returns whether a page on another site sent a request. Fetch metadata decides, then Origin. Without both, the request
 * comes from a program, or is a read by a very old browser.
 */
function isCrossSite(facts: RequestFacts, site: string | undefined, corsOrigins: readonly string[]): boolean {
  const { requestOrigin, origin } = facts;
  const isListed = requestOrigin !== null && corsOrigins.includes(requestOrigin);
  if (isListed) return false;
  // "none" is the user's own action: the address bar, a bookmark.
  if (site === "same-origin" || site === "none") return false;
  if (site !== undefined) return true;
  return requestOrigin !== null && requestOrigin !== origin;
}

function assertNoFormType(request: Request, takesMultipart: boolean): void {
  const { method, headers } = request;
  if (method === "GET" || method === "HEAD" || !hasBody(request)) return;
  const type = (headers.get("content-type") ?? "").split(";", 1)[0]!.trim().toLowerCase();
  if (type === "") {
    throw new AppError("unsupported_media_type", "The request has a body but no Content-Type");
  }
  // Two joined headers, or a list: browsers parse such values differently, so they aren't trusted.
  if (type.includes(",") || (FORM_TYPES.has(type) && !(takesMultipart && type === "multipart/form-data"))) {
    throw new AppError(
      "unsupported_media_type",
      "The request's Content-Type is one that an HTML form on any site can send. Use application/json",
    );
  }
}

function hasBody(request: Request): boolean {
  const length = request.headers.get("content-length");
  if (length !== null) return length !== "0";
  // HTTP/2 may send a body without its length; the runtime then shows a body even if it is empty.
  return request.headers.has("transfer-encoding") || (!request.headers.has("host") && request.body !== null);
}
