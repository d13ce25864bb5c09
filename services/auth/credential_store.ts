/** Registered passkeys, stored in the encrypted `credentials.json`. Doesn't check who can add or revoke them. */
import type { Aad, PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { Log } from "../log.ts";
import { isLoopbackName } from "./hosts.ts";
import { openSealedDocument } from "../storage/documents/sealed_json_file.ts";
import { isJsonObject } from "../json/type_guards.ts";

/** A registered passkey. */
export interface CredentialRecord {
  /** Credential id, base64url. */
  id: string;
  rp_id: string;
  name: string;
  /** COSE key, base64url. */
  public_key: string;
  /** Last signature counter of the authenticator; most always report 0. */
  counter: number;
  /** How the authenticator was reached: `"internal"`, `"hybrid"`, … */
  transports: string[];
  /** User handle stored in the authenticator, base64url. */
  user_handle: string;
  /** ISO 8601, UTC. */
  created_at: string;
  last_used_at: string | null;
}

/** Content of the file. */
interface CredentialDocument {
  credentials: CredentialRecord[];
  /** Every RP ID that ever had a passkey. Revoking the last one doesn't restore the grace period; deleting the file does. */
  gated_rp_ids: string[];
}

/** AAD of the file's text. Nothing else is sealed for this purpose. */
export const CREDENTIALS_AAD: Aad = { table: "credentials.json", id: "credentials", field: "document", version: 1 };

/** The passkeys on disk. Deleting the file restores the grace period without a restart. */
export interface CredentialStore {
  /**
   * Returns whether an RPID is gated. All loopback names are one origin here: a passkey for one of them gates every one.
   * If the file can't be read, every RPID is gated.
   */
  isGated(rpId: string): Promise<boolean>;
  /** Returns every RP ID with a passkey. @throws {AppError} `internal` if the file can't be read. */
  gatedRpIds(): Promise<readonly string[]>;
  /**
   * Returns all records; none if there is no file.
   *
   * @throws {AppError} `internal` if the file can't be read.
   */
  load(): Promise<readonly CredentialRecord[]>;
  /** Finds one passkey. @throws {AppError} `internal` if the file can't be read. */
  find(id: string): Promise<CredentialRecord | undefined>;
  /**
   * Adds a passkey and gates its RPID.
   *
   * @param mustBeFirst Refuses when the RPID is gated by then: of two who enrol at once under grace, one wins.
   * @throws {AppError} `conflict` then, or when the id is enrolled already.
   */
  add(record: CredentialRecord, mustBeFirst: boolean): Promise<void>;
  /**
   * Compares the signature counter with the stored one and stores the sign-in, in one step: two sign-ins at once can't
   * both pass with the same counter.
   *
   * @returns Why the sign-in is refused, or `undefined` when it was recorded.
   * @see WebAuthn Level 3, section 7.2, step 22 (a counter that doesn't increase means a cloned authenticator)
   */
  recordSignIn(id: string, counter: number, usedAt: string): Promise<string | undefined>;
  /** Removes a passkey. Its RP ID still requires sign-in. @throws {AppError} `not_found` */
  remove(id: string): Promise<void>;
}

/**
 * @param options.path `<datadir>/credentials.json`.
 * @param options.sealer Of the purpose `"credentials"`.
 * @param options.log Logs each unreadable state of the file once.
 */
export function createCredentialStore(options: { path: string; sealer: PurposeSealer; log: Log }): CredentialStore {
  const document = openSealedDocument<CredentialDocument>({
    ...options,
    aad: CREDENTIALS_AAD,
    parse: parseDocument,
    untilRepaired: "every origin stays gated",
  });
  const present = async () => {
    const content = await document.read();
    if (content instanceof AppError) throw content;
    return content ?? { credentials: [], gated_rp_ids: [] };
  };

  return {
    async isGated(rpId) {
      const content = await document.read();
      return content instanceof AppError || (content !== undefined && gates(content.gated_rp_ids, rpId));
    },
    async gatedRpIds() {
      return (await present()).gated_rp_ids;
    },
    async load() {
      return (await present()).credentials;
    },
    async find(id) {
      return (await present()).credentials.find((record) => record.id === id);
    },
    async add(record, mustBeFirst) {
      await document.change((current) => {
        const { credentials, gated_rp_ids } = current ?? { credentials: [], gated_rp_ids: [] };
        if (mustBeFirst && gates(gated_rp_ids, record.rp_id)) {
          throw new AppError(
            "conflict",
            `Can't add the passkey: another device just added the first one for "${record.rp_id}"`,
          );
        }
        if (credentials.some(({ id }) => id === record.id)) {
          throw new AppError("conflict", "Can't add the passkey: it's already registered");
        }
        return {
          credentials: [...credentials, record],
          gated_rp_ids: [...new Set([...gated_rp_ids, record.rp_id])],
        };
      });
    },
    async recordSignIn(id, counter, usedAt) {
      let refusal: string | undefined;
      await document.change((current) => {
        const known = current?.credentials.find((record) => record.id === id);
        refusal = known === undefined
          ? "the passkey was revoked during the sign-in"
          : (counter > 0 || known.counter > 0) && counter <= known.counter
          ? `its counter ${counter} isn't above the stored ${known.counter}`
          : undefined;
        if (current === undefined || refusal !== undefined) return undefined;
        return {
          ...current,
          credentials: current.credentials.map((record) =>
            record.id === id ? { ...record, counter, last_used_at: usedAt } : record
          ),
        };
      });
      return refusal;
    },
    async remove(id) {
      await document.change((current) => {
        if (!current?.credentials.some((record) => record.id === id)) {
          throw new AppError("not_found", "No passkey with this id");
        }
        return { ...current, credentials: current.credentials.filter((record) => record.id !== id) };
      });
    },
  };
}

/** Browsers can't create a passkey for `127.0.0.1` or `[::1]`, so without this rule their grace would never end. */
function gates(gatedRpIds: readonly string[], rpId: string): boolean {
  return gatedRpIds.includes(rpId) || (isLoopbackName(rpId) && gatedRpIds.some(isLoopbackName));
}

function parseDocument(value: unknown): CredentialDocument {
  if (!isJsonObject(value) || !Array.isArray(value.credentials) || !Array.isArray(value.gated_rp_ids)) {
    throw new Error("expected credentials and gated_rp_ids");
  }
  const { credentials, gated_rp_ids } = value;
  if (!credentials.every(isRecord)) throw new Error("expected a list of credentials");
  if (!gated_rp_ids.every((rpId): rpId is string => typeof rpId === "string")) throw new Error("expected RP IDs");
  if (!credentials.every(({ rp_id }) => gated_rp_ids.includes(rp_id))) throw new Error("a credential gates nothing");
  return { credentials, gated_rp_ids };
}

function isRecord(value: unknown): value is CredentialRecord {
  return isJsonObject(value) && Array.isArray(value.transports) && typeof value.counter === "number" &&
    (value.last_used_at === null || typeof value.last_used_at === "string") &&
    [value.id, value.rp_id, value.name, value.public_key, value.user_handle, value.created_at]
      .every((field) => typeof field === "string");
}
