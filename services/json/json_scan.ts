/** Scans JSON text without parsing it: nesting depth, and the elements of a large array. */

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
/** `[` and `{`, and also `]` and `}`, differ only in this bit. */
const CASE_BIT = 0x20;
const [OPENING, CLOSING] = [0x5b | CASE_BIT, 0x5d | CASE_BIT];
const OPENING_BRACKET = 0x5b;

/**
 * Reports whether JSON has more levels than a limit. Recursive code over such a value would overflow the stack.
 *
 * @param bytes UTF-8. For invalid JSON the result means nothing; the parser refuses it anyway.
 */
export function isNestedDeeper(bytes: Uint8Array, limit: number): boolean {
  if (bytes.length <= limit) return false;
  let depth = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      at = findStringEnd(bytes, at);
      if (at < 0) return false;
    } else if ((byte | CASE_BIT) === OPENING) {
      if (++depth > limit) return true;
    } else if ((byte | CASE_BIT) === CLOSING) depth--;
  }
  return false;
}

/**
 * Yields the bytes of each element of a JSON array.
 *
 * @throws {SyntaxError} if the text isn't an array or ends early
 */
export function* splitArray(bytes: Uint8Array): Generator<Uint8Array> {
  let at = bytes.findIndex((byte) => byte > 0x20 && byte < 0x80); // after white space and a byte order mark
  if (at < 0 || bytes[at] !== OPENING_BRACKET) throw new SyntaxError("Not a JSON array");
  let depth = 0;
  let start = at + 1;
  for (; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      at = findStringEnd(bytes, at);
      if (at < 0) break;
    } else if ((byte | CASE_BIT) === OPENING) depth++;
    else if ((byte | CASE_BIT) === CLOSING) {
      if (--depth > 0) continue;
      if (!isBlank(bytes, start, at)) yield bytes.subarray(start, at);
      return;
    } else if (byte === COMMA && depth === 1) {
      yield bytes.subarray(start, at);
      start = at + 1;
    }
  }
  throw new SyntaxError("The JSON array ends early");
}

/** Returns the offset of the quotation mark that ends a string; -1 if there is none. */
function findStringEnd(bytes: Uint8Array, start: number): number {
  for (let end = bytes.indexOf(QUOTE, start + 1);; end = bytes.indexOf(QUOTE, end + 1)) {
    if (end < 0) return -1;
    let slashes = 0;
    while (bytes[end - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
}

function isBlank(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at]! > 0x20) return false;
  return true;
}
