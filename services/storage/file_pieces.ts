/** Streams large files. */
import { fileError } from "./atomic_file.ts";

const PIECE_BYTES = 256 * 1024;
const FILE_MODE = 0o600;

/** Reads a file in chunks. @throws {AppError} `internal` if it can't be read. */
export async function* filePieces(path: string): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  try {
    using file = await Deno.open(path);
    for (;;) {
      const piece = new Uint8Array(PIECE_BYTES);
      const count = await file.read(piece);
      if (count === null) return;
      yield piece.subarray(0, count);
    }
  } catch (cause) {
    throw fileError(`Can't read "${path}"`, cause);
  }
}

/**
 * Writes a new file chunk by chunk; the sender waits for the disk. The file isn't synced: use `writeChunksAtomic` for
 * files that must survive.
 *
 * @throws {AppError} `storage_full`, `internal`; errors of `pieces`, unchanged.
 */
export async function writePieces(
  path: string,
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<void> {
  using file = await Deno.open(path, { createNew: true, write: true, mode: FILE_MODE });
  for await (const piece of pieces) {
    try {
      for (let at = 0; at < piece.length;) at += await file.write(piece.subarray(at));
    } catch (cause) {
      throw fileError(`Can't write "${path}"`, cause);
    }
  }
}
