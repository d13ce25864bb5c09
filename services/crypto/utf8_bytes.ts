/** The bytes of texts that are short and nearly always ASCII: frames, journal records, what a sealed value is bound to. */

const encoder = new TextEncoder();
/** Beyond this the runtime's encoder is faster than a loop. */
const SHORT_CHARS = 600;

/**
 * Gives a text as UTF-8, exactly as `TextEncoder` does. The way into the runtime and back costs several times the
 * few hundred bytes of a short text, and most where it runs once between two waits.
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
