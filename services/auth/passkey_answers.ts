/**
 * Verifies what a browser sends at the end of a ceremony. The library does the cryptography and is loaded with the first ceremony;
 * responses that it would accept but Parlor doesn't, or for which it would use the network, are refused first.
 */
import { Buffer } from "node:buffer";
import { AppError, messageOf } from "../errors.ts";
import type { CredentialRecord } from "./credential_store.ts";

/** COSE algorithm numbers of EdDSA, ES256 and RS256. */
export const ALGORITHMS = [-8, -7, -257];

/** A browser's answer to `navigator.credentials.create`; what is in its texts is base64url. */
export interface RegistrationAnswer {
  id: string;
  rawId: string;
  response: { clientDataJSON: string; attestationObject: string; transports?: string[] };
}

/** A browser's answer to `navigator.credentials.get`. */
export interface LoginAnswer {
  id: string;
  rawId: string;
  response: { clientDataJSON: string; authenticatorData: string; signature: string; userHandle?: string | null };
}

/** What a response must match. */
export interface Expectation {
  challenge: string;
  /** Compared character by character, also where machines share an RPID. */
  origin: string;
  rpId: string;
}

/** Result of a registration. */
export interface NewCredential {
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
    throw new AppError("invalid_request", "The passkey was used inside a frame of another site");
  }
  return data.challenge;
}

/**
 * Verifies a registration. Attestation other than `none` is refused unread, because it could name addresses to contact.
 *
 * @throws {AppError} `invalid_request`, its cause says what did not fit.
 */
export async function verifyRegistration(
  answer: RegistrationAnswer,
  expected: Expectation,
): Promise<NewCredential> {
  const { id, rawId, response } = answer;
  try {
    const { decodeAttestationObject } = await import("@simplewebauthn/server/helpers");
    const attestation = decodeAttestationObject(
      new Uint8Array(Buffer.from(response.attestationObject, "base64url")),
    );
    if (attestation.get("fmt") !== "none") throw new Error(`attestation is of another format than "none"`);
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
    if (credential.id !== id) throw new Error("the credential has another id than the answer");
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
 * @param credential `undefined` when the id is unknown here: the same work is done, and the answer is the same.
 * @returns The authenticator's new signature counter, or why the response is refused.
 */
export async function verifyLogin(
  answer: LoginAnswer,
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
    if (credential === undefined) return { refusal: "the passkey is not known here" };
    if (!verified) return { refusal: "its signature is wrong" };
    if ((userHandle ?? credential.user_handle) !== credential.user_handle) return { refusal: "it is another user's" };
    return { counter: authenticationInfo.newCounter };
  } catch (error) {
    return { refusal: messageOf(error) };
  }
}

/** A valid ES256 key, so that an unknown id costs a verification like any other: the base point of P-256 (FIPS 186-5). */
const DECOY_KEY = Buffer.from(
  "a501020326200121582" + "06b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296" +
    "2258204fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5",
  "hex",
).toString("base64url");
