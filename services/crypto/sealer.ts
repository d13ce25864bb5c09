/** Encryption at rest: one subkey per purpose, a random IV per value, and every value bound to its location. */
import { Buffer } from "node:buffer";
import { AppError } from "../errors.ts";
import { nodeCrypto, randomBytes } from "./random.ts";

/** Location of a sealed value: the additional authenticated data (AAD). The value can't be opened anywhere else. */
export interface Aad {
  /** SQL table, or the folder of a sealed file. */
  table: string;
  /** Row id or file name. */
  id: string;
  /** Column, or the name of the value if a row holds several. */
  field: string;
  /** Increases with every change, so that an older value isn't accepted as the current one. */
  version: number;
}

/**
 * Returns the bytes of the additional authenticated data.
 *
 * The parts are encoded as a JSON array, so that no two locations have the same bytes: `["a","bc"]` differs from
 * `["ab","c"]`, and unpaired surrogates are escaped, not replaced. The encoding is part of the stored format and must
 * not change.
 *
 * @param formatVersion First byte of the sealed value; authenticated with the rest.
 * @throws {AppError} `internal` unless the version is a safe integer from 0. Other numbers can be formatted
 *   identically.
 */
export function encodeAad(formatVersion: number, aad: Aad): Uint8Array<ArrayBuffer> {
  const { table, id, field, version } = aad;
  if (!Number.isSafeInteger(version) || version < 0) {
    throw new AppError("internal", `Can't seal a value for ${table}: invalid version ${version}`);
  }
  return encodeUtf8(JSON.stringify([formatVersion, table, id, field, version]));
}

/** First byte of a sealed value: AES-256-GCM, 12-byte IV, ciphertext followed by a 16-byte tag. */
const FORMAT_VERSION = 1;
const IV_BYTES = 12; // NIST SP 800-38D, section 8.2.2: 96 random bits
const TAG_BYTES = 16;
const HEADER_BYTES = 1 + IV_BYTES;

/** How much longer a sealed value is than its content, in bytes. */
export const SEAL_OVERHEAD_BYTES = HEADER_BYTES + TAG_BYTES;

/** Salt of the key derivation; identifies the scheme. */
const SCHEME = "parlor storage v1";

/** Number of IVs read from the system at a time. */
const IVS_AT_ONCE = 256;

/** Maximum number of values per subkey. With more, two random IVs could collide. @see NIST SP 800-38D, section 8.3 */
const MAX_SEALS_PER_KEY = 2 ** 32;

/** Seals and opens the values of one purpose. */
export interface PurposeSealer {
  /**
   * Seals a value off the serving thread (Web Crypto).
   *
   * @param plain Bytes, or a text to be encoded as UTF-8. A text with an unpaired surrogate is rejected, because UTF-8
   *   can't encode it; `JSON.stringify` escapes such characters.
   * @returns `[version byte][12-byte IV][ciphertext and tag]`.
   */
  seal(aad: Aad, plain: string | Uint8Array): Promise<Uint8Array<ArrayBuffer>>;
  /**
   * Opens a value off the serving thread (Web Crypto).
   *
   * @throws {AppError} `internal` if the value was modified, truncated, moved from another location, or sealed with
   *   another key.
   */
  open(aad: Aad, sealed: Uint8Array): Promise<Uint8Array<ArrayBuffer>>;
  /**
   * Like `seal`, but synchronous, for values of a few KiB. The format is the same.
   *
   * @param reservedBytes Number of zero bytes to reserve before the sealed value.
   */
  sealNow(aad: Aad, plain: string | Uint8Array, reservedBytes?: number): Uint8Array<ArrayBuffer>;
  /** Like `open`, but synchronous. */
  openNow(aad: Aad, sealed: Uint8Array): Uint8Array<ArrayBuffer>;
  /**
   * Returns a copy of the subkey for a Worker that creates an opener. The subkey can decrypt everything of this
   * purpose: transfer it, so that no copy remains.
   */
  copyKey(): Uint8Array<ArrayBuffer>;
  /** Number of values sealed for this purpose since the sealer was created. */
  readonly sealCount: number;
}

/** Opens the values of one purpose. Can't seal. */
export interface Opener {
  /**
   * Opens a value off the calling thread (Web Crypto).
   *
   * @throws {AppError} `internal`, like `PurposeSealer.open`.
   */
  open(aad: Aad, sealed: Uint8Array): Promise<Uint8Array<ArrayBuffer>>;
}

/** Derives subkeys from the storage key. */
export interface Sealer {
  /**
   * Returns the sealer for a purpose; the same one for every call.
   *
   * @param purpose Name of the subkey, such as `"conversations"`. Part of the stored format; never rename it.
   */
  forPurpose(purpose: string): PurposeSealer;
}

/**
 * Creates the sealer for a storage key.
 *
 * @param storageKey 32 bytes, from `loadStorageKey`.
 * @param onUnopened Called for each value that can't be opened, before the error is thrown. It may be a value that is
 *   also tried in another way.
 * @throws {AppError} `internal` if the key has another length.
 */
export function createSealer(storageKey: Uint8Array, onUnopened: (aad: Aad) => void = () => {}): Sealer {
  if (storageKey.byteLength !== 32) {
    throw new AppError("internal", `Can't use the storage key: it has ${storageKey.byteLength} bytes instead of 32`);
  }
  const rootKey = new Uint8Array(storageKey);
  const sealers = new Map<string, PurposeSealer>();
  return {
    forPurpose(purpose) {
      let sealer = sealers.get(purpose);
      if (sealer === undefined) {
        sealer = createPurposeSealer(deriveSubkey(rootKey, purpose), purpose, onUnopened);
        sealers.set(purpose, sealer);
      }
      return sealer;
    },
  };
}

/**
 * Creates the opener for a purpose in a Worker and wipes the key it was created from.
 *
 * @param subkey From `copyKey`; all zeros once the promise settles.
 */
export async function createOpener(subkey: Uint8Array<ArrayBuffer>): Promise<Opener> {
  try {
    const key = await crypto.subtle.importKey("raw", subkey, "AES-GCM", false, ["decrypt"]);
    return { open: (aad, sealed) => openWith(key, aad, sealed) };
  } finally {
    subkey.fill(0);
  }
}

async function openWith(key: CryptoKey, aad: Aad, sealed: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const { iv, body } = splitSealed(aad, sealed);
  const additional = encodeAad(FORMAT_VERSION, aad);
  try {
    const plain = await crypto.subtle.decrypt({ name: "AES-GCM", iv, additionalData: additional }, key, body);
    return new Uint8Array(plain);
  } catch (cause) {
    throw createOpenError(aad, "it was modified, moved, or encrypted with another key", cause);
  }
}

/** Subkey of a purpose. It's derived on first use. */
interface Subkey {
  /** Its 32 bytes. */
  bytes(): Uint8Array<ArrayBuffer>;
  /** The same key for Web Crypto; not extractable. */
  forWeb(): Promise<CryptoKey>;
}

/** Derives a subkey with HKDF (RFC 5869): the salt is the scheme, the info is the purpose. */
function deriveSubkey(rootKey: Uint8Array<ArrayBuffer>, purpose: string): Subkey {
  const info = `purpose:${purpose}`;
  let bytes: Uint8Array<ArrayBuffer> | undefined;
  let webKey: Promise<CryptoKey> | undefined;

  async function deriveForWeb(): Promise<CryptoKey> {
    const root = await crypto.subtle.importKey("raw", rootKey, "HKDF", false, ["deriveKey"]);
    const scheme = { name: "HKDF", hash: "SHA-256", salt: encodeUtf8(SCHEME), info: encodeUtf8(info) };
    return await crypto.subtle.deriveKey(scheme, root, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
  }

  return {
    bytes: () => bytes ??= new Uint8Array(nodeCrypto().hkdfSync("sha256", rootKey, SCHEME, info, 32)),
    forWeb: () => webKey ??= deriveForWeb(),
  };
}

function createPurposeSealer(subkey: Subkey, purpose: string, onUnopened: (aad: Aad) => void): PurposeSealer {
  let sealCount = 0;
  /** Random bytes for the next IVs. A system call per value would take longer than encrypting a short text. */
  let ivs: Uint8Array<ArrayBuffer> | undefined;
  let ivsUsed = 0;

  function createIv(): Uint8Array<ArrayBuffer> {
    if (sealCount >= MAX_SEALS_PER_KEY) {
      throw new AppError(
        "internal",
        `Can't encrypt more values for "${purpose}": the limit of its key is reached. Restart the server`,
      );
    }
    sealCount++;
    if (ivs === undefined || ivsUsed === ivs.length) {
      ivs = randomBytes(IV_BYTES * IVS_AT_ONCE);
      ivsUsed = 0;
    }
    return ivs.slice(ivsUsed, ivsUsed += IV_BYTES);
  }

  return {
    get sealCount() {
      return sealCount;
    },

    copyKey: () => new Uint8Array(subkey.bytes()),

    async seal(aad, plain) {
      const bytes = toPlainBytes(aad, plain);
      const additional = encodeAad(FORMAT_VERSION, aad);
      const key = await subkey.forWeb();
      const iv = createIv();
      const cipher = await crypto.subtle.encrypt({ name: "AES-GCM", iv, additionalData: additional }, key, bytes);
      const sealed = new Uint8Array(HEADER_BYTES + cipher.byteLength);
      sealed[0] = FORMAT_VERSION;
      sealed.set(iv, 1);
      sealed.set(new Uint8Array(cipher), HEADER_BYTES);
      return sealed;
    },

    async open(aad, sealed) {
      const key = await subkey.forWeb();
      try {
        return await openWith(key, aad, sealed);
      } catch (error) {
        onUnopened(aad);
        throw error;
      }
    },

    sealNow(aad, plain, reservedBytes = 0) {
      const bytes = toPlainBytes(aad, plain);
      const iv = createIv();
      const cipher = nodeCrypto().createCipheriv("aes-256-gcm", subkey.bytes(), iv, { authTagLength: TAG_BYTES });
      cipher.setAAD(encodeAad(FORMAT_VERSION, aad));
      const sealed = new Uint8Array(reservedBytes + SEAL_OVERHEAD_BYTES + bytes.byteLength);
      const textAt = reservedBytes + HEADER_BYTES;
      sealed[reservedBytes] = FORMAT_VERSION;
      sealed.set(iv, reservedBytes + 1);
      sealed.set(cipher.update(bytes), textAt);
      cipher.final();
      sealed.set(cipher.getAuthTag(), textAt + bytes.byteLength);
      return sealed;
    },

    openNow(aad, sealed) {
      try {
        return openNow(aad, sealed);
      } catch (error) {
        onUnopened(aad);
        throw error;
      }
    },
  };

  function openNow(aad: Aad, sealed: Uint8Array): Uint8Array<ArrayBuffer> {
    const { iv, body } = splitSealed(aad, sealed);
    const textEnd = body.byteLength - TAG_BYTES;
    try {
      const decipher = nodeCrypto().createDecipheriv("aes-256-gcm", subkey.bytes(), iv, { authTagLength: TAG_BYTES });
      decipher.setAAD(encodeAad(FORMAT_VERSION, aad));
      decipher.setAuthTag(Buffer.from(body.subarray(textEnd)));
      const plain = new Uint8Array(textEnd);
      plain.set(decipher.update(body.subarray(0, textEnd)));
      decipher.final(); // Throws unless the tag matches.
      return plain;
    } catch (cause) {
      throw createOpenError(aad, "it was modified, moved, or encrypted with another key", cause);
    }
  }
}

function toPlainBytes(aad: Aad, plain: string | Uint8Array): Uint8Array<ArrayBuffer> {
  if (typeof plain !== "string") {
    return plain.buffer instanceof ArrayBuffer ? plain as Uint8Array<ArrayBuffer> : new Uint8Array(plain);
  }
  if (!plain.isWellFormed()) {
    throw new AppError("internal", `Can't encrypt ${describe(aad)}: the text has an unpaired surrogate`);
  }
  return encodeUtf8(plain);
}

interface SealedParts {
  iv: Uint8Array<ArrayBuffer>;
  body: Uint8Array<ArrayBuffer>;
}

function splitSealed(aad: Aad, sealed: Uint8Array): SealedParts {
  if (sealed.byteLength < SEAL_OVERHEAD_BYTES) {
    throw createOpenError(aad, `it has only ${sealed.byteLength} bytes`);
  }
  if (sealed[0] !== FORMAT_VERSION) {
    throw createOpenError(aad, `its format version is ${sealed[0]}; only ${FORMAT_VERSION} is supported`);
  }
  const own = sealed.buffer instanceof ArrayBuffer ? sealed as Uint8Array<ArrayBuffer> : new Uint8Array(sealed);
  return { iv: own.subarray(1, HEADER_BYTES), body: own.subarray(HEADER_BYTES) };
}

function createOpenError(aad: Aad, found: string, cause?: unknown): AppError {
  return new AppError("internal", `Can't decrypt ${describe(aad)}: ${found}`, { cause });
}

function describe(aad: Aad): string {
  return `${aad.table}.${aad.field} of "${aad.id}"`;
}

const encoder = new TextEncoder();
const BUFFER_BYTES = 4096;
const buffer = new Uint8Array(BUFFER_BYTES);
/** Number of UTF-16 units that always fit: each takes at most 3 bytes. */
const MAX_CHARS = Math.floor(BUFFER_BYTES / 3);

/**
 * Encodes text as UTF-8, with the same result as `TextEncoder.encode`. Use it for short texts such as stream frames,
 * journal records and AAD: `TextEncoder` allocates each result, which takes longer than encoding a short text.
 */
export function encodeUtf8(text: string): Uint8Array<ArrayBuffer> {
  if (text.length > MAX_CHARS) return encoder.encode(text);
  return buffer.slice(0, encoder.encodeInto(text, buffer).written);
}
