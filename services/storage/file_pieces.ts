/** Files too large to be held, read and written from begin to end. */
import { fileError } from "./atomic_file.ts";

const PIECE_BYTES = 256 * 1024;
const FILE_MODE = 0o600;

/** Gives a file piece by piece. @throws {AppError} `internal` when it cannot be read */
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
    throw fileError(`Cannot read "${path}"`, cause);
  }
}

/**
 * Writes a new file chunk by chunk, so that the sender waits for the disk. It is not synced: a file that outlives the
 * process is written by `writeChunksAtomic`.
 *
 * @throws {AppError} `storage_full`, `internal`; what `pieces` throws, as it is
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
      throw fileError(`Cannot write "${path}"`, cause);
    }
  }
}
