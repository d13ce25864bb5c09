/** Damages stored data as a failing disk does. */
import { DatabaseSync } from "node:sqlite";

/** A sealed value in a row. */
export interface SealedPlace {
  table: string;
  column: string;
  /** SQL condition of its row. */
  where: string;
}

/** Flips one bit of a sealed value. The database may be open in a server. */
export function flipSealed(dataDir: string, { table, column, where }: SealedPlace): void {
  using database = new DatabaseSync(`${dataDir}/app.db`);
  database.exec("PRAGMA busy_timeout = 5000");
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
