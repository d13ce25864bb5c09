/** The enrolled passkeys: `credentials.json`, sealed, one document. Who may enrol or revoke is the ceremonies' business. */
import { lstatSync } from "node:fs";
import type { Place, PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { Log } from "../log.ts";

/** What every credential record has; the ceremonies keep more in it. */
export interface CredentialRecord {
  /** Credential id, base64url. */
  id: string;
  rp_id: string;
  [more: string]: unknown;
}

/** Where the file's text is bound to; nothing else is sealed for this purpose. */
export const CREDENTIALS_PLACE: Place = { table: "credentials.json", id: "credentials", field: "document", version: 1 };

/** The credentials as they lie on disk now: removing the file reopens grace without a restart. */
export interface CredentialStore {
  /** Tells whether an RPID is gated. A file that cannot be read gates every RPID: doubt never opens grace. */
  hasCredential(rpId: string): Promise<boolean>;
  /**
   * Gives all records; none when there is no file.
   *
   * @throws {AppError} `internal` when the file is there and cannot be read.
   */
  load(): Promise<readonly CredentialRecord[]>;
}

/**
 * @param options.path `<datadir>/credentials.json`.
 * @param options.sealer Of the purpose `"credentials"`.
 * @param options.log Told once about each state of the file that cannot be read.
 */
export function createCredentialStore(options: { path: string; sealer: PurposeSealer; log: Log }): CredentialStore {
  const { path, sealer, log } = options;
  let known: { state: string; records: readonly CredentialRecord[] | AppError } | undefined;

  async function read(): Promise<readonly CredentialRecord[] | AppError> {
    const state = stateOf(path);
    if (known?.state === state && state !== "unknown") return known.records;
    let records: readonly CredentialRecord[] | AppError;
    try {
      records = state === "absent" ? [] : parseRecords(await sealer.open(CREDENTIALS_PLACE, await Deno.readFile(path)));
    } catch (cause) {
      // Removed between the two looks; a dangling link, however, is there and cannot be read.
      if (cause instanceof Deno.errors.NotFound && stateOf(path) === "absent") return [];
      records = new AppError("internal", `Cannot read "${path}": it is damaged, foreign or not readable`, { cause });
      if (known?.state !== state) {
        log("error", `${records.message}; every origin stays gated until it is restored or removed`);
      }
    }
    known = { state, records };
    return records;
  }

  return {
    async hasCredential(rpId) {
      const records = await read();
      return records instanceof AppError || records.some((record) => record.rp_id === rpId);
    },
    async load() {
      const records = await read();
      if (records instanceof AppError) throw records;
      return records;
    },
  };
}

/**
 * Changes whenever the file does; `"absent"` only when there surely is none. Asked at every request, so at once: the way
 * to another thread and back takes longer than the look at the file.
 */
function stateOf(path: string): string {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    return found === undefined ? "absent" : `${found.isFile()}:${found.ino}:${found.size}:${found.mtimeMs}`;
  } catch {
    return "unknown";
  }
}

function parseRecords(plain: Uint8Array): CredentialRecord[] {
  const document: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(plain));
  if (!Array.isArray(document) || !document.every(isRecord)) throw new Error("expected a list of credentials");
  return document;
}

function isRecord(value: unknown): value is CredentialRecord {
  return typeof value === "object" && value !== null && "id" in value && typeof value.id === "string" &&
    "rp_id" in value && typeof value.rp_id === "string";
}
