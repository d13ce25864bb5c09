/** Parts of the passkey ceremonies: challenges, and verification of the browser's response. */
import { randomToken } from "../crypto/random.ts";
import { getClientKey } from "./hosts.ts";
import { Buffer } from "node:buffer";
import { AppError, getErrorMessage } from "../errors.ts";
import type { CredentialRecord } from "./credential_stores.ts";

/** Lifetime of a challenge (docs/protocols/auth.md#ceremonies). */
export const CHALLENGE_MS = 5 * 60 * 1000;
/** Maximum number of running ceremonies. Beyond it, the client with the most loses its oldest. */
const MAX_IN_ALL = 4_096;
/** The same for one client. */
const MAX_PER_CLIENT = 512;

/** What a challenge is valid for. */
export interface CeremonyScope {
  kind: "register" | "login";
  rpId: string;
  /** `scheme://host[:port]` */
  origin: string;
  /** Identifies the browser. */
  browser: string;
}

/**
 * Stores challenges, each with the state of its ceremony. A challenge is valid once, for five minutes, in the ceremony
 * and browser that started it.
 */
export interface Challenges<T> {
  /**
   * @param address Address of the client, for the limits.
   * @param memory State of the ceremony.
   *  @returns The challenge: 32 random bytes, base64url.
   */
  issue(scope: CeremonyScope, address: string, memory: T): string;
  /**
   * Consumes a challenge, whether it matches or not.
   *
   * @returns The state passed to `issue`; `undefined` if the challenge is unknown, expired, or of another scope.
   */
  take(challenge: string, scope: CeremonyScope): T | undefined;
}

interface Entry<T> {
  scope: CeremonyScope;
  client: string;
  endsAtMs: number;
  memory: T;
}

/** Creates an empty store. */
export function createChallenges<T>(now: () => number): Challenges<T> {
  const entries = new Map<string, Entry<T>>();
  /** Challenges by client, oldest first. */
  const clients = new Map<string, Set<string>>();

  function remove(challenge: string): Entry<T> | undefined {
    const entry = entries.get(challenge);
    if (entry === undefined) return undefined;
    entries.delete(challenge);
    const own = clients.get(entry.client)!;
    own.delete(challenge);
    if (own.size === 0) clients.delete(entry.client);
    return entry;
  }

  function removeOldest(challenges: Set<string>): void {
    remove(challenges.values().next().value!);
  }

  function removeExpired(): void {
    // Entries are in the order of creation, so expired ones come first.
    for (const [challenge, { endsAtMs }] of entries) {
      if (endsAtMs > now()) break;
      remove(challenge);
    }
    if (entries.size < MAX_IN_ALL) return;
    let most = new Set<string>();
    for (const own of clients.values()) if (own.size > most.size) most = own;
    removeOldest(most);
  }

  return {
    issue(scope, address, memory) {
      removeExpired();
      const client = getClientKey(address);
      const own = clients.get(client) ?? new Set();
      if (own.size >= MAX_PER_CLIENT) removeOldest(own);
      const challenge = randomToken(32);
      clients.set(client, own.add(challenge));
      entries.set(challenge, { scope, client, endsAtMs: now() + CHALLENGE_MS, memory });
      return challenge;
    },
    take(challenge, scope) {
      const entry = remove(challenge);
      if (entry === undefined || entry.endsAtMs <= now()) return undefined;
      const isSame = entry.scope.kind === scope.kind && entry.scope.rpId === scope.rpId &&
        entry.scope.origin === scope.origin && entry.scope.browser === scope.browser;
      return isSame ? entry.memory : undefined;
    },
  };
}

/** COSE algorithm numbers of EdDSA, ES256 and RS256. */
export const ALGORITHMS = [-8, -7, -257];

/** A browser's response to `navigator.credentials.create`. Binary values are base64url. */
export interface RegistrationCredential {
  id: string;
  rawId: string;
  response: { clientDataJSON: string; attestationObject: string; transports?: string[] };
}

/** A browser's response to `navigator.credentials.get`. */
export interface LoginCredential {
  id: string;
  rawId: string;
  response: { clientDataJSON: string; authenticatorData: string; signature: string; userHandle?: string | null };
}

/** What a response must match. */
interface Expectation {
  challenge: string;
  /** Compared character by character, even if machines share an RP ID. */
  origin: string;
  rpId: string;
}

/** Result of a registration. */
interface NewCredential {
  id: string;
  /** COSE key, base64url. */
  publicKey: string;
  counter: number;
  transports: string[];
}

/**
 * Returns the challenge of a response, which identifies its ceremony.
 *
 * @throws {AppError} `invalid_request` if it isn't client data, or was created in a frame of another site.
 */
export function getChallenge(clientDataJSON: string): string {
  let data: unknown;
  try {
    data = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(clientDataJSON, "base64url")));
  } catch (cause) {
    throw new AppError("invalid_request", "Can't read the passkey response: clientDataJSON isn't JSON", { cause });
  }
  if (typeof data !== "object" || data === null || !("challenge" in data) || typeof data.challenge !== "string") {
    throw new AppError("invalid_request", "Can't read the passkey response: clientDataJSON has no challenge");
  }
  // The library checks crossOrigin only at sign-in, and accepts it there without a topOrigin.
  if (("crossOrigin" in data && data.crossOrigin !== false) || "topOrigin" in data) {
    throw new AppError("invalid_request", "Can't use the passkey: it was used inside a frame of another site");
  }
  return data.challenge;
}

/**
 * Verifies a registration.
 *
 * The library does the cryptography and is loaded with the first ceremony. Responses that Parlor doesn't accept, or for
 * which the library would use the network, are refused before: attestation other than `none` could contain addresses to
 * contact.
 *
 * @throws {AppError} `invalid_request`, whose cause is the reason.
 */
export async function verifyRegistration(
  answer: RegistrationCredential,
  expected: Expectation,
): Promise<NewCredential> {
  const { id, rawId, response } = answer;
  try {
    const { decodeAttestationObject } = await import("@simplewebauthn/server/helpers");
    const attestation = decodeAttestationObject(
      new Uint8Array(Buffer.from(response.attestationObject, "base64url")),
    );
    if (attestation.get("fmt") !== "none") throw new Error(`the attestation format isn't "none"`);
    const { verifyRegistrationResponse } = await import("@simplewebauthn/server");
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response: { id, rawId, type: "public-key", clientExtensionResults: {}, response },
      expectedChallenge: expected.challenge,
      expectedOrigin: expected.origin,
      expectedRPID: expected.rpId,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    });
    if (!verified) throw new Error("not verified");
    const { credential } = registrationInfo;
    if (credential.id !== id) throw new Error("the credential has a different ID than the response");
    const publicKey = Buffer.from(credential.publicKey).toString("base64url");
    return { id, publicKey, counter: credential.counter, transports: response.transports ?? [] };
  } catch (cause) {
    throw new AppError("invalid_request", "Can't add the passkey: its response doesn't match this registration", {
      cause,
    });
  }
}

/**
 * Verifies a sign-in.
 *
 * @param credential `undefined` if the ID is unknown. The same work is done and the response is the same, so that it
 *   reveals nothing.
 * @returns The authenticator's new signature counter, or why the response is refused.
 */
export async function verifyLogin(
  answer: LoginCredential,
  expected: Expectation,
  credential: CredentialRecord | undefined,
): Promise<{ counter: number } | { refusal: string }> {
  const { verifyAuthenticationResponse } = await import("@simplewebauthn/server");
  const { id, rawId, response: { userHandle, ...response } } = answer;
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: { id, rawId, type: "public-key", clientExtensionResults: {}, response },
      expectedChallenge: expected.challenge,
      expectedOrigin: expected.origin,
      expectedRPID: expected.rpId,
      requireUserVerification: true,
      credential: {
        id,
        publicKey: new Uint8Array(Buffer.from(credential?.public_key ?? DECOY_KEY, "base64url")),
        counter: credential?.counter ?? 0,
      },
    });
    if (credential === undefined) return { refusal: "the passkey is unknown" };
    if (!verified) return { refusal: "the signature is wrong" };
    if ((userHandle ?? credential.user_handle) !== credential.user_handle) {
      return { refusal: "it belongs to another user" };
    }
    return { counter: authenticationInfo.newCounter };
  } catch (error) {
    return { refusal: getErrorMessage(error) };
  }
}

/**
 * A valid ES256 key, so that verifying an unknown ID takes as long as any other: the base point of P-256 (FIPS 186-5).
 */
const DECOY_KEY = Buffer.from(
  "a501020326200121582" + "06b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296" +
    "2258204fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5",
  "hex",
).toString("base64url");
