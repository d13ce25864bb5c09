/** Encodes and verifies the signed value of the session cookie. */
import { Buffer } from "node:buffer";
import { nodeCrypto } from "../crypto/node_crypto.ts";

/** Claims of a cookie. sessions.ts knows whether the session is still valid. */
export interface SessionClaims {
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
  return `${signed}.${macOf(key, signed)}`;
}

/** Returns the claims of a value, or `undefined` if this key didn't sign exactly these characters. */
export function readSession(key: Uint8Array, value: string): SessionClaims | undefined {
  if (value.length > MAX_LENGTH) return undefined;
  const end = value.lastIndexOf(".");
  const signed = value.slice(0, Math.max(end, 0));
  // Compares the texts, not the bytes: the same bytes have several base64url encodings.
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
