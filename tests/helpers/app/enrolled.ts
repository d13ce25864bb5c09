/** Puts passkeys into a data directory without a ceremony. */
import { type CredentialRecord, CREDENTIALS_AAD } from "../../../services/auth/credential_stores.ts";
import { createSealer } from "../../../services/crypto/sealer.ts";
import { loadStorageKey } from "../../../services/crypto/storage_key.ts";

/** Writes a credentials file with one passkey for each RP ID. Works on a running server. */
export async function enrol(app: { dataDir: string }, ...rpIds: string[]): Promise<void> {
  const key = await loadStorageKey({ dataDir: app.dataDir, sealedDataExists: true });
  const document = { credentials: rpIds.map((rpId, i) => credentialRecord(`key${i}`, rpId)), gated_rp_ids: rpIds };
  const sealed = createSealer(key).forPurpose("credentials").sealNow(CREDENTIALS_AAD, JSON.stringify(document));
  await Deno.writeFile(`${app.dataDir}/credentials.json`, sealed, { mode: 0o600 });
}

/** A stored passkey without a private key. */
export function credentialRecord(id: string, rpId: string): CredentialRecord {
  return {
    id,
    rp_id: rpId,
    name: "Test key",
    public_key: "oA",
    counter: 0,
    transports: [],
    user_handle: "b3duZXI",
    created_at: "2026-01-01T00:00:00.000Z",
    last_used_at: null,
  };
}
