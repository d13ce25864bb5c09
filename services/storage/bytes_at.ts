/** Random access reads. */

/** Reads a number of bytes at a position; `undefined` if the file ends before. */
export async function bytesAt(
  file: Deno.FsFile,
  at: number,
  length: number,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  await file.seek(at, Deno.SeekMode.Start);
  const bytes = new Uint8Array(length);
  for (let have = 0; have < length;) {
    const count = await file.read(bytes.subarray(have));
    if (count === null) return undefined;
    have += count;
  }
  return bytes;
}
