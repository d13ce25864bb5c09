/** The answer of a plain HTTP exchange on its way from the server to the proxy's client. */
import { Buffer } from "node:buffer";
import { endToEndHeaders, formatHead, type HttpHead, readHead, valuesOf } from "./http_head.ts";
import type { ForwardRequest } from "./proxy_request.ts";
import { pump, writeAll } from "./sockets.ts";

/**
 * Passes interim heads, then the final head with `Connection: close`, then the body as it comes.
 *
 * A body that only the end of the connection would delimit is sent in chunks: else a server that broke off, or a limit of
 * ours, would look like the ordinary end of a shorter answer.
 *
 * @param touch Called whenever the server has sent something of the body.
 * @throws {Error} when the answer is no HTTP, its head is too long, or a socket fails.
 */
export async function forwardAnswer(
  upstream: Deno.Conn,
  client: Deno.Conn,
  request: ForwardRequest,
  headBytes: number,
  touch: () => void,
): Promise<void> {
  let { head, rest } = await readHead(upstream, headBytes);
  let status = statusOf(head);
  for (; status < 200; status = statusOf(head)) {
    await writeAll(client, formatHead({ startLine: ownVersion(head), headers: endToEndHeaders(head) }));
    ({ head, rest } = await readHead(upstream, headBytes, rest));
  }
  touch();
  const hasBody = request.method !== "HEAD" && status !== 204 && status !== 304;
  const hasLength = valuesOf(head, "content-length").length > 0 || valuesOf(head, "transfer-encoding").length > 0;
  const isChunked = hasBody && !hasLength && request.takesChunks;
  const headers = endToEndHeaders(head);
  headers.push(["Connection", "close"]);
  if (isChunked) headers.push(["Transfer-Encoding", "chunked"]);
  await writeAll(client, formatHead({ startLine: ownVersion(head), headers }));
  const pass = async (bytes: Uint8Array) => {
    touch();
    if (bytes.length > 0) await writeAll(client, isChunked ? chunkOf(bytes) : bytes);
  };
  await pass(rest);
  await pump(upstream, pass);
  if (isChunked) await writeAll(client, Buffer.from("0\r\n\r\n"));
}

function statusOf(head: HttpHead): number {
  const [, status] = /^HTTP\/1\.[01] ([1-9]\d\d)(?: |$)/.exec(head.startLine) ?? [];
  if (status === undefined) throw new Error("Cannot read the answer: it is no HTTP");
  return Number(status);
}

/** A proxy answers in the version it speaks itself (RFC 9110, section 2.5); chunks need 1.1. */
function ownVersion({ startLine }: HttpHead): string {
  return startLine.replace(/^HTTP\/1\.0/, "HTTP/1.1");
}

function chunkOf(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
}
