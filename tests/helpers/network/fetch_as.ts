/** Requests with headers that `fetch` would not send: Host, Origin, Sec-Fetch-Site. */
import { type RawAnswer, rawRequest } from "./raw_http.ts";

/** A request header by header. */
export interface PlainRequest {
  method?: string;
  path?: string;
  /** `localhost:PORT` by default. */
  host?: string;
  headers?: Record<string, string | string[]>;
  body?: string;
}

/** Sends it to a server on this machine and returns the response. */
export function fetchAs(app: { port: number }, request: PlainRequest): Promise<RawAnswer> {
  const { method = "GET", path = "/api/setup/status", host = `localhost:${app.port}`, headers = {}, body } = request;
  const lines = [`${method} ${path} HTTP/1.1`, `Host: ${host}`, "Connection: close"];
  for (const [name, values] of Object.entries(headers)) {
    for (const value of [values].flat()) lines.push(`${name}: ${value}`);
  }
  if (body !== undefined) lines.push(`Content-Length: ${new TextEncoder().encode(body).length}`);
  return rawRequest(app.port, `${lines.join("\r\n")}\r\n\r\n${body ?? ""}`);
}

/** Returns the code of an error response; `undefined` for any other body. */
export function codeOf(answer: RawAnswer): string | undefined {
  try {
    const body: unknown = JSON.parse(answer.body);
    if (typeof body !== "object" || body === null || !("error" in body)) return undefined;
    return (body.error as { code?: string }).code;
  } catch {
    return undefined;
  }
}
