/**
 * Listing cards, and nothing else: `deno run -A card_walk.ts FOLDER DATABASE`. `/walk` goes through the chunk headers of
 * every file and reads its card; `/indexed` compares every file's time with a table and gives the stored rows.
 */
import { Buffer } from "node:buffer";
import { DatabaseSync } from "node:sqlite";

const block = new Uint8Array(64 * 1024);

function readAt(file: Deno.FsFile, at: number, bytes: Uint8Array): Uint8Array {
  file.seekSync(at, Deno.SeekMode.Start);
  for (let done = 0; done < bytes.length;) done += file.readSync(bytes.subarray(done)) ?? bytes.length;
  return bytes;
}

/** Returns the card of a file: `ccv3`, otherwise `chara`. */
function cardOf(path: string) {
  using file = Deno.openSync(path);
  let found: string | undefined;
  for (let at = 8;;) {
    const head = readAt(file, at, block.subarray(0, 14));
    const length = new DataView(head.buffer).getUint32(0);
    const type = String.fromCharCode(...head.subarray(4, 8));
    if (type === "IEND") break;
    if (type === "tEXt") {
      const text = Buffer.from(readAt(file, at + 8, new Uint8Array(length))).toString("latin1");
      if (text.startsWith("ccv3\0")) found = text.slice(5);
      else if (text.startsWith("chara\0")) found ??= text.slice(6);
    }
    at += 12 + length;
  }
  return JSON.parse(Buffer.from(found!, "base64").toString("utf8"));
}

function walk(folder: string) {
  const items: { id: string; name: string; tags: string[]; creator: string; updated_at: string }[] = [];
  for (const { name } of Deno.readDirSync(folder)) {
    const { mtime } = Deno.lstatSync(`${folder}/${name}`);
    const { data } = cardOf(`${folder}/${name}`);
    items.push({ id: name, name: data.name, tags: data.tags, creator: data.creator, updated_at: mtime!.toISOString() });
  }
  return items;
}

if (import.meta.main) {
  const [folder, databasePath] = Deno.args as [string, string];
  const db = new DatabaseSync(databasePath);
  db.exec("CREATE TABLE card (id TEXT PRIMARY KEY, mtime INTEGER, item TEXT) STRICT");
  const insert = db.prepare("INSERT INTO card VALUES (?, ?, ?)");
  const select = db.prepare("SELECT id, mtime, item FROM card ORDER BY id");

  const indexed = () => {
    const rows = new Map((select.all() as { id: string; mtime: number; item: string }[]).map((row) => [row.id, row]));
    const items: string[] = [];
    for (const { name } of Deno.readDirSync(folder)) {
      const row = rows.get(name);
      if (row?.mtime !== Deno.lstatSync(`${folder}/${name}`).mtime!.getTime()) throw new Error(`${name} has changed`);
      items.push(row.item);
    }
    return `[${items.join(",")}]`;
  };
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => console.log(`listening on http://127.0.0.1:${port}`),
  }, (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/indexed") return new Response(indexed(), { headers: { "Content-Type": "application/json" } });
    if (pathname !== "/walk") return new Response(null, { status: 204 });
    const items = walk(folder);
    db.exec("BEGIN; DELETE FROM card");
    for (const item of items) insert.run(item.id, Date.parse(item.updated_at), JSON.stringify(item));
    db.exec("COMMIT");
    return Response.json(items);
  });
}
