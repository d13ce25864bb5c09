/** How deep JSON nests, told from its bytes before anything is made of them. */

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
/** `[` and `{`, `]` and `}`, which differ in this bit alone. */
const CASE_BIT = 0x20;
const [OPENING, CLOSING] = [0x5b | CASE_BIT, 0x5d | CASE_BIT];

/**
 * Says whether JSON has more levels than a limit. What walks through such a value would meet the end of the stack.
 *
 * @param bytes UTF-8. Of what is no JSON the answer means nothing: the parser will refuse it.
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

/** Gives the place of the quotation mark that ends a string; -1 where none does. */
function endOfString(bytes: Uint8Array, begin: number): number {
  for (let end = bytes.indexOf(QUOTE, begin + 1);; end = bytes.indexOf(QUOTE, end + 1)) {
    if (end < 0) return -1;
    let slashes = 0;
    while (bytes[end - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
}
