/** Verifies that the storage key belongs to the sealed data before anything is read or written with it. */

import { AppError } from "../errors.ts";
import type { Aad, Sealer } from "./sealer.ts";

const PURPOSE = "key-check";
const PLACE: Aad = { table: "setting", id: "storage_key_check", field: "sealed", version: 1 };
const KNOWN_TEXT = "parlor";

/** The database operations that the check needs. */
export interface KeyCheckStore {
  get<T>(sql: string, ...params: string[]): T | undefined;
  write(statements: { sql: string; params: (string | number | Uint8Array)[] }[]): Promise<unknown>;
}

/**
 * Verifies that the data was sealed with this storage key. A new data directory records the key.
 *
 * The check is a known text, sealed in a row of the table `setting`.
 *
 * @throws {AppError} `internal` if the data was sealed with another key, or the check was modified.
 */
export async function settleKeyCheck(sealer: Sealer, store: KeyCheckStore): Promise<void> {
  const purpose = sealer.forPurpose(PURPOSE);
  const row = store.get<{ sealed: Uint8Array }>("SELECT sealed FROM setting WHERE key = ?", PLACE.id);
  if (row === undefined) {
    await store.write([{
      sql: "INSERT INTO setting(key, version, sealed) VALUES(?, ?, ?)",
      params: [PLACE.id, PLACE.version, await purpose.seal(PLACE, KNOWN_TEXT)],
    }]);
    return;
  }
  try {
    await purpose.open(PLACE, row.sealed);
  } catch (cause) {
    throw new AppError(
      "internal",
      "Wrong storage key: the data directory was sealed with another key. Restore the matching key file",
      { cause },
    );
  }
}
