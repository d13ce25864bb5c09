/**
 * Authentication as a whole: opens passkeys, sessions and tokens, and revokes access together with the sessions and
 * streams that depend on it.
 */
import { Buffer } from "node:buffer";
import type { Config } from "../config/config.ts";
import { nodeCrypto, randomToken } from "../crypto/random.ts";
import { isOperatorProof } from "../crypto/storage_key.ts";
import type { Sealer } from "../crypto/sealer.ts";
import { getErrorMessage } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Log } from "../log.ts";
import type { DataDir } from "../storage/data_dir.ts";
import type { Database } from "../storage/database/database.ts";
import {
  type AccessFacts,
  type AccessPolicy,
  createAccessPolicy,
  findLoopbackAddress,
  findOpenAddresses,
  type Identity,
  logOpenAddresses,
  type PresentedCredentials,
} from "./access_policy.ts";
import {
  createCredentialStore,
  createTokenStore,
  type CredentialRecord,
  type CredentialStore,
  type TokenAllowance,
  type TokenRecord,
  type TokenScope,
  type TokenStore,
} from "./credential_stores.ts";
import {
  createEnrolmentCodes,
  createFailureLimiter,
  type EnrolmentCodes,
  type FailureLimiter,
} from "./enrolment_codes.ts";
import {
  createHostPolicy,
  createPageOriginWatch,
  type HostPolicy,
  type OwnNode,
  type PageOriginWatch,
} from "./hosts.ts";
import { createPasskeys, type Passkeys } from "./passkeys.ts";
import { openSessionKey, openSessions, type Sessions } from "./sessions.ts";

/** Authentication and access control. */
export interface Auth {
  readonly access: AccessPolicy;
  readonly hosts: HostPolicy;
  readonly pageOrigins: PageOriginWatch;
  readonly credentials: CredentialStore;
  readonly sessions: Sessions;
  readonly passkeys: Passkeys;
  readonly codes: EnrolmentCodes;
  readonly cliCodes: CliCodes;
  readonly failures: FailureLimiter;
  readonly streams: OpenStreams;
  /** Ends a session and its streams. */
  endSession(id: string): Promise<void>;
  /** Call after a passkey was added: it ends the grace period of its RP ID and the streams that relied on it. */
  announceEnrolment(): Promise<void>;
  /** Revokes a passkey, its sessions and their streams. @throws {AppError} `not_found` */
  revokeCredential(id: string): Promise<void>;
  /** Returns all passkeys, newest first. */
  listCredentials(): Promise<CredentialRecord[]>;
  listTokens(): Promise<TokenRecord[]>;
  /** Creates a token. Its text is returned only this once. */
  mintToken(
    label: string,
    scope?: TokenScope,
    allow?: Partial<TokenAllowance>,
  ): Promise<{ record: TokenRecord; token: string }>;
  /** Revokes a token and ends its streams. @throws {AppError} `not_found` */
  revokeToken(id: string): Promise<void>;
  close(): Promise<void>;
}

/** Dependencies of `openAuth`. */
export interface AuthDeps {
  config: Config;
  dataDir: Pick<DataDir, "file">;
  sealer: Sealer;
  db: Database;
  events: EventHub;
  /** Returns the last known names of Parlor's own tailnet node. */
  getOwnNode(): OwnNode | undefined;
  /** Prints the pairing code to the terminal. */
  announcePairingCode(code: string): void;
  log: Log;
  now(): number;
}

/**
 * Opens passkeys, tokens and sessions, and logs which addresses are open without sign-in.
 *
 * @throws {AppError} `internal` if the session key can't be used.
 */
export async function openAuth(deps: AuthDeps): Promise<Auth> {
  const { config, dataDir, sealer, db, events, getOwnNode, log, now } = deps;
  const pageOrigins = createPageOriginWatch({ corsOrigins: config.corsOrigins, log });
  const hosts = createHostPolicy({
    allowedHosts: config.allowedHosts,
    tailnetSuffix: config.tailnetSuffix,
    ownNode: getOwnNode,
  });
  const pairing = config.pairing === "code" && config.requireAuth ? "code" : "open";
  const failures = createFailureLimiter(now, log);
  const credentials = createCredentialStore({
    path: dataDir.file("credentials.json"),
    sealer: sealer.forPurpose("credentials"),
    log,
  });
  const tokens: TokenStore = createTokenStore({
    path: dataDir.file("tokens.json"),
    sealer: sealer.forPurpose("tokens"),
    log,
    now,
  });
  const key = await openSessionKey(dataDir.file("session-key"), log);
  const sessions = await openSessions({ db, key, credentials, log, now });
  const codes = createEnrolmentCodes({
    now,
    announcePairingCode: pairing === "code" ? deps.announcePairingCode : undefined,
  });
  const access = createAccessPolicy({
    settings: config,
    credentials,
    failures,
    pageOrigins,
    ownSuffix: () => getOwnNode()?.suffix,
    checks: [checkToken, checkSession],
  });

  async function checkToken(facts: AccessFacts, { bearerToken }: PresentedCredentials): Promise<Identity | undefined> {
    if (typeof bearerToken !== "string") return undefined;
    const found = await tokens.find(bearerToken);
    if (found !== undefined) {
      const { id: tokenId, label, scope, allow } = found;
      return { method: "token", tokenId, label, scope, allow };
    }
    // A session key must not be sent in plain text, where others could copy it: only from this machine or over HTTPS.
    const sessionKey = facts.isPeerLoopback || facts.scheme === "https" ? await key.read() : undefined;
    const isOperator = sessionKey !== undefined && isOperatorProof(bearerToken, sessionKey, now());
    return isOperator ? { method: null, bypass: "loopback", isOperator } : undefined;
  }

  /** If a token was presented, it decides. Other schemes in the header are ignored. */
  async function checkSession(facts: AccessFacts, presented: PresentedCredentials): Promise<Identity | undefined> {
    if (presented.sessionCookie === undefined || typeof presented.bearerToken === "string") return undefined;
    const session = await sessions.find(presented.sessionCookie, access.getRpId(facts.host));
    if (session === undefined) return undefined;
    const { id, rpId, credentialId, renewal } = session;
    return { method: "session", sessionId: id, rpId, credentialId, renewal };
  }

  async function isStillValid(identity: Identity, rpId: string): Promise<boolean> {
    if (identity.method === "session") return await sessions.isLive(identity.sessionId);
    if (identity.method === "token") return await tokens.has(identity.tokenId);
    return identity.bypass !== "grace" || !await credentials.isGated(rpId);
  }

  const streams = createOpenStreams((identity, rpId) =>
    isStillValid(identity, rpId).catch((error) => {
      log("error", "Can't check whether a stream still has access; closing it", { error: getErrorMessage(error) });
      return false;
    })
  );
  const notifyChange = async (id: "credentials" | "tokens") => {
    // Contains no names: clients that may see the list fetch it.
    events.publish({ kind: "access", id });
    await streams.recheck();
  };

  const open = await findOpenAddresses(config, credentials.isGated, getOwnNode());
  logOpenAddresses(open, findLoopbackAddress(config), log);
  return {
    access,
    hosts,
    pageOrigins,
    credentials,
    sessions,
    codes,
    failures,
    streams,
    passkeys: createPasskeys({ credentials, codes, hosts, failures, pairing, log, now }),
    cliCodes: createCliCodes(now),
    async endSession(id) {
      await sessions.end(id);
      await streams.recheck();
    },
    announceEnrolment: () => notifyChange("credentials"),
    async revokeCredential(id) {
      await credentials.remove(id);
      await sessions.endByCredential(id);
      await notifyChange("credentials");
    },
    async listCredentials() {
      return [...await credentials.load()].reverse();
    },
    listTokens: tokens.list,
    async mintToken(label, scope, allow) {
      const minted = await tokens.mint(label, scope, allow);
      await notifyChange("tokens");
      return minted;
    },
    async revokeToken(id) {
      await tokens.revoke(id);
      await notifyChange("tokens");
    },
    async close() {
      streams.close();
      await tokens.close();
    },
  };
}

/** Lifetime of a code. */
const CODE_MS = 2 * 60 * 1000;
/** Maximum number of open codes. The oldest is dropped first. */
const MAX_CODES = 64;

/** Owner of the session that the command line gets. */
interface CliOwner {
  rpId: string;
  credentialId: string;
}

/** Creates and redeems codes. */
interface CliCodes {
  /** @param challenge SHA-256 of the verifier, base64url (RFC 7636, "S256"). */
  issue(owner: CliOwner, challenge: string): string;
  /** Consumes a code. @returns `undefined` if it's unknown, expired, used, or if the verifier or RP ID doesn't match. */
  redeem(code: string, verifier: string, rpId: string): CliOwner | undefined;
}

/** Creates an empty store. */
export function createCliCodes(now: () => number): CliCodes {
  const codes = new Map<string, { owner: CliOwner; challenge: string; endsAtMs: number }>();
  return {
    issue(owner, challenge) {
      if (codes.size >= MAX_CODES) codes.delete(codes.keys().next().value!);
      const code = randomToken(16);
      codes.set(code, { owner, challenge, endsAtMs: now() + CODE_MS });
      return code;
    },
    redeem(code, verifier, rpId) {
      const entry = codes.get(code);
      codes.delete(code);
      if (entry === undefined || entry.endsAtMs <= now() || entry.owner.rpId !== rpId) return undefined;
      const actual = Buffer.from(nodeCrypto().createHash("sha256").update(verifier).digest("base64url"));
      const expected = Buffer.from(entry.challenge);
      return actual.byteLength === expected.byteLength && nodeCrypto().timingSafeEqual(actual, expected)
        ? entry.owner
        : undefined;
    },
  };
}

// Ends streaming responses when their client loses access: access is checked when a stream starts, and a stream can
// last for hours.

/** How soon after a credential file is deleted the streams that depend on it end. */
const RECHECK_EVERY_MS = 1_000;

/** Open streams whose access can be revoked. */
export interface OpenStreams {
  /**
   * Watches one stream.
   *
   * @param rpId RP ID of the host in the request.
   * @returns `undefined` if access can't be revoked. Otherwise a signal that fires when it does; release it when the
   *   stream ends.
   */
  watch(identity: Identity, rpId: string): { signal: AbortSignal; release(): void } | undefined;
  /** Checks all streams now, after access was revoked or a passkey was added. */
  recheck(): Promise<void>;
  close(): void;
}

/** @param isStillValid Returns whether an identity still has access. */
function createOpenStreams(isStillValid: (identity: Identity, rpId: string) => Promise<boolean>): OpenStreams {
  const streams = new Set<{ identity: Identity; rpId: string; ending: AbortController }>();
  let timer: ReturnType<typeof setInterval> | undefined;

  async function recheck(): Promise<void> {
    for (const stream of [...streams]) {
      if (await isStillValid(stream.identity, stream.rpId)) continue;
      stream.ending.abort();
      release(stream);
    }
  }

  function release(stream: Parameters<typeof streams.delete>[0]): void {
    streams.delete(stream);
    if (streams.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  return {
    watch(identity, rpId) {
      if (identity.method === null && identity.bypass !== "grace") return undefined;
      const stream = { identity, rpId, ending: new AbortController() };
      streams.add(stream);
      timer ??= setInterval(recheck, RECHECK_EVERY_MS);
      return { signal: stream.ending.signal, release: () => release(stream) };
    },
    recheck,
    close() {
      clearInterval(timer);
      streams.clear();
    },
  };
}
