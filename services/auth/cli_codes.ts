/** One-time codes that sign in the command line from a signed-in page: bound to a PKCE challenge, valid once, for two minutes. */
import { Buffer } from "node:buffer";
import { nodeCrypto } from "../crypto/node_crypto.ts";
import { randomToken } from "../crypto/random.ts";

/** Lifetime of a code. */
const CODE_MS = 2 * 60 * 1000;
/** Maximum number of open codes. The oldest is dropped first. */
const MAX_CODES = 64;

/** Owner of the session that the command line gets. */
export interface CliOwner {
  rpId: string;
  credentialId: string;
}

/** Creates and redeems codes. */
export interface CliCodes {
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
      const given = Buffer.from(nodeCrypto().createHash("sha256").update(verifier).digest("base64url"));
      const expected = Buffer.from(entry.challenge);
      return given.byteLength === expected.byteLength && nodeCrypto().timingSafeEqual(given, expected)
        ? entry.owner
        : undefined;
    },
  };
}
