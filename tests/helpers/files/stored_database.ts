import { DatabaseSync } from "node:sqlite";
import { PATIENCE_MS } from "../app/patience.ts";

/** Opens the database of a data folder, also beside a server: waits while the server writes. */
export function openStoredDatabase(dataDir: string): DatabaseSync {
  return new DatabaseSync(`${dataDir}/app.db`, { timeout: PATIENCE_MS });
}
