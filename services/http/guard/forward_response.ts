/** Forwards the response of a plain HTTP request to the proxy's client. */
import { Buffer } from "node:buffer";
import { formatHead, type HttpHead, keepEndToEndHeaders, listValues, readHead } from "./http_head.ts";
import type { ForwardRequest } from "./proxy_request.ts";
import { pump, writeAll } from "./sockets.ts";

/**
 * Forwards interim heads, the final head with `Connection: close`, and the body.
 *
 * A body without a length is sent in chunks. Otherwise a broken connection would look like the end of a shorter response.
 *
 * @param touch Called whenever the server has sent part of the body.
 * @throws {Error} if the response isn't HTTP, its head is too long, or a socket fails
 */
export async function forwardResponse(
  upstream: Deno.Conn,
  client: Deno.Conn,
  request: ForwardRequest,
  headBytes: number,
  touch: () => void,
): Promise<void> {
  let { head, rest } = await readHead(upstream, headBytes);
  let status = parseStatus(head);
  for (; status < 200; status = parseStatus(head)) {
    await writeAll(client, formatHead({ startLine: toOwnVersion(head), headers: keepEndToEndHeaders(head) }));
    ({ head, rest } = await readHead(upstream, headBytes, rest));
  }
  touch();
  const hasBody = request.method !== "HEAD" && status !== 204 && status !== 304;
  const hasLength = listValues(head, "content-length").length > 0 || listValues(head, "transfer-encoding").length > 0;
  const isChunked = hasBody && !hasLength && request.takesChunks;
  const headers = keepEndToEndHeaders(head);
  headers.push(["Connection", "close"]);
  if (isChunked) headers.push(["Transfer-Encoding", "chunked"]);
  await writeAll(client, formatHead({ startLine: toOwnVersion(head), headers }));
  const pass = async (bytes: Uint8Array) => {
    touch();
    if (bytes.length > 0) await writeAll(client, isChunked ? toChunk(bytes) : bytes);
  };
  await pass(rest);
  await pump(upstream, pass);
  if (isChunked) await writeAll(client, Buffer.from("0\r\n\r\n"));
}

function parseStatus(head: HttpHead): number {
  const [, status] = /^HTTP\/1\.[01] ([1-9]\d\d)(?: |$)/.exec(head.startLine) ?? [];
  if (status === undefined) throw new Error("Can't read the response: it isn't HTTP");
  return Number(status);
}

/** A proxy responds with its own HTTP version (RFC 9110, section 2.5); chunks need 1.1. */
function toOwnVersion({ startLine }: HttpHead): string {
  return startLine.replace(/^HTTP\/1\.0/, "HTTP/1.1");
}

function toChunk(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
}
