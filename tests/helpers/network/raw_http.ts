/** Raw HTTP over a socket: invalid requests, and responses as bytes. */

/** A raw response. */
export interface RawAnswer {
  /** 0 if the connection ended without a response. */
  status: number;
  /** Lower-case names; repeated headers joined with ", ". */
  headers: Headers;
  body: string;
}

/**
 * Sends bytes as they are (one per character, so `"\xff"` is one byte) and reads until the other side closes.
 *
 * Give `Connection: close` where the response would leave the connection open.
 */
export async function rawRequest(port: number, text: string, options: { hostname?: string } = {}): Promise<RawAnswer> {
  using connection = await Deno.connect({ port, hostname: options.hostname ?? "127.0.0.1" });
  await writeAll(connection, text);
  return parseAnswer(await readToEnd(connection));
}

/** Writes a text, one byte per character. Ignores a closed connection, since the response may already be there. */
export async function writeAll(connection: Deno.Conn, text: string): Promise<void> {
  let bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
  try {
    while (bytes.length > 0) bytes = bytes.subarray(await connection.write(bytes));
  } catch (error) {
    if (!(error instanceof Deno.errors.BrokenPipe || error instanceof Deno.errors.ConnectionReset)) throw error;
  }
}

/** Reads until the other side closes or resets. */
export async function readToEnd(connection: Deno.Conn): Promise<string> {
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(16 * 1024);
  let text = "";
  try {
    for (;;) {
      const count = await connection.read(buffer);
      if (count === null) return text;
      text += decoder.decode(buffer.subarray(0, count), { stream: true });
    }
  } catch (error) {
    if (error instanceof Deno.errors.ConnectionReset) return text;
    throw error;
  }
}

function parseAnswer(text: string): RawAnswer {
  const end = text.indexOf("\r\n\r\n");
  const [statusLine = "", ...lines] = (end < 0 ? text : text.slice(0, end)).split("\r\n");
  const headers = new Headers();
  for (const line of lines) headers.append(line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim());
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(statusLine)?.[1] ?? 0);
  return { status, headers, body: end < 0 ? "" : text.slice(end + 4) };
}
