/**
 * Listing conversations, and nothing else: `deno run -A sealed_lists.ts DOCUMENTS SUMMARIES DATABASE` stores two JSON
 * arrays sealed and serves them as they were, `/full` opened ahead and streamed, `/summaries` at once.
 */
import type { DatabaseSync } from "node:sqlite";
import { joined } from "../../helpers/app/joined.ts";
import { blocksOf, newKey, open, openBlocks, seal } from "./sealed_blocks.ts";

/** Number of blocks to decrypt ahead. */
const AHEAD = 16;
const encoder = new TextEncoder();
const COMMA = encoder.encode(",");

async function fill(db: DatabaseSync, key: CryptoKey, documents: unknown[], summaries: unknown[]): Promise<void> {
  const insertBlock = db.prepare("INSERT INTO block (conversation_id, position, sealed) VALUES (?, ?, ?)");
  const insertRow = db.prepare("INSERT INTO conversation (id, summary) VALUES (?, ?)");
  db.exec("BEGIN");
  for (const [id, document] of documents.entries()) {
    for (const [position, block] of blocksOf(encoder.encode(JSON.stringify(document))).entries()) {
      insertBlock.run(id, position, await seal(key, block));
    }
    insertRow.run(id, await seal(key, encoder.encode(JSON.stringify(summaries[id]))));
  }
  db.exec("COMMIT");
}

async function* full(db: DatabaseSync, key: CryptoKey): AsyncGenerator<Uint8Array> {
  const ids = db.prepare("SELECT id FROM conversation ORDER BY id").all() as { id: number }[];
  const select = db.prepare("SELECT sealed FROM block WHERE conversation_id = ? ORDER BY position");
  const ahead: { parts: Promise<Uint8Array[]>; count: number }[] = [];
  let [next, blocksAhead] = [0, 0];
  yield encoder.encode("[");
  while (next < ids.length || ahead.length > 0) {
    while (next < ids.length && blocksAhead < AHEAD) {
      const rows = select.all(ids[next++]!.id) as { sealed: Uint8Array }[];
      ahead.push({ parts: Promise.all(rows.map(({ sealed }) => open(key, sealed))), count: rows.length });
      blocksAhead += rows.length;
    }
    const { parts, count } = ahead.shift()!;
    const opened = await parts;
    blocksAhead -= count;
    if (next < ids.length || ahead.length > 0) opened.push(COMMA);
    yield joined(opened);
  }
  yield encoder.encode("]");
}

async function summaries(db: DatabaseSync, key: CryptoKey): Promise<Uint8Array<ArrayBuffer>> {
  const rows = db.prepare("SELECT summary FROM conversation ORDER BY id").all() as { summary: Uint8Array }[];
  const opened = await Promise.all(rows.map(({ summary }) => open(key, summary)));
  return joined([
    encoder.encode("["),
    ...opened.flatMap((part, n) => n === 0 ? [part] : [COMMA, part]),
    encoder.encode("]"),
  ]);
}

if (import.meta.main) {
  const [documentsPath, summariesPath, databasePath] = Deno.args as [string, string, string];
  const read = async (path: string) => JSON.parse(await Deno.readTextFile(path)) as unknown[];
  const db = openBlocks(databasePath);
  const key = await newKey();
  await fill(db, key, await read(documentsPath), await read(summariesPath));
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => console.log(`listening on http://127.0.0.1:${port}`),
  }, async (request) => {
    const headers = { "Content-Type": "application/json" };
    return new URL(request.url).pathname === "/full"
      ? new Response(ReadableStream.from(full(db, key)), { headers })
      : new Response(await summaries(db, key), { headers });
  });
}
