/**
 * A model hub with one file of 1 GiB: the API that names it, and its bytes from the same address, written to each socket as
 * fast as it takes them. `http://127.0.0.1:PORT/` gives the bytes to anybody.
 */
import { createHash } from "node:crypto";
import { writeAll } from "../../../services/http/guard/sockets.ts";

const BLOCK_BYTES = 1024 * 1024;
const BLOCKS = 1024;
const SIZE = BLOCK_BYTES * BLOCKS;
const COMMIT = "1".repeat(40);

const block = new Uint8Array(BLOCK_BYTES);
for (let n = 0; n < block.length; n += 65_536) crypto.getRandomValues(block.subarray(n, n + 65_536));
block.set(new TextEncoder().encode("GGUF"));
const hash = createHash("sha256");
for (let n = 0; n < BLOCKS; n++) hash.update(block);
const oid = hash.digest("hex");

const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
console.log(`http://127.0.0.1:${listener.addr.port}`);
for await (const conn of listener) serve(conn).catch(() => {}).finally(() => conn.close());

async function serve(conn: Deno.Conn): Promise<void> {
  const buffer = new Uint8Array(16_384);
  const count = await conn.read(buffer) ?? 0;
  const [, path = "/"] = new TextDecoder().decode(buffer.subarray(0, count)).split(" ");
  const head = (fields: string) => writeAll(conn, new TextEncoder().encode(`HTTP/1.1 200 OK\r\n${fields}\r\n\r\n`));
  if (path.startsWith("/api/")) {
    const tree = [{ type: "file", oid: "0".repeat(40), size: SIZE, path: "big.gguf", lfs: { oid, size: SIZE } }];
    const body = JSON.stringify(path.includes("/tree/") ? tree : { id: "bench/big", sha: COMMIT });
    await head(`Content-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close`);
    await writeAll(conn, new TextEncoder().encode(body));
  } else {
    await head(`Content-Length: ${SIZE}\r\nConnection: close`);
    for (let n = 0; n < BLOCKS; n++) await writeAll(conn, block);
  }
  await conn.closeWrite();
  await conn.read(buffer);
}
