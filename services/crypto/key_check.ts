/** Tells a storage key that fits the sealed data from one that does not, before anything is read or written with it. */

import { AppError } from "../errors.ts";
import type { Place, Sealer } from "./sealer.ts";

const PURPOSE = "key-check";
const PLACE: Place = { table: "setting", id: "storage_key_check", field: "sealed", version: 1 };
const KNOWN_TEXT = "parlor";

/** The part of the database that the check needs. */
export interface KeyCheckStore {
  get<T>(sql: string, ...params: string[]): T | undefined;
  write(statements: { sql: string; params: (string | number | Uint8Array)[] }[]): Promise<unknown>;
}

/**
 * Checks that the storage key is the one the data was sealed with; in a new data directory makes it the one.
 *
 * The check is a known text, sealed in a row of table `setting`.
 *
 * @throws {AppError} `internal` when the key is another one, or the check itself was changed.
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
      "Cannot use this storage key: the data directory was sealed with another one; put the right key file back",
      { cause },
    );
  }
}
