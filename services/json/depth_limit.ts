/** Measures how deeply JSON nests from its bytes, before parsing. */

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
/** `[` and `{`, `]` and `}` differ in this bit only. */
const CASE_BIT = 0x20;
const [OPENING, CLOSING] = [0x5b | CASE_BIT, 0x5d | CASE_BIT];

/**
 * Reports whether JSON nests deeper than a limit. Recursive code would overflow the stack on such a value.
 *
 * @param bytes UTF-8. The result is meaningless for invalid JSON, which the parser refuses anyway.
 */
export function isNestedDeeper(bytes: Uint8Array, limit: number): boolean {
  if (bytes.length <= limit) return false;
  let depth = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      at = endOfString(bytes, at);
      if (at < 0) return false;
    } else if ((byte | CASE_BIT) === OPENING) {
      if (++depth > limit) return true;
    } else if ((byte | CASE_BIT) === CLOSING) depth--;
  }
  return false;
}

/** Returns the position of the closing quotation mark of a string; -1 if there is none. */
function endOfString(bytes: Uint8Array, begin: number): number {
  for (let end = bytes.indexOf(QUOTE, begin + 1);; end = bytes.indexOf(QUOTE, end + 1)) {
    if (end < 0) return -1;
    let slashes = 0;
    while (bytes[end - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
}
