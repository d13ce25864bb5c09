/** What a redirect makes of a request (Fetch standard, "HTTP-redirect fetch"), with the stricter rules of the guard. */

/** One request in a chain of redirects. */
export interface Hop {
  url: URL;
  method: string;
  headers: Headers;
  body: BodyInit | undefined;
}

const REDIRECT_STATUS = new Set([301, 302, 303, 307, 308]);

// A list of what may travel rather than of secrets: keys come under many names (`Authorization`, `api-key`, `Cookie`, …).
const KEPT_AT_ANOTHER_ORIGIN = new Set([
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
 * Gives the next request.
 *
 * @returns undefined when the answer is no redirect; `"refused"` when it leads to no URL, from https to http, or would need a
 *   stream a second time. Where it leads is judged by whoever sends it.
 */
export function nextHop(hop: Hop, response: Response): Hop | "refused" | undefined {
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
    if ((becomesGet && describesBody) || (url.origin !== hop.url.origin && !KEPT_AT_ANOTHER_ORIGIN.has(name))) {
      headers.delete(name);
    }
  }
  return { url, method: becomesGet ? "GET" : hop.method, headers, body: becomesGet ? undefined : hop.body };
}
