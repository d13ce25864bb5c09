/** Fast UTF-8 encoding for short, mostly ASCII texts: stream frames, journal records, additional authenticated data. */

const encoder = new TextEncoder();
/** Longer texts are faster with the runtime's encoder. */
const SHORT_CHARS = 600;

/**
 * Encodes a text as UTF-8, exactly as `TextEncoder` does. For a few hundred bytes, the call into the runtime costs
 * several times the encoding itself.
 */
export function utf8Bytes(text: string): Uint8Array<ArrayBuffer> {
  const length = text.length;
  if (length > SHORT_CHARS) return encoder.encode(text);
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    if (code > 0x7f) return encoder.encode(text);
    bytes[at] = code;
  }
  return bytes;
}
