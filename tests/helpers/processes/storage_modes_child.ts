/**
 * Goes through everything that makes files, under umask 000, and prints one JSON line for each file or folder at the
 * moment it was made (`first`) and at the end (`last`). Argument: data directory to make.
 */

import { createSealer } from "../../../services/crypto/sealer.ts";
import { loadStorageKey } from "../../../services/crypto/storage_key.ts";
import { writeFileAtomic } from "../../../services/storage/atomic_file.ts";
import { openDataDir } from "../../../services/storage/data_dir.ts";
import { openDatabase } from "../../../services/storage/database/database.ts";
import { slowMigrations } from "./storage_migrations.ts";

function say(when: string, path: string): void {
  const { mode, isDirectory } = Deno.lstatSync(path);
  console.log(JSON.stringify({ when, path, isDirectory, mode: ((mode ?? 0) & 0o777).toString(8) }));
}

Deno.umask(0);
const { open, openSync } = Deno;
Object.defineProperty(Deno, "open", {
  value: async (path: string, options?: Deno.OpenOptions) => {
    const file = await open(path, options);
    if (options?.createNew) say("first", path);
    return file;
  },
});

Object.defineProperty(Deno, "openSync", {
  value: (path: string, options?: Deno.OpenOptions) => {
    const file = openSync(path, options);
    if (options?.createNew) say("first", path);
    return file;
  },
});

const dataDir = await openDataDir(Deno.args[0]!);
createSealer(await loadStorageKey({ dataDir: dataDir.path, sealedDataExists: false }));
await writeFileAtomic(dataDir.file("tokens.json"), "{}");
await dataDir.ensureFolder("attachments");
await (await openDatabase({ path: dataDir.file("app.db") })).close();
const database = await openDatabase({ path: dataDir.file("app.db"), migrations: slowMigrations(10) });
await database.write([{ sql: "DELETE FROM draft" }, { sql: "INSERT INTO draft VALUES('c', 1, x'00')" }]);

say("last", dataDir.path);
for (const entry of Deno.readDirSync(dataDir.path)) say("last", dataDir.file(entry.name));
await database.close();
dataDir.close();
