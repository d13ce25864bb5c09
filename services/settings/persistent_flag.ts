/** Flags that become true once and stay true. Stored in config.toml, or in app.db if that file can't be written. */
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { Database } from "../storage/database/database.ts";

/** A flag that is never reset. */
export interface PersistentFlag {
  isSet(): boolean;
  /** @throws {AppError} `conflict` if a command-line flag or environment variable sets the key to false. */
  set(): Promise<void>;
}

/**
 * Opens a flag.
 *
 * @param options.key Config key of the flag.
 * @param options.isSet Value in the configuration.
 * @param options.save Writes the flag to the config file.
 * @param options.sealer For the purpose "settings".
 */
export function openPersistentFlag(options: {
  key: string;
  isSet: boolean;
  save(): Promise<void>;
  db: Database;
  sealer: PurposeSealer;
}): PersistentFlag {
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
        const aad = { table: "setting", id: key, field: "value", version: 1 };
        await db.write([{ sql, params: [key, sealer.sealNow(aad, "true")] }]);
      }
      isSet = true;
    },
  };
}
