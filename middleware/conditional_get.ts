/** Last middleware before the routes: 304 and 412 for conditional reads, and Content-Length for HEAD. */
import type { MiddlewareHandler } from "hono";
import { AppError } from "../services/errors.ts";
import { matchesStrongly, matchesWeakly, parseTagList } from "../services/storage/preconditions.ts";
import type { Env } from "./env.ts";

/** Responses without Content-Length even for GET, because their length isn't known in advance. */
const UNMEASURED = /^(text\/event-stream|application\/zip)\b/;

/**
 * Handles `If-Match` and `If-None-Match` of GET and HEAD requests if the response has an ETag (RFC 9110, section
 * 13.2.2), and sets the Content-Length of HEAD responses to that of GET.
 *
 * @throws {AppError} `revision_mismatch` if `If-Match` doesn't match the version
 */
export function conditionalGet(): MiddlewareHandler<Env> {
  return async (c, next) => {
    await next();
    const { method } = c.req;
    if ((method !== "GET" && method !== "HEAD") || c.res.status !== 200) return;
    const { headers } = c.res;
    const tag = headers.get("etag");
    if (tag !== null) {
      const version = tag.replace(/^(?:W\/)?"(.*)"$/, "$1");
      const [ifMatch, ifNoneMatch] = [c.req.header("if-match"), c.req.header("if-none-match")];
      if (ifMatch !== undefined && !matchesStrongly(parseTagList(ifMatch), version)) {
        await c.res.body?.cancel();
        throw new AppError("revision_mismatch", "If-Match doesn't match the stored version");
      }
      if (ifNoneMatch !== undefined && matchesWeakly(parseTagList(ifNoneMatch), version)) {
        await c.res.body?.cancel();
        const unchanged = new Response(null, { status: 304, headers });
        unchanged.headers.delete("Content-Length");
        c.res = undefined;
        c.res = unchanged;
        return;
      }
    }
    const type = headers.get("content-type") ?? "";
    if (method !== "HEAD" || headers.has("content-length") || UNMEASURED.test(type) || c.res.body === null) return;
    let length = 0;
    for await (const chunk of c.res.body) length += chunk.length;
    const measured = new Response(null, c.res);
    measured.headers.set("Content-Length", String(length));
    c.res = undefined;
    c.res = measured;
  };
}
