/** Registered passkeys and bearer tokens, each in an encrypted file. Who may add or revoke them isn't checked here. */
import type { Aad, PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { Log } from "../log.ts";
import { isLoopbackName } from "./hosts.ts";
import { openSealedDocument } from "../storage/documents/sealed_document.ts";
import { isJsonObject } from "../json/type_guards.ts";
import { createUuidV7, nodeCrypto, randomToken } from "../crypto/random.ts";

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

/**
 * The passkeys on disk, in the encrypted `credentials.json`. Deleting the file restores the grace period without a
 * restart.
 */
export interface CredentialStore {
  /**
   * Returns whether an RP ID requires sign-in. A passkey for one loopback name gates all of them. If the file can't be
   * read, every RP ID is gated.
   */
  isGated(rpId: string): Promise<boolean>;
  /** Returns every RP ID with a passkey. @throws {AppError} `internal` if the file can't be read. */
  listGatedRpIds(): Promise<readonly string[]>;
  /**
   * Returns all records; none if there is no file.
   *
   * @throws {AppError} `internal` if the file can't be read.
   */
  load(): Promise<readonly CredentialRecord[]>;
  /** Finds one passkey. @throws {AppError} `internal` if the file can't be read. */
  find(id: string): Promise<CredentialRecord | undefined>;
  /**
   * Adds a passkey and gates its RP ID.
   *
   * @param mustBeFirst Requires that the RP ID isn't gated yet: if two devices enroll at once during the grace period,
   *   one wins.
   * @throws {AppError} `conflict` if it's gated, or if the ID is already enrolled.
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
 * @param options.sealer For the purpose `"credentials"`.
 * @param options.log Logs each unreadable state of the file once.
 */
export function createCredentialStore(options: { path: string; sealer: PurposeSealer; log: Log }): CredentialStore {
  const document = openSealedDocument<CredentialDocument>({
    ...options,
    aad: CREDENTIALS_AAD,
    parse: parseDocument,
    untilRepaired: "every address requires sign-in",
  });
  const listPresent = async () => {
    const content = await document.read();
    if (content instanceof AppError) throw content;
    return content ?? { credentials: [], gated_rp_ids: [] };
  };

  return {
    async isGated(rpId) {
      const content = await document.read();
      return content instanceof AppError || (content !== undefined && isGatedBy(content.gated_rp_ids, rpId));
    },
    async listGatedRpIds() {
      return (await listPresent()).gated_rp_ids;
    },
    async load() {
      return (await listPresent()).credentials;
    },
    async find(id) {
      return (await listPresent()).credentials.find((record) => record.id === id);
    },
    async add(record, mustBeFirst) {
      await document.change((current) => {
        const { credentials, gated_rp_ids } = current ?? { credentials: [], gated_rp_ids: [] };
        if (mustBeFirst && isGatedBy(gated_rp_ids, record.rp_id)) {
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
          ? "the passkey was revoked in the meantime"
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

/**
 * Reports whether a list of RP IDs gates one. Browsers can't create passkeys for `127.0.0.1` or `[::1]`, so a passkey
 * for any loopback name gates them all; otherwise their grace period would never end.
 */
function isGatedBy(gatedRpIds: readonly string[], rpId: string): boolean {
  return gatedRpIds.includes(rpId) || (isLoopbackName(rpId) && gatedRpIds.some(isLoopbackName));
}

function parseDocument(value: unknown): CredentialDocument {
  if (!isJsonObject(value) || !Array.isArray(value.credentials) || !Array.isArray(value.gated_rp_ids)) {
    throw new Error("expected credentials and gated_rp_ids");
  }
  const { credentials, gated_rp_ids } = value;
  if (!credentials.every(isCredentialRecord)) throw new Error("expected a list of credentials");
  if (!gated_rp_ids.every((rpId): rpId is string => typeof rpId === "string")) throw new Error("expected RP IDs");
  if (!credentials.every(({ rp_id }) => gated_rp_ids.includes(rp_id))) {
    throw new Error("the RP ID of a credential isn't in gated_rp_ids");
  }
  return { credentials, gated_rp_ids };
}

function isCredentialRecord(value: unknown): value is CredentialRecord {
  return isJsonObject(value) && Array.isArray(value.transports) && typeof value.counter === "number" &&
    (value.last_used_at === null || typeof value.last_used_at === "string") &&
    [value.id, value.rp_id, value.name, value.public_key, value.user_handle, value.created_at]
      .every((field) => typeof field === "string");
}

/** What a token gives access to: everything, or only the OpenAI-compatible API below `/api/v1`. */
export const TOKEN_SCOPES = ["all", "openai"] as const;

/** One of the scopes. */
export type TokenScope = (typeof TOKEN_SCOPES)[number];

/** What a token of the scope `openai` may use. */
export interface TokenAllowance {
  /** IDs of characters. */
  characters: "all" | string[];
  /** IDs of connections. */
  connections: "all" | string[];
  /** Whether prompts of characters contain the owner's notes. */
  notes: boolean;
  /** Whether prompts of characters contain the owner's persona and name. */
  persona: boolean;
  /** Whether it may write into existing conversations. */
  write: boolean;
}

/** What a limited token may use if nothing else was chosen, and tokens of earlier versions. */
const DEFAULT_ALLOWANCE: Readonly<TokenAllowance> = {
  characters: "all",
  connections: "all",
  notes: false,
  persona: false,
  write: false,
};

/** A token without its text. */
export interface TokenRecord {
  id: string;
  label: string;
  scope: TokenScope;
  /** With the scope `openai`. */
  allow?: TokenAllowance;
  /** SHA-256 of the token, base64url. */
  hash: string;
  /** ISO 8601, UTC. */
  created_at: string;
  last_used_at: string | null;
}

/** AAD of the file's text. */
export const TOKENS_AAD: Aad = { table: "tokens.json", id: "tokens", field: "document", version: 1 };

/** Prefix by which people and secret scanners recognize a leaked token. */
const PREFIX = "parlor_";
const RANDOM_BYTES = 32;
const PATTERN = new RegExp(`^${PREFIX}[A-Za-z0-9_-]{43}$`);

/** How old the stored time of last use may be. Writing the file for every request would cost too much. */
const USE_WRITTEN_EVERY_MS = 10 * 60 * 1000;

/**
 * The tokens on disk, as hashes in the encrypted `tokens.json`. Deleting the file revokes them all, even while the
 * server runs.
 */
export interface TokenStore {
  /** Finds the token of a request by its hash, and records its use. `undefined` if the file can't be read. */
  find(token: string): Promise<TokenRecord | undefined>;
  /** Returns whether a token exists. */
  has(id: string): Promise<boolean>;
  /** Returns all tokens, newest first. @throws {AppError} `internal` if the file can't be read. */
  list(): Promise<TokenRecord[]>;
  /** Creates a token. Its text is returned only this once and isn't stored. */
  mint(
    label: string,
    scope?: TokenScope,
    allow?: Partial<TokenAllowance>,
  ): Promise<{ record: TokenRecord; token: string }>;
  /** @throws {AppError} `not_found` */
  revoke(id: string): Promise<void>;
  /** Saves pending last uses. */
  close(): Promise<void>;
}

/**
 * @param options.path `<datadir>/tokens.json`.
 * @param options.sealer For the purpose `"tokens"`.
 */
export function createTokenStore(options: {
  path: string;
  sealer: PurposeSealer;
  log: Log;
  now(): number;
}): TokenStore {
  const { log, now } = options;
  const document = openSealedDocument<Map<string, TokenRecord>>({
    ...options,
    aad: TOKENS_AAD,
    parse: parseTokens,
    stringify: (tokens) => JSON.stringify([...tokens.values()]),
    untilRepaired: "bearer tokens aren't accepted",
  });
  /** Last uses by token id that aren't saved yet. */
  const uses = new Map<string, number>();
  let writtenAtMs = now();
  let writing: Promise<void> = Promise.resolve();

  const listPresent = async () => {
    const content = await document.read();
    if (content instanceof AppError) throw content;
    return content ?? new Map<string, TokenRecord>();
  };
  const withUse = (record: TokenRecord): TokenRecord => {
    const usedAtMs = uses.get(record.id);
    return usedAtMs === undefined ? record : { ...record, last_used_at: new Date(usedAtMs).toISOString() };
  };
  const withUses = (tokens: Map<string, TokenRecord>) =>
    new Map([...tokens].map(([hash, record]) => [hash, withUse(record)]));

  async function writeUses(): Promise<void> {
    writtenAtMs = now();
    const written = [...uses];
    if (written.length === 0) return;
    await document.change((current) => current && withUses(current));
    for (const [id, usedAtMs] of written) if (uses.get(id) === usedAtMs) uses.delete(id);
  }

  function noteUse(id: string): void {
    const atMs = now();
    uses.set(id, atMs);
    if (Math.abs(atMs - writtenAtMs) < USE_WRITTEN_EVERY_MS) return;
    writing = writeUses().catch((error) =>
      log("warn", "Can't save when a token was last used", { error: String(error) })
    );
  }

  return {
    async find(token) {
      if (!PATTERN.test(token)) return undefined;
      const content = await document.read();
      if (content instanceof AppError) return undefined;
      const record = content?.get(hashToken(token));
      if (record !== undefined) noteUse(record.id);
      return record;
    },
    async has(id) {
      const content = await document.read();
      return !(content instanceof AppError) && [...content?.values() ?? []].some((record) => record.id === id);
    },
    async list() {
      return [...(await listPresent()).values()].map(withUse).reverse();
    },
    async mint(label, scope = "all", allow) {
      const token = PREFIX + randomToken(RANDOM_BYTES);
      const createdAt = new Date(now()).toISOString();
      const record: TokenRecord = {
        id: createUuidV7(),
        label,
        scope,
        ...(scope === "openai" && { allow: { ...DEFAULT_ALLOWANCE, ...allow } }),
        hash: hashToken(token),
        created_at: createdAt,
        last_used_at: null,
      };
      await document.change((current) => new Map([...current ?? [], [record.hash, record]]));
      return { record, token };
    },
    async revoke(id) {
      await document.change((current) => {
        const hash = [...current?.values() ?? []].find((record) => record.id === id)?.hash;
        if (hash === undefined) throw new AppError("not_found", "No token with this id");
        const rest = new Map(current);
        rest.delete(hash);
        return rest;
      });
      uses.delete(id);
    },
    async close() {
      await writing;
      await writeUses().catch((error) =>
        log("warn", "Can't save when tokens were last used", { error: String(error) })
      );
    },
  };
}

function hashToken(token: string): string {
  return nodeCrypto().createHash("sha256").update(token).digest("base64url");
}

function parseTokens(value: unknown): Map<string, TokenRecord> {
  if (!Array.isArray(value) || !value.every(isTokenRecord)) throw new Error("expected a list of tokens");
  return new Map(value.map((record): [string, TokenRecord] => {
    // Tokens of earlier versions have no scope and open everything.
    const scope = record.scope ?? "all";
    if (scope !== "openai") return [record.hash, { ...record, scope }];
    return [record.hash, { ...record, scope, allow: { ...DEFAULT_ALLOWANCE, ...record.allow } }];
  }));
}

function isTokenRecord(value: unknown): value is Omit<TokenRecord, "scope"> & Partial<TokenRecord> {
  if (typeof value !== "object" || value === null) return false;
  const { id, label, scope, allow, hash, created_at, last_used_at } = value as Record<string, unknown>;
  return [id, label, hash, created_at].every((field) => typeof field === "string") &&
    (scope === undefined || TOKEN_SCOPES.some((known) => known === scope)) &&
    (allow === undefined || isAllowance(allow)) && (last_used_at === null || typeof last_used_at === "string");
}

function isAllowance(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  const isList = (list: unknown) =>
    list === "all" || (Array.isArray(list) && list.every((id) => typeof id === "string"));
  return isList(value.characters) && isList(value.connections) &&
    [value.notes, value.persona, value.write].every((flag) => typeof flag === "boolean");
}
