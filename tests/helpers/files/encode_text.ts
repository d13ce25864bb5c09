/** Encodes text in any encoding of the Encoding Standard: TextEncoder only knows UTF-8. */

const tables = new Map<string, Map<string, number[]>>();

/** Returns the bytes of each character, found by decoding all one- and two-byte sequences. */
function getTable(encoding: string): Map<string, number[]> {
  const known = tables.get(encoding);
  if (known !== undefined) return known;
  const table = new Map<string, number[]>();
  const decoder = new TextDecoder(encoding, { fatal: true });
  const add = (bytes: number[]) => {
    try {
      const text = decoder.decode(new Uint8Array(bytes));
      if (Array.from(text).length === 1 && !table.has(text)) table.set(text, bytes);
    } catch {
      // Not a character
    }
  };
  for (let first = 0; first < 256; first++) add([first]);
  for (let first = 0x81; first < 256; first++) for (let second = 0x40; second < 256; second++) add([first, second]);
  tables.set(encoding, table);
  return table;
}

/** Encodes a text. @throws {Error} if the encoding lacks a character. */
export function encodeText(text: string, encoding: string): Uint8Array<ArrayBuffer> {
  if (encoding === "utf-8") return new TextEncoder().encode(text);
  if (encoding.startsWith("utf-16")) {
    const bytes = new Uint8Array(text.length * 2);
    const view = new DataView(bytes.buffer);
    for (let at = 0; at < text.length; at++) view.setUint16(at * 2, text.charCodeAt(at), encoding === "utf-16le");
    return bytes;
  }
  const table = getTable(encoding);
  return new Uint8Array(
    Array.from(text).flatMap((character) => {
      const bytes = table.get(character);
      if (bytes === undefined) throw new Error(`${encoding} has no ${character}`);
      return bytes;
    }),
  );
}
