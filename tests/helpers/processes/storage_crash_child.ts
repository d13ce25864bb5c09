/**
 * Writes to a database under load until it is killed, and prints the number of each acknowledged unit.
 * Arguments: database file, first number. A unit is a `setting` and a `draft` of the same number, which belong together.
 */

import { openDatabase } from "../../../services/storage/database/database.ts";

const WRITERS = 8;
const [path, first] = Deno.args;
const database = await openDatabase({ path: path! });
let next = Number(first);

/** Written synchronously, so that acknowledged writes are known before the kill. */
function say(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

async function writeOn(): Promise<void> {
  while (true) {
    const n = next++;
    const blob = crypto.getRandomValues(new Uint8Array(n % 7 === 0 ? 20_000 : 200));
    await database.write([
      { sql: "INSERT INTO setting(key, version, sealed) VALUES(?, 1, ?)", params: [`n${n}`, blob] },
      { sql: "INSERT INTO draft(conversation_id, version, sealed) VALUES(?, 1, ?)", params: [`n${n}`, blob] },
      {
        sql: `INSERT INTO document(kind, id, version, created_at, updated_at, sealed) VALUES('k', 'one', ?, 0, 0, ?)
          ON CONFLICT(kind, id) DO UPDATE SET version = max(version, excluded.version)`,
        params: [n, blob],
      },
    ]);
    say(String(n));
  }
}

say("ready");
await Promise.all(Array.from({ length: WRITERS }, writeOn));
