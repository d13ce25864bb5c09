/** The value of the session cookie: what it says, and the signature without which it says nothing. */
import { Buffer } from "node:buffer";
import { nodeCrypto } from "../crypto/node_crypto.ts";

/** What a cookie says. Whether the session still stands is known to sessions.ts. */
export interface SessionClaims {
  id: string;
  rp_id: string;
  credential_id: string;
  /** When this value was made, milliseconds since 1970; the session itself may be older. */
  issued: number;
}

/** First part of every value; another layout gets another number. */
const VERSION = "1";

/** Longer values are none of ours; a RP ID has at most 253 characters, a credential id 1364. */
const MAX_LENGTH = 3072;

/** Gives `1.<claims>.<HMAC-SHA256>`, both in base64url. */
export function signSession(key: Uint8Array, claims: SessionClaims): string {
  const signed = `${VERSION}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`;
  return `${signed}.${macOf(key, signed)}`;
}

/** Gives what a value says, or `undefined` when this key did not sign exactly these characters. */
export function readSession(key: Uint8Array, value: string): SessionClaims | undefined {
  if (value.length > MAX_LENGTH) return undefined;
  const end = value.lastIndexOf(".");
  const signed = value.slice(0, Math.max(end, 0));
  // The texts are compared, not the bytes they stand for: base64url has several spellings of the same bytes.
  const given = Buffer.from(value.slice(end + 1));
  const expected = Buffer.from(macOf(key, signed));
  if (given.byteLength !== expected.byteLength || !nodeCrypto().timingSafeEqual(given, expected)) return undefined;
  const [version, claims, ...rest] = signed.split(".");
  if (version !== VERSION || claims === undefined || rest.length > 0) return undefined;
  return JSON.parse(Buffer.from(claims, "base64url").toString());
}

function macOf(key: Uint8Array, signed: string): string {
  return nodeCrypto().createHmac("sha256", key).update(signed).digest("base64url");
}
