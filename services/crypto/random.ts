/** Creates random IDs, tokens and bytes from the runtime's cryptographic source. */

/**
 * Maximum number of bytes per call of `getRandomValues`.
 *
 * @see https://www.w3.org/TR/WebCryptoAPI/#Crypto-method-getRandomValues
 */
const MAX_BYTES_PER_CALL = 65_536;

/** Two hex digits per byte value. */
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/**
 * Returns random bytes.
 *
 * @param byteLength Any number from 0.
 */
export function randomBytes(byteLength: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(byteLength);
  for (let start = 0; start < byteLength; start += MAX_BYTES_PER_CALL) {
    crypto.getRandomValues(bytes.subarray(start, start + MAX_BYTES_PER_CALL));
  }
  return bytes;
}

/**
 * Returns a random string that is safe in URLs and headers.
 *
 * @param byteLength Number of random bytes; 32 make 43 characters.
 * @returns base64url without padding.
 */
export function randomToken(byteLength: number): string {
  const bytes = randomBytes(byteLength);
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/**
 * Returns a new UUID version 7: 48 bits of milliseconds since 1970, then 74 random bits.
 *
 * Ids of different milliseconds sort by time. Within one millisecond their order is random.
 *
 * @returns Lower case with hyphens, 36 characters.
 * @see RFC 9562, section 5.7
 */
export function createUuidV7(): string {
  const bytes = randomBytes(16);
  const nowMs = Date.now();
  const view = new DataView(bytes.buffer);
  view.setUint16(0, Math.floor(nowMs / 2 ** 32));
  view.setUint32(2, nowMs % 2 ** 32);
  bytes[6] = (bytes[6]! & 0x0f) | 0x70;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  let text = "";
  for (let at = 0; at < 16; at++) {
    text += at === 4 || at === 6 || at === 8 || at === 10 ? `-${HEX[bytes[at]!]}` : HEX[bytes[at]!];
  }
  return text;
}

type NodeCrypto = typeof import("node:crypto");

let loaded: NodeCrypto | undefined;

/** Returns the `node:crypto` module. */
export function nodeCrypto(): NodeCrypto {
  // deno-lint-ignore no-process-global -- to import node:process takes half as long again, and that at every start
  return loaded ??= process.getBuiltinModule("node:crypto") as NodeCrypto;
}
