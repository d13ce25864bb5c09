/** Damages stored data as a failing disk does. */
import { Buffer } from "node:buffer";
import { DatabaseSync } from "node:sqlite";
import { openStoredDatabase } from "./stored_database.ts";

/** A sealed value in a row. */
export interface SealedPlace {
  table: string;
  column: string;
  /** SQL condition of its row. */
  where: string;
}

/** Flips one bit of a sealed value. The database may be open in a server. */
export function flipSealed(dataDir: string, { table, column, where }: SealedPlace): void {
  using database = openStoredDatabase(dataDir);
  const row = database.prepare(`SELECT ${column} AS sealed FROM ${table} WHERE ${where}`).get();
  const sealed = row?.sealed as Uint8Array;
  sealed[Math.floor(sealed.length * 2 / 3)]! ^= 16;
  database.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${where}`).run(sealed);
}

/** Replaces a file by its first half. */
export async function cutFile(path: string): Promise<void> {
  const bytes = await Deno.readFile(path);
  await Deno.writeFile(path, bytes.slice(0, bytes.length >> 1));
}

/** Overwrites the page of a closed database that has a sealed value. */
export async function overwritePage(dataDir: string, { table, column, where }: SealedPlace): Promise<void> {
  const path = `${dataDir}/app.db`;
  using database = new DatabaseSync(path, { readOnly: true });
  const sealed = database.prepare(`SELECT ${column} AS sealed FROM ${table} WHERE ${where}`).get()!
    .sealed as Uint8Array;
  const bytes = await Deno.readFile(path);
  const at = Buffer.from(bytes.buffer).indexOf(sealed.subarray(0, 24));
  const begin = at - at % PAGE_BYTES;
  bytes.fill(0xff, begin, begin + PAGE_BYTES);
  await Deno.writeFile(path, bytes);
}

const PAGE_BYTES = 4096;
