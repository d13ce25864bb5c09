/** Bearer tokens, stored as hashes in the encrypted `tokens.json`. Deleting the file revokes them all, even while the server runs. */
import { nodeCrypto, randomToken, uuidV7 } from "../crypto/random.ts";
import type { Aad, PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { Log } from "../log.ts";
import { openSealedDocument } from "../storage/documents/sealed_json_file.ts";

/** What a token opens: everything, or only the OpenAI-compatible API below `/api/v1`. */
export const TOKEN_SCOPES = ["all", "openai"] as const;

/** One of the scopes. */
export type TokenScope = (typeof TOKEN_SCOPES)[number];

/** A token without its text. */
export interface TokenRecord {
  id: string;
  label: string;
  scope: TokenScope;
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

/** The tokens on disk. */
export interface TokenStore {
  /** Finds the token of a request by its hash, and records its use. `undefined` if the file can't be read. */
  find(token: string): Promise<TokenRecord | undefined>;
  /** Returns whether a token exists. */
  has(id: string): Promise<boolean>;
  /** Returns all tokens, newest first. @throws {AppError} `internal` if the file can't be read. */
  list(): Promise<TokenRecord[]>;
  /** Creates a token. Its text is returned only this once and isn't stored. */
  mint(label: string, scope?: TokenScope): Promise<{ record: TokenRecord; token: string }>;
  /** @throws {AppError} `not_found` */
  revoke(id: string): Promise<void>;
  /** Saves pending last uses. */
  close(): Promise<void>;
}

/**
 * @param options.path `<datadir>/tokens.json`.
 * @param options.sealer Of the purpose `"tokens"`.
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
    untilRepaired: "no bearer token is accepted",
  });
  /** Last uses by token id that aren't saved yet. */
  const uses = new Map<string, number>();
  let writtenAtMs = now();
  let writing: Promise<void> = Promise.resolve();

  const present = async () => {
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
      const record = content?.get(hashOf(token));
      if (record !== undefined) noteUse(record.id);
      return record;
    },
    async has(id) {
      const content = await document.read();
      return !(content instanceof AppError) && [...content?.values() ?? []].some((record) => record.id === id);
    },
    async list() {
      return [...(await present()).values()].map(withUse).reverse();
    },
    async mint(label, scope = "all") {
      const token = PREFIX + randomToken(RANDOM_BYTES);
      const createdAt = new Date(now()).toISOString();
      const record: TokenRecord = {
        id: uuidV7(),
        label,
        scope,
        hash: hashOf(token),
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

function hashOf(token: string): string {
  return nodeCrypto().createHash("sha256").update(token).digest("base64url");
}

function parseTokens(value: unknown): Map<string, TokenRecord> {
  if (!Array.isArray(value) || !value.every(isRecord)) throw new Error("expected a list of tokens");
  // Tokens of earlier versions have no scope and open everything.
  return new Map(value.map((record) => [record.hash, { ...record, scope: record.scope ?? "all" }]));
}

function isRecord(value: unknown): value is Omit<TokenRecord, "scope"> & Partial<TokenRecord> {
  if (typeof value !== "object" || value === null) return false;
  const { id, label, scope, hash, created_at, last_used_at } = value as Record<string, unknown>;
  return [id, label, hash, created_at].every((field) => typeof field === "string") &&
    (scope === undefined || TOKEN_SCOPES.some((known) => known === scope)) &&
    (last_used_at === null || typeof last_used_at === "string");
}
