/** Puts passkeys into a data directory without a ceremony. */
import { CREDENTIALS_PLACE } from "../../services/auth/credential_store.ts";
import { createSealer } from "../../services/crypto/sealer.ts";
import { loadStorageKey } from "../../services/crypto/storage_key.ts";

/** Gates RPIDs: writes the credentials file as if one passkey had been enrolled for each. Works on a running server. */
export async function enrol(app: { dataDir: string }, ...rpIds: string[]): Promise<void> {
  const key = await loadStorageKey({ dataDir: app.dataDir, sealedDataExists: true });
  const records = rpIds.map((rp_id, i) => ({ id: `key${i}`, rp_id, name: "Test key" }));
  const sealed = createSealer(key).forPurpose("credentials").sealNow(CREDENTIALS_PLACE, JSON.stringify(records));
  await Deno.writeFile(`${app.dataDir}/credentials.json`, sealed, { mode: 0o600 });
}
