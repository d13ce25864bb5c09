/** Encrypts secrets with a passphrase, for example an exported storage key. */
import { Buffer } from "node:buffer";
import { AppError } from "../errors.ts";
import { nodeCrypto, randomBytes } from "./random.ts";
import { type Aad, createSealer, type PurposeSealer } from "./sealer.ts";

/** A secret encrypted with a passphrase, and the parameters to decrypt it. JSON. */
export interface PassphraseSeal {
  kdf: "scrypt";
  n: number;
  r: number;
  p: number;
  /** Base64. */
  salt: string;
  /** Base64. */
  sealed: string;
}

/**
 * scrypt parameters: each attempt takes 128 MiB and a few tenths of a second, for an attacker too.
 *
 * @see RFC 7914, section 2
 */
const COST = { n: 2 ** 17, r: 8, p: 1 };
/** Limits the memory that a damaged or hostile file can request. */
const MAX_MEMORY_BYTES = 512 * 1024 * 1024;
const MIN_LENGTH = 8;
const PURPOSE = "passphrase";
const AAD: Aad = { table: "passphrase", id: "secret", field: "sealed", version: 1 };

/**
 * Seals a secret of a few bytes with a passphrase (scrypt and AES-256-GCM).
 *
 * @throws {AppError} `invalid_request` if the passphrase is too short.
 */
export async function sealWithPassphrase(passphrase: string, secret: Uint8Array): Promise<PassphraseSeal> {
  if (passphrase.length < MIN_LENGTH) {
    throw new AppError("invalid_request", `The passphrase is too short. Use at least ${MIN_LENGTH} characters`);
  }
  const salt = randomBytes(16);
  const sealer = await deriveSealer(passphrase, salt, COST);
  return { kdf: "scrypt", ...COST, salt: encodeBase64(salt), sealed: encodeBase64(sealer.sealNow(AAD, secret)) };
}

/**
 * Opens a sealed secret.
 *
 * @throws {AppError} `invalid_request` if the passphrase is wrong, `unprocessable` if the seal is malformed.
 */
export async function openWithPassphrase(passphrase: string, seal: PassphraseSeal): Promise<Uint8Array<ArrayBuffer>> {
  if (!isPassphraseSeal(seal)) {
    throw new AppError("unprocessable", "Can't decrypt the key: the passphrase data is damaged");
  }
  const { n, r, p, salt, sealed } = seal;
  const sealer = await deriveSealer(passphrase, Buffer.from(salt, "base64"), { n, r, p });
  try {
    return sealer.openNow(AAD, Buffer.from(sealed, "base64"));
  } catch (cause) {
    throw new AppError("invalid_request", "Wrong passphrase", { cause });
  }
}

/** Reports whether a value has the shape of a seal and a memory cost within the limit. */
export function isPassphraseSeal(value: unknown): value is PassphraseSeal {
  if (typeof value !== "object" || value === null) return false;
  const { kdf, n, r, p, salt, sealed } = value as Partial<PassphraseSeal>;
  const isCount = (count: unknown): count is number => Number.isSafeInteger(count) && (count as number) > 0;
  return kdf === "scrypt" && isCount(n) && isCount(r) && isCount(p) && n > 1 && Number.isInteger(Math.log2(n)) &&
    128 * n * r * p < MAX_MEMORY_BYTES && typeof salt === "string" && typeof sealed === "string";
}

async function deriveSealer(
  passphrase: string,
  salt: Uint8Array,
  { n, r, p }: typeof COST,
): Promise<PurposeSealer> {
  const options = { N: n, r, p, maxmem: MAX_MEMORY_BYTES };
  // Different keyboards can encode the same character differently.
  const key = await new Promise<Uint8Array>((resolve, reject) =>
    nodeCrypto().scrypt(
      passphrase.normalize("NFKC"),
      salt,
      32,
      options,
      (error, derived) => error ? reject(error) : resolve(derived),
    )
  );
  return createSealer(key).forPurpose(PURPOSE);
}

function encodeBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}
