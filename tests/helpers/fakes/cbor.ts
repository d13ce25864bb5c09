/** Encodes CBOR, valid or malicious. @see RFC 8949 */
import { joined } from "../app/joined.ts";

/** Values that can be encoded. */
export type CborValue = number | string | Uint8Array | CborValue[] | Map<number | string, CborValue>;

/** Encodes a value in the shortest form. */
export function encodeCbor(value: CborValue): Uint8Array<ArrayBuffer> {
  if (typeof value === "number") return value >= 0 ? head(0, value) : head(1, -1 - value);
  if (typeof value === "string") {
    const bytes = new TextEncoder().encode(value);
    return joined([head(3, bytes.length), bytes]);
  }
  if (value instanceof Uint8Array) return joined([head(2, value.length), value]);
  if (Array.isArray(value)) return joined([head(4, value.length), ...value.map(encodeCbor)]);
  return joined([head(5, value.size), ...[...value].flatMap(([key, item]) => [encodeCbor(key), encodeCbor(item)])]);
}

function head(major: number, length: number): Uint8Array<ArrayBuffer> {
  if (length < 24) return new Uint8Array([major << 5 | length]);
  if (length < 0x100) return new Uint8Array([major << 5 | 24, length]);
  if (length < 0x10000) return new Uint8Array([major << 5 | 25, length >> 8, length & 0xff]);
  const bytes = new Uint8Array(5);
  bytes[0] = major << 5 | 26;
  new DataView(bytes.buffer).setUint32(1, length);
  return bytes;
}
