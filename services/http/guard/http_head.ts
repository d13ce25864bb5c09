/** Parses and formats HTTP/1.1 heads: strict, limited, byte for byte. */
import { Buffer } from "node:buffer";

/** A start line and its header fields, as Latin-1 text so that every byte is preserved. */
export interface HttpHead {
  startLine: string;
  headers: [name: string, value: string][];
}

/** Hop-by-hop headers (RFC 9110, section 7.6.1, and older names still in use). */
const HOP_HEADERS = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "upgrade",
]);

// deno-lint-ignore no-control-regex
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)$/;

/**
 * Reads one head. Also returns the bytes received after it.
 *
 * @param rest Bytes already received.
 * @throws {Error} if the peer ends first, the head is longer than `maxBytes`, or a line is malformed
 */
export async function readHead(
  conn: Deno.Conn,
  maxBytes: number,
  rest: Uint8Array = new Uint8Array(0),
): Promise<{ head: HttpHead; rest: Uint8Array }> {
  const buffer = Buffer.alloc(Math.max(maxBytes, rest.length));
  buffer.set(rest);
  let length = rest.length;
  let end = buffer.subarray(0, length).indexOf("\r\n\r\n");
  while (end < 0) {
    if (length >= maxBytes) throw new Error(`Can't read the HTTP head: it is longer than ${maxBytes} bytes`);
    const count = await conn.read(buffer.subarray(length));
    if (count === null) throw new Error(`Can't read the HTTP head: the peer ended after ${length} bytes`);
    const from = Math.max(0, length - 3);
    length += count;
    const found = buffer.subarray(from, length).indexOf("\r\n\r\n");
    if (found >= 0) end = from + found;
  }
  return { head: parseHead(buffer.toString("latin1", 0, end)), rest: buffer.subarray(end + 4, length) };
}

/** Formats a head with its empty line. */
export function formatHead({ startLine, headers }: HttpHead): Uint8Array {
  const lines = [startLine, ...headers.map(([name, value]) => `${name}: ${value}`)];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}

/** Lists the values of a header. @param name Lower case. */
export function listValues(head: HttpHead, name: string): string[] {
  return head.headers.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value);
}

/** Removes hop-by-hop headers, including those named by `Connection`. */
export function keepEndToEndHeaders(head: HttpHead): [string, string][] {
  const named = new Set(listValues(head, "connection").flatMap((value) => value.toLowerCase().split(/[\s,]+/)));
  return head.headers.filter(([name]) => !HOP_HEADERS.has(name.toLowerCase()) && !named.has(name.toLowerCase()));
}

function parseHead(text: string): HttpHead {
  const [startLine = "", ...lines] = text.split("\r\n");
  // deno-lint-ignore no-control-regex
  if (!/^[^\x00-\x1f\x7f]+$/.test(startLine)) throw new Error("Can't read the HTTP head: its first line is malformed");
  const headers = lines.map((line): [string, string] => {
    const [, name, value] = FIELD.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new Error("Can't read the HTTP head: a field is malformed");
    return [name, value.trimEnd()];
  });
  return { startLine, headers };
}
