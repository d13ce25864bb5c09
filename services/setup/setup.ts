/** Whether the first-run wizard has ended. Remembered in config.toml, where SPEC wants it, or in app.db if that cannot be written. */
import { AppError } from "../errors.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Database } from "../storage/database.ts";

const KEY = "setup_completed";
const PLACE = { table: "setting", id: KEY, field: "value", version: 1 };

/** The first-run flag. */
export interface Setup {
  isCompleted(): boolean;
  /** @throws {AppError} `conflict` when a flag or the environment says otherwise. */
  complete(): Promise<void>;
}

/**
 * Opens the first-run flag.
 *
 * @param options.isCompleted What the configuration says.
 * @param options.save Writes the configuration file.
 */
export function createSetup(options: {
  isCompleted: boolean;
  save(): Promise<void>;
  db: Database;
  sealer: PurposeSealer;
  events: EventHub;
}): Setup {
  const { db, sealer, events } = options;
  let isCompleted = options.isCompleted || db.get("SELECT 1 FROM setting WHERE key = ?", KEY) !== undefined;
  return {
    isCompleted: () => isCompleted,
    async complete() {
      if (isCompleted) return;
      try {
        await options.save();
      } catch (error) {
        if (error instanceof AppError && error.code === "conflict") throw error;
        const sql = "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, 1, ?)";
        await db.write([{ sql, params: [KEY, sealer.sealNow(PLACE, "true")] }]);
      }
      isCompleted = true;
      events.publish({ kind: "setup", id: KEY });
    },
  };
}
