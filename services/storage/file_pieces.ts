/** Streams large files, reads parts of them, and joins chunks of bytes. */
import { fileError } from "./atomic_file.ts";

const PIECE_BYTES = 256 * 1024;
const FILE_MODE = 0o600;

/** Reads a file in chunks. @throws {AppError} `internal` if it can't be read. */
export async function* streamFilePieces(path: string): AsyncGenerator<Uint8Array<ArrayBuffer>> {
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

/** A file that can be read at any position: an open file, or bytes in memory. */
export interface RandomAccessFile {
  stat(): Promise<{ size: number }>;
  seek(offset: number, whence: Deno.SeekMode): Promise<number>;
  /** @returns The number of bytes read; `null` at the end. */
  read(into: Uint8Array): Promise<number | null>;
}

/** Reads a number of bytes at a position; `undefined` if the file ends before. */
export async function readBytesAt(
  file: RandomAccessFile,
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

/** Concatenates chunks into a new buffer. */
export function joinBytes(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
