/**
 * Searching sealed messages, and nothing else: `deno run -A sealed_scan.ts DOCUMENT DATABASE` seals a JSON document in
 * blocks and answers each line on standard input, a word in lower case, with the ms it took to open all and look for it.
 */
import { blocksOf, newKey, open, openBlocks, seal } from "./sealed_blocks.ts";

/** Number of blocks to decrypt concurrently. */
const AT_ONCE = 32;

if (import.meta.main) {
  const [documentPath, databasePath] = Deno.args as [string, string];
  const db = openBlocks(databasePath);
  const key = await newKey();
  const insert = db.prepare("INSERT INTO block (conversation_id, position, sealed) VALUES (1, ?, ?)");
  db.exec("BEGIN IMMEDIATE");
  for (const [position, block] of blocksOf(await Deno.readFile(documentPath)).entries()) {
    insert.run(position, await seal(key, block));
  }
  db.exec("COMMIT");
  const select = db.prepare(
    "SELECT sealed FROM block WHERE conversation_id = 1 AND position >= ? ORDER BY position LIMIT ?",
  );
  const decoder = new TextDecoder();

  const scan = async (word: string) => {
    const pattern = new RegExp(word, "i");
    let found = 0;
    const read = (from: number) => {
      const rows = select.all(from, AT_ONCE) as { sealed: Uint8Array }[];
      return Promise.all(rows.map(({ sealed }) => open(key, sealed)));
    };
    let coming = read(0);
    for (let from = AT_ONCE;; from += AT_ONCE) {
      const blocks = await coming;
      if (blocks.length === 0) return found;
      coming = read(from); // Decrypted on other threads while these are searched.
      for (const block of blocks) if (pattern.test(decoder.decode(block))) found++;
    }
  };

  console.log("ready");
  for await (const line of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const beganAt = performance.now();
    if (await scan(line.trim()) === 0) throw new Error(`Nothing holds ${line}`);
    console.log(performance.now() - beganAt);
  }
}
