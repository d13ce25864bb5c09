/** Follows redirects as the Fetch standard does (https://fetch.spec.whatwg.org/#http-redirect-fetch), with stricter rules. */

/** One request in a chain of redirects. */
export interface Hop {
  url: URL;
  method: string;
  headers: Headers;
  body: BodyInit | undefined;
}

const REDIRECT_STATUS = new Set([301, 302, 303, 307, 308]);

// An allow list, because keys have many names (`Authorization`, `api-key`, `Cookie`, …).
const CROSS_ORIGIN_HEADERS = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "content-type",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "range",
  "user-agent",
]);

/**
 * Returns the next request. The caller checks its address.
 *
 * @returns undefined if the response isn't a redirect; `"refused"` if it has no valid URL, leads from https to http, or would
 *   send a stream a second time
 */
export function toNextHop(hop: Hop, response: Response): Hop | "refused" | undefined {
  const location = response.headers.get("location");
  if (!REDIRECT_STATUS.has(response.status) || location === null) return undefined;
  if (!URL.canParse(location, hop.url)) return "refused";
  const url = new URL(location, hop.url);
  if (hop.url.protocol === "https:" && url.protocol === "http:") return "refused";
  const becomesGet = (response.status === 303 && hop.method !== "HEAD") ||
    (response.status < 303 && hop.method === "POST");
  if (!becomesGet && hop.body instanceof ReadableStream) return "refused";
  const headers = new Headers(hop.headers);
  for (const name of [...headers.keys()]) {
    const describesBody = name.startsWith("content-");
    if ((becomesGet && describesBody) || (url.origin !== hop.url.origin && !CROSS_ORIGIN_HEADERS.has(name))) {
      headers.delete(name);
    }
  }
  return { url, method: becomesGet ? "GET" : hop.method, headers, body: becomesGet ? undefined : hop.body };
}
