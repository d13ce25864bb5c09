/** Loads and saves what is known to be damaged: a sealed setting, which `parlor doctor` reads, too. */
import type { PurposeSealer } from "../crypto/sealer.ts";
import type { Statement } from "../storage/database/database.ts";
import { type IntegrityState, NEW_STATE, STATE_KEY } from "./damage.ts";

const AAD = { table: "setting", id: STATE_KEY, field: "value", version: 1 };

/** Loads the state; that of a new installation if it's missing or unreadable. */
export function loadState(
  database: { get<T>(sql: string, ...params: string[]): T | undefined },
  sealer: PurposeSealer,
): IntegrityState {
  try {
    const row = database.get<{ sealed: Uint8Array }>("SELECT sealed FROM setting WHERE key = ?", STATE_KEY);
    if (row === undefined) return NEW_STATE;
    return { ...NEW_STATE, ...JSON.parse(new TextDecoder().decode(sealer.openNow(AAD, row.sealed))) };
  } catch {
    return NEW_STATE;
  }
}

/** Returns the statement that saves the state. */
export function sealState(sealer: PurposeSealer, state: IntegrityState): Statement {
  return {
    sql: "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, 1, ?)",
    params: [STATE_KEY, sealer.sealNow(AAD, JSON.stringify(state))],
  };
}
