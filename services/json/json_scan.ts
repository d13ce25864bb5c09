/** Splits a long JSON array into its elements without parsing it as a whole. */

const [QUOTE, ESCAPE, COMMA] = [0x22, 0x5c, 0x2c];
const OPENING = [0x5b, 0x7b];
const CLOSING = [0x5d, 0x7d];

/**
 * Yields the bytes of each element of a JSON array.
 *
 * @throws {SyntaxError} if the text isn't an array or is incomplete.
 */
export function* elementsOf(bytes: Uint8Array): Generator<Uint8Array> {
  let at = bytes.findIndex((byte) => byte > 0x20 && byte < 0x80); // skip white space and a byte order mark
  if (at < 0 || bytes[at] !== OPENING[0]) throw new SyntaxError("Not an array");
  let depth = 0;
  let isInText = false;
  let begin = at + 1;
  for (; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (isInText) {
      if (byte === ESCAPE) at++;
      else if (byte === QUOTE) isInText = false;
    } else if (byte === QUOTE) isInText = true;
    else if (OPENING.includes(byte)) depth++;
    else if (CLOSING.includes(byte)) {
      if (--depth > 0) continue;
      if (!isBlank(bytes, begin, at)) yield bytes.subarray(begin, at);
      return;
    } else if (byte === COMMA && depth === 1) {
      yield bytes.subarray(begin, at);
      begin = at + 1;
    }
  }
  throw new SyntaxError("The array is incomplete");
}

function isBlank(bytes: Uint8Array, begin: number, end: number): boolean {
  for (let at = begin; at < end; at++) if (bytes[at]! > 0x20) return false;
  return true;
}
