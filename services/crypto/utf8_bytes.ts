/** Fast UTF-8 encoding for short texts: stream frames, journal records, additional authenticated data. */

const encoder = new TextEncoder();
const BUFFER_BYTES = 4096;
const buffer = new Uint8Array(BUFFER_BYTES);
/** UTF-16 units that fit in any case: each takes at most 3 bytes. */
const MAX_CHARS = Math.floor(BUFFER_BYTES / 3);

/**
 * Encodes a text as UTF-8, exactly as `TextEncoder.encode` does. That one has the runtime allocate each result, which takes
 * longer than encoding a short text.
 */
export function utf8Bytes(text: string): Uint8Array<ArrayBuffer> {
  if (text.length > MAX_CHARS) return encoder.encode(text);
  return buffer.slice(0, encoder.encodeInto(text, buffer).written);
}
