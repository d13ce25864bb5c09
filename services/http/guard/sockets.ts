/** Socket helpers. */

/** Writes all bytes. */
export async function writeAll(conn: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) sent += await conn.write(bytes.subarray(sent));
}

/** Passes everything a connection sends to `take`, one read at a time. The bytes are valid until `take` resolves. */
export async function pump(from: Deno.Conn, take: (bytes: Uint8Array) => Promise<void>): Promise<void> {
  const buffer = new Uint8Array(64 * 1024);
  for (let count = await from.read(buffer); count !== null; count = await from.read(buffer)) {
    await take(buffer.subarray(0, count));
  }
}

/** Closes a socket that may be closed already. */
export function closeQuietly(socket: Deno.Conn | Deno.Listener): void {
  try {
    socket.close();
  } catch {
    // closed already
  }
}
