/**
 * Lets a command on the server's own machine prove that it can read the data folder: a statement signed with the
 * session key. Anyone who can read that file could sign a session, so the proof grants nothing new. It works like the
 * loopback bypass, even if the bypass is off.
 */
import { Buffer } from "node:buffer";
import { nodeCrypto } from "./node_crypto.ts";

const PREFIX = "parlor-operator.";
/** Long enough for a slow machine, too short to be useful if it leaks into a shell history. */
const VALID_MS = 60_000;

/** Creates a proof, sent as `Authorization: Bearer`. */
export function operatorProof(sessionKey: Uint8Array, nowMs: number): string {
  const signed = `${PREFIX}${nowMs}`;
  return `${signed}.${macOf(sessionKey, signed)}`;
}

/** Reports whether a bearer token is a proof signed with this key within the last minute. */
export function isOperatorProof(token: string, sessionKey: Uint8Array, nowMs: number): boolean {
  if (!token.startsWith(PREFIX) || token.length > 200) return false;
  const end = token.lastIndexOf(".");
  const signed = token.slice(0, end);
  const given = Buffer.from(token.slice(end + 1));
  const expected = Buffer.from(macOf(sessionKey, signed));
  if (given.byteLength !== expected.byteLength || !nodeCrypto().timingSafeEqual(given, expected)) return false;
  return Math.abs(nowMs - Number(signed.slice(PREFIX.length))) <= VALID_MS;
}

function macOf(key: Uint8Array, signed: string): string {
  return nodeCrypto().createHmac("sha256", key).update(signed).digest("base64url");
}
