/** A secret under a passphrase: what a person can remember opens what no disk may hold in the clear. */
import { Buffer } from "node:buffer";
import { scrypt } from "node:crypto";
import { AppError } from "../errors.ts";
import { randomBytes } from "./random.ts";
import { createSealer, type Place, type PurposeSealer } from "./sealer.ts";

/** A sealed secret with what is needed, beside the passphrase, to open it; JSON. */
export interface PassphraseSeal {
  kdf: "scrypt";
  n: number;
  r: number;
  p: number;
  /** base64 */
  salt: string;
  /** base64 */
  sealed: string;
}

/** 128 MiB and some tenths of a second a try: the cost for whoever guesses. @see RFC 7914, section 2 */
const COST = { n: 2 ** 17, r: 8, p: 1 };
/** A damaged or hostile file must not make us reserve all memory. */
const MAX_MEMORY_BYTES = 512 * 1024 * 1024;
const MIN_LENGTH = 8;
const PURPOSE = "passphrase";
const PLACE: Place = { table: "passphrase", id: "secret", field: "sealed", version: 1 };

/**
 * Seals a secret of a few bytes.
 *
 * @throws {AppError} `invalid_request` when the passphrase is too short to be one.
 */
export async function sealWithPassphrase(passphrase: string, secret: Uint8Array): Promise<PassphraseSeal> {
  if (passphrase.length < MIN_LENGTH) {
    throw new AppError("invalid_request", `Bad passphrase: it needs ${MIN_LENGTH} characters at least`);
  }
  const salt = randomBytes(16);
  const sealer = await sealerOf(passphrase, salt, COST);
  return { kdf: "scrypt", ...COST, salt: base64(salt), sealed: base64(sealer.sealNow(PLACE, secret)) };
}

/**
 * Opens it again.
 *
 * @throws {AppError} `invalid_request` for another passphrase, `unprocessable` for a seal that is none.
 */
export async function openWithPassphrase(passphrase: string, seal: PassphraseSeal): Promise<Uint8Array<ArrayBuffer>> {
  if (!isPassphraseSeal(seal)) {
    throw new AppError("unprocessable", "Cannot read how the passphrase seals the key: it is damaged");
  }
  const { n, r, p, salt, sealed } = seal;
  const sealer = await sealerOf(passphrase, Buffer.from(salt, "base64"), { n, r, p });
  try {
    return sealer.openNow(PLACE, Buffer.from(sealed, "base64"));
  } catch (cause) {
    throw new AppError("invalid_request", "Bad passphrase: it is another one that this was sealed with", { cause });
  }
}

/** Tells whether a value has the shape of a seal, with costs that this machine can pay. */
export function isPassphraseSeal(value: unknown): value is PassphraseSeal {
  if (typeof value !== "object" || value === null) return false;
  const { kdf, n, r, p, salt, sealed } = value as Partial<PassphraseSeal>;
  const isCount = (count: unknown): count is number => Number.isSafeInteger(count) && (count as number) > 0;
  return kdf === "scrypt" && isCount(n) && isCount(r) && isCount(p) && n > 1 && Number.isInteger(Math.log2(n)) &&
    128 * n * r * p < MAX_MEMORY_BYTES && typeof salt === "string" && typeof sealed === "string";
}

async function sealerOf(
  passphrase: string,
  salt: Uint8Array,
  { n, r, p }: typeof COST,
): Promise<PurposeSealer> {
  const options = { N: n, r, p, maxmem: MAX_MEMORY_BYTES };
  // One spelling of what looks the same, whatever keyboard it was typed on.
  const key = await new Promise<Uint8Array>((resolve, reject) =>
    scrypt(
      passphrase.normalize("NFKC"),
      salt,
      32,
      options,
      (error, derived) => error ? reject(error) : resolve(derived),
    )
  );
  return createSealer(key).forPurpose(PURPOSE);
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}
