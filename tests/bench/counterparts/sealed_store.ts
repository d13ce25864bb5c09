/**
 * Saving and loading one document, and nothing else: `deno run -A sealed_store.ts DOCUMENT DATABASE` answers each line
 * `save` or `load` on standard input with the ms it took, by its own clock.
 */
import { joined } from "../../helpers/app/joined.ts";
import { blocksOf, newKey, open, openBlocks, seal } from "./sealed_blocks.ts";

if (import.meta.main) {
  const [documentPath, databasePath] = Deno.args as [string, string];
  const document = await Deno.readFile(documentPath);
  const db = openBlocks(databasePath);
  const key = await newKey();
  const remove = db.prepare("DELETE FROM block WHERE conversation_id = 1");
  const insert = db.prepare("INSERT INTO block (conversation_id, position, sealed) VALUES (1, ?, ?)");
  const select = db.prepare("SELECT sealed FROM block WHERE conversation_id = 1 ORDER BY position");

  const save = async () => {
    const sealed = await Promise.all(blocksOf(document).map((block) => seal(key, block)));
    db.exec("BEGIN IMMEDIATE");
    remove.run();
    sealed.forEach((block, position) => insert.run(position, block));
    db.exec("COMMIT");
  };
  const load = async () => {
    const rows = select.all() as { sealed: Uint8Array }[];
    const whole = joined(await Promise.all(rows.map(({ sealed }) => open(key, sealed))));
    if (whole.length !== document.length) throw new Error("The document came back with another length");
  };

  console.log("ready");
  for await (const line of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const beganAt = performance.now();
    await (line.trim() === "save" ? save() : load());
    console.log(performance.now() - beganAt);
  }
}
