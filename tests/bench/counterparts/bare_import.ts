/**
 * Taking a folder of chats in, and nothing else: `deno run -A bare_import.ts FOLDER DATABASES` answers each line on
 * standard input with the ms it took to read every file under FOLDER/chats, parse its lines, seal them in blocks and
 * insert these, a transaction a chat, into a database that is new each time.
 */
import { blocksOf, newKey, openBlocks, seal } from "./sealed_blocks.ts";

const encoder = new TextEncoder();

if (import.meta.main) {
  const [folder, databases] = Deno.args as [string, string];
  const key = await newKey();
  const paths: string[] = [];
  for await (const { name } of Deno.readDir(`${folder}/chats`)) {
    for await (const file of Deno.readDir(`${folder}/chats/${name}`)) {
      paths.push(`${folder}/chats/${name}/${file.name}`);
    }
  }
  let runs = 0;
  const run = async () => {
    const db = openBlocks(`${databases}/alone-${runs++}.db`);
    const insert = db.prepare("INSERT INTO block (conversation_id, position, sealed) VALUES (?, ?, ?)");
    for (const [id, path] of paths.entries()) {
      const messages = (await Deno.readTextFile(path)).split("\n").slice(1).map((line) => JSON.parse(line));
      const sealed = await Promise.all(
        blocksOf(encoder.encode(JSON.stringify(messages))).map((block) => seal(key, block)),
      );
      db.exec("BEGIN IMMEDIATE");
      sealed.forEach((block, position) => insert.run(id, position, block));
      db.exec("COMMIT");
    }
    db.close();
  };

  console.log("ready");
  for await (const _ of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const beganAt = performance.now();
    await run();
    console.log(performance.now() - beganAt);
  }
}
