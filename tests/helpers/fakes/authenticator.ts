/**
 * An authenticator in software, written from the standard and not from the library that judges its answers. It does what
 * it is told, right or wrong.
 *
 * @see WebAuthn Level 3, sections 5.8.1 (client data), 6.1 (authenticator data), 6.5 (attestation), 6.3.3 (signature)
 */
import { Buffer } from "node:buffer";
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { type CborValue, encodeCbor } from "./cbor.ts";
import { joined } from "../app/joined.ts";

/** The registration options that are used. */
export interface CreationOptions {
  challenge: string;
  rp: { id?: string };
  user: { id: string };
}

/** The sign-in options that are used. */
export interface RequestOptions {
  challenge: string;
  rpId?: string;
}

/** Deviations from a correct response. */
export interface Faults {
  type?: string;
  challenge?: string;
  crossOrigin?: boolean;
  topOrigin?: string;
  /** RP ID whose hash goes into the authenticator data. */
  rpId?: string;
  userPresent?: boolean;
  userVerified?: boolean;
  counter?: number;
  /** COSE algorithm written into the key. */
  algorithm?: number;
  fmt?: string;
  attStmt?: Map<string, CborValue>;
  /** An attestation object that replaces the correct one. */
  attestationObject?: Uint8Array;
  id?: string;
  rawId?: string;
  userHandle?: string;
  signature?: (right: Uint8Array) => Uint8Array;
}

interface Passkey {
  id: string;
  rpId: string;
  userHandle: string;
  privateKey: KeyObject;
}

const base64url = (bytes: Uint8Array | string) => Buffer.from(bytes).toString("base64url");
const sha256 = (bytes: Uint8Array | string) => new Uint8Array(createHash("sha256").update(bytes).digest());

/** One device with ES256 passkeys. */
export class Authenticator {
  readonly passkeys: Passkey[] = [];
  /** Signature counter. Always 0, like on phones, unless a test sets it. */
  counter = 0;

  /** Answers `navigator.credentials.create` in JSON. @param origin Of the page. */
  create(options: CreationOptions, origin: string, faults: Faults = {}) {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const id = faults.id ?? base64url(randomBytes(32));
    const rpId = faults.rpId ?? options.rp.id ?? "";
    this.passkeys.push({ id, rpId: options.rp.id ?? "", userHandle: options.user.id, privateKey });
    const { x, y } = publicKey.export({ format: "jwk" });
    const coseKey = encodeCbor(
      new Map<number, CborValue>([
        [1, 2],
        [3, faults.algorithm ?? -7],
        [-1, 1],
        [-2, new Uint8Array(Buffer.from(x!, "base64url"))],
        [-3, new Uint8Array(Buffer.from(y!, "base64url"))],
      ]),
    );
    const idBytes = new Uint8Array(Buffer.from(id, "base64url"));
    const idLength = new Uint8Array([idBytes.length >> 8, idBytes.length & 0xff]);
    const authData = joined([this.#head(rpId, faults, 0x40), new Uint8Array(16), idLength, idBytes, coseKey]);
    const attestationObject = faults.attestationObject ?? encodeCbor(
      new Map<string, CborValue>([
        ["fmt", faults.fmt ?? "none"],
        ["attStmt", faults.attStmt ?? new Map()],
        ["authData", authData],
      ]),
    );
    return {
      id,
      rawId: faults.rawId ?? id,
      type: "public-key",
      clientExtensionResults: {},
      response: {
        clientDataJSON: clientData("webauthn.create", options.challenge, origin, faults),
        attestationObject: base64url(attestationObject),
        transports: ["internal"],
      },
    };
  }

  /** Answers `navigator.credentials.get` in JSON, by the newest passkey of the RP ID. @throws {Error} if there is none. */
  get(options: RequestOptions, origin: string, faults: Faults = {}) {
    const passkey = this.passkeys.findLast(({ rpId }) => rpId === options.rpId) ?? this.passkeys.at(-1);
    if (passkey === undefined) throw new Error("This authenticator has no passkey");
    const clientDataJSON = clientData("webauthn.get", options.challenge, origin, faults);
    const authenticatorData = this.#head(faults.rpId ?? options.rpId ?? "", faults, 0);
    const signed = joined([authenticatorData, sha256(Buffer.from(clientDataJSON, "base64url"))]);
    const signature = new Uint8Array(sign("sha256", signed, passkey.privateKey));
    const id = faults.id ?? passkey.id;
    return {
      id,
      rawId: faults.rawId ?? id,
      type: "public-key",
      clientExtensionResults: {},
      response: {
        clientDataJSON,
        authenticatorData: base64url(authenticatorData),
        signature: base64url(faults.signature?.(signature) ?? signature),
        userHandle: faults.userHandle ?? passkey.userHandle,
      },
    };
  }

  #head(rpId: string, { userPresent = true, userVerified = true, counter }: Faults, moreFlags: number): Uint8Array {
    const flags = (userPresent ? 0x01 : 0) | (userVerified ? 0x04 : 0) | moreFlags;
    const rest = new Uint8Array(5);
    rest[0] = flags;
    new DataView(rest.buffer).setUint32(1, counter ?? this.counter);
    return joined([sha256(rpId), rest]);
  }
}

function clientData(type: string, challenge: string, origin: string, faults: Faults): string {
  return base64url(JSON.stringify({
    type: faults.type ?? type,
    challenge: faults.challenge ?? challenge,
    origin,
    crossOrigin: faults.crossOrigin ?? false,
    ...(faults.topOrigin === undefined ? {} : { topOrigin: faults.topOrigin }),
  }));
}
