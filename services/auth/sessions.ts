/**
 * Sign-in sessions: stored on the server, signed into a cookie, ended by sign-out, revocation, a deleted key file or 30 idle days.
 *
 * The key that signs them is `session-key`, 32 random bytes. Deleting the file signs everyone out, even while the server runs.
 */
import { Buffer } from "node:buffer";
import { nodeCrypto, randomToken } from "../crypto/random.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Database } from "../storage/database/database.ts";
import type { CredentialRecord, CredentialStore } from "./credential_stores.ts";
import { createKeyFile, isPrivateFile, KEY_BYTES, readKeyFile } from "../crypto/storage_key.ts";
import { type FileState, readFileState } from "../storage/atomic_file.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** Sessions end after 30 days without use (docs/protocols/auth.md#sessions). */
export const SESSION_IDLE_MS = 30 * DAY_MS;
/** Age at which the cookie is renewed, so that the browser doesn't drop it before the server does. */
const REISSUE_AFTER_MS = DAY_MS;
/** How much time of the last use is lost if the process is killed. */
const SEEN_WRITTEN_EVERY_MS = 10 * 60 * 1000;
/** Cache size for cookie values with a verified signature; more than anyone has devices. */
const MAX_VERIFIED = 256;

/** Maximum number of sessions per passkey. Beyond it, the one unused for longest ends. */
const MAX_PER_CREDENTIAL = 64;

/** A valid session. */
export interface LiveSession {
  id: string;
  rpId: string;
  credentialId: string;
  /** New cookie value to send, if the current one is old. */
  renewal?: string;
}

/** Opens, finds and ends sessions. */
export interface Sessions {
  /**
   * Opens a session.
   *
   * @param lifetimeMs Ends it after that time, or when the process ends. Used by the command line, which needs a
   *   session only briefly.
   * @returns The value of its cookie.
   * @throws {AppError} `internal` if the session key can't be used.
   */
  open(owner: { rpId: string; credentialId: string }, lifetimeMs?: number): Promise<string>;
  /** Finds the session of a cookie for an RP ID, and records its use. */
  find(cookie: string, rpId: string): Promise<LiveSession | undefined>;
  /** Returns whether a session is valid, without recording its use. */
  isLive(id: string): Promise<boolean>;
  end(id: string): Promise<void>;
  /** Ends all sessions of a passkey. */
  endByCredential(credentialId: string): Promise<void>;
}

interface Session {
  id: string;
  rpId: string;
  credentialId: string;
  seenAtMs: number;
  writtenAtMs: number;
  /** True for sessions that exist in memory only. */
  endsAtMs?: number;
}

interface SessionRow {
  id: string;
  rp_id: string;
  credential_id: string;
  seen_at: number;
}

/** Loads stored sessions and deletes expired ones. */
export async function openSessions(options: {
  db: Database;
  key: SessionKey;
  credentials: CredentialStore;
  log: Log;
  now(): number;
}): Promise<Sessions> {
  const { db, key, credentials, log, now } = options;
  const isForgotten = "FROM session WHERE seen_at < ?";
  const forgottenBeforeMs = key.isFresh ? Number.MAX_SAFE_INTEGER : now() - SESSION_IDLE_MS;
  // Usually none, and a write would start the writer's thread.
  if (db.get(`SELECT 1 ${isForgotten}`, forgottenBeforeMs) !== undefined) {
    await db.write([{ sql: `DELETE ${isForgotten}`, params: [forgottenBeforeMs] }]);
  }
  const sessions = new Map<string, Session>();
  for (const row of db.all<SessionRow>("SELECT id, rp_id, credential_id, seen_at FROM session")) {
    sessions.set(row.id, {
      id: row.id,
      rpId: row.rp_id,
      credentialId: row.credential_id,
      seenAtMs: row.seen_at,
      writtenAtMs: row.seen_at,
    });
  }
  let presentKey = await key.read();
  const verified = new Map<string, SessionClaims>();

  /** Reads the current key. A changed key ends every session. */
  async function loadCurrentKey(): Promise<Uint8Array | undefined> {
    const found = await key.read();
    if (found === presentKey) return found;
    presentKey = found;
    verified.clear();
    // Without the key, sign-in fails. Cookies signed with an old key never become valid again.
    if (found !== undefined) await drop([...sessions.values()]);
    return found;
  }

  async function drop(dropped: Session[]): Promise<void> {
    for (const { id } of dropped) sessions.delete(id);
    if (dropped.length > 0) {
      await db.write(dropped.map(({ id }) => ({ sql: "DELETE FROM session WHERE id = ?", params: [id] })));
    }
  }

  function verifyCookie(found: Uint8Array, cookie: string): SessionClaims | undefined {
    const known = verified.get(cookie);
    if (known !== undefined) return known;
    const claims = readSession(found, cookie);
    if (claims === undefined) return undefined;
    if (verified.size >= MAX_VERIFIED) verified.clear();
    verified.set(cookie, claims);
    return claims;
  }

  /** Finds a valid session. Drops it if it's expired or its passkey is gone. */
  async function findValid(id: string): Promise<Session | undefined> {
    const session = sessions.get(id);
    if (session === undefined) return undefined;
    const nowMs = now();
    const isOver = nowMs - session.seenAtMs > SESSION_IDLE_MS || nowMs > (session.endsAtMs ?? Infinity);
    let credential: CredentialRecord | undefined;
    try {
      credential = await credentials.find(session.credentialId);
    } catch {
      return undefined; // The file can be restored, and then the session is valid again.
    }
    if (!isOver && credential?.rp_id === session.rpId) return session;
    await drop([session]);
    return undefined;
  }

  function noteSeen(session: Session): void {
    session.seenAtMs = now();
    // Absolute difference: the clock can be set back.
    if (session.endsAtMs !== undefined || Math.abs(session.seenAtMs - session.writtenAtMs) < SEEN_WRITTEN_EVERY_MS) {
      return;
    }
    session.writtenAtMs = session.seenAtMs;
    db.write([{ sql: "UPDATE session SET seen_at = ? WHERE id = ?", params: [session.seenAtMs, session.id] }])
      .catch((error) => log("warn", "Can't save when a session was last used", { error: getErrorMessage(error) }));
  }

  return {
    async open({ rpId, credentialId }, lifetimeMs) {
      const found = await loadCurrentKey();
      if (found === undefined) {
        throw new AppError("internal", "Can't sign in: the file session-key can't be used. See the server's log");
      }
      const own = [...sessions.values()].filter((each) => each.credentialId === credentialId)
        .sort((a, b) => a.seenAtMs - b.seenAtMs);
      await drop(own.slice(0, Math.max(0, own.length + 1 - MAX_PER_CREDENTIAL)));
      const issued = now();
      const session: Session = { id: randomToken(16), rpId, credentialId, seenAtMs: issued, writtenAtMs: issued };
      if (lifetimeMs === undefined) {
        const sql = "INSERT INTO session (id, rp_id, credential_id, issued_at, seen_at) VALUES (?, ?, ?, ?, ?)";
        await db.write([{ sql, params: [session.id, rpId, credentialId, issued, issued] }]);
      } else session.endsAtMs = issued + lifetimeMs;
      sessions.set(session.id, session);
      return signSession(found, { id: session.id, rp_id: rpId, credential_id: credentialId, issued });
    },
    async find(cookie, rpId) {
      const found = await loadCurrentKey();
      const claims = found && verifyCookie(found, cookie);
      if (found === undefined || claims?.rp_id !== rpId) return undefined;
      const session = await findValid(claims.id);
      if (session === undefined) return undefined;
      noteSeen(session);
      const { id, credentialId } = session;
      if (session.endsAtMs !== undefined || now() - claims.issued < REISSUE_AFTER_MS) return { id, rpId, credentialId };
      return { id, rpId, credentialId, renewal: signSession(found, { ...claims, issued: now() }) };
    },
    async isLive(id) {
      return await loadCurrentKey() !== undefined && await findValid(id) !== undefined;
    },
    async end(id) {
      const session = sessions.get(id);
      if (session !== undefined) await drop([session]);
    },
    async endByCredential(credentialId) {
      await drop([...sessions.values()].filter((session) => session.credentialId === credentialId));
    },
  };
}

/** Claims of a cookie. sessions.ts knows whether the session is still valid. */
interface SessionClaims {
  id: string;
  rp_id: string;
  credential_id: string;
  /** When this value was created, in ms since 1970. The session can be older. */
  issued: number;
}

/** First part of every value: the version of its format. */
const VERSION = "1";

/** No valid value is longer: an RP ID has at most 253 characters, a credential ID 1364. */
const MAX_LENGTH = 3072;

/** Returns `1.<claims>.<HMAC-SHA256>`, both in base64url. */
export function signSession(key: Uint8Array, claims: SessionClaims): string {
  const signed = `${VERSION}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`;
  return `${signed}.${computeMac(key, signed)}`;
}

/** Returns the claims of a value, or `undefined` if this key didn't sign exactly these characters. */
export function readSession(key: Uint8Array, value: string): SessionClaims | undefined {
  if (value.length > MAX_LENGTH) return undefined;
  const end = value.lastIndexOf(".");
  const signed = value.slice(0, Math.max(end, 0));
  // Compares the texts, not the bytes: the same bytes have several base64url encodings.
  const actual = Buffer.from(value.slice(end + 1));
  const expected = Buffer.from(computeMac(key, signed));
  if (actual.byteLength !== expected.byteLength || !nodeCrypto().timingSafeEqual(actual, expected)) return undefined;
  const [version, claims, ...rest] = signed.split(".");
  if (version !== VERSION || claims === undefined || rest.length > 0) return undefined;
  return JSON.parse(Buffer.from(claims, "base64url").toString());
}

function computeMac(key: Uint8Array, signed: string): string {
  return nodeCrypto().createHmac("sha256", key).update(signed).digest("base64url");
}

const WHAT = "session key";

/** The key on disk. */
export interface SessionKey {
  /** The file was missing at the start, so no earlier session is valid. */
  readonly isFresh: boolean;
  /**
   * Returns the key, the same object until it changes. Creates a missing file.
   *
   * @returns `undefined` while the file can't be used: then no session is valid.
   */
  read(): Promise<Uint8Array | undefined>;
}

/**
 * Opens the key file, and creates it with mode 0600 if it's missing.
 *
 * @throws {AppError} `internal` if it isn't a private regular file of 32 bytes, or all bytes are zero.
 */
export async function openSessionKey(path: string, log: Log): Promise<SessionKey> {
  const isFresh = !await isPrivateFile(path, WHAT);
  let state: FileState | undefined;
  let key: Uint8Array | undefined;
  let reading: Promise<void> | undefined;

  async function refresh(): Promise<void> {
    if (!await isPrivateFile(path, WHAT)) await createKeyFile(path, WHAT);
    const found = readFileState(path);
    const content = await readKeyFile(path, WHAT);
    if (content === undefined) {
      throw new AppError("internal", `Can't read the ${WHAT} from "${path}": the file disappeared`);
    }
    checkKey(content, path);
    if (key === undefined || !isSame(key, content)) key = new Uint8Array(content);
    state = found;
  }

  await refresh();
  return {
    isFresh,
    async read() {
      const seen = readFileState(path);
      if (seen.id === state?.id && state.isSettled && seen.id !== "absent") return key;
      reading ??= refresh().catch((error) => {
        // Cached, so that an unusable file is reported once and not read for every request.
        if (state?.id !== seen.id) {
          log("error", `${getErrorMessage(error)}; all sessions are invalid until the file is repaired or removed`);
        }
        state = seen;
        key = undefined;
      }).finally(() => reading = undefined);
      await reading;
      return key;
    },
  };
}

function checkKey(content: Uint8Array, path: string): void {
  const fault = content.byteLength !== KEY_BYTES
    ? `it has ${content.byteLength} bytes instead of ${KEY_BYTES}`
    : content.every((byte) => byte === 0)
    ? "all bytes are zero"
    : undefined;
  if (fault !== undefined) {
    throw new AppError(
      "internal",
      `Can't use "${path}" as ${WHAT}: ${fault}. Remove the file to create a new key, which signs everyone out`,
    );
  }
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.byteLength === other.byteLength && one.every((byte, i) => byte === other[i]);
}
