/** Something that becomes true once. Remembered in config.toml, where SPEC wants it, or in app.db if that cannot be written. */
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { Database } from "../storage/database/database.ts";

/** A flag that is never taken back. */
export interface RememberedFlag {
  isSet(): boolean;
  /** @throws {AppError} `conflict` when a flag or the environment says otherwise. */
  set(): Promise<void>;
}

/**
 * Opens a flag.
 *
 * @param options.key Its key in the configuration.
 * @param options.isSet What the configuration says.
 * @param options.save Writes the configuration file.
 * @param options.sealer For the purpose "settings".
 */
export function openRememberedFlag(options: {
  key: string;
  isSet: boolean;
  save(): Promise<void>;
  db: Database;
  sealer: PurposeSealer;
}): RememberedFlag {
  const { key, db, sealer } = options;
  let isSet = options.isSet || db.get("SELECT 1 FROM setting WHERE key = ?", key) !== undefined;
  return {
    isSet: () => isSet,
    async set() {
      if (isSet) return;
      try {
        await options.save();
      } catch (error) {
        if (error instanceof AppError && error.code === "conflict") throw error;
        const sql = "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, 1, ?)";
        const place = { table: "setting", id: key, field: "value", version: 1 };
        await db.write([{ sql, params: [key, sealer.sealNow(place, "true")] }]);
      }
      isSet = true;
    },
  };
}
