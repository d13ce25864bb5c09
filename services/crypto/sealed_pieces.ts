/**
 * Encrypts streams in chunks, so that they're never in memory as a whole. Each chunk is bound to its AAD, its index and
 * a flag for the last chunk: chunks can't be swapped or dropped, and a stream can't be truncated.
 */
import { Buffer } from "node:buffer";
import { AppError } from "../errors.ts";
import { readBytesAt } from "../storage/atomic_file.ts";
import { type Aad, type PurposeSealer, SEAL_OVERHEAD_BYTES } from "./sealer.ts";

/** Size of a chunk before sealing; part of the stored format. */
const PIECE_BYTES = 64 * 1024;
const RECORD_BYTES = PIECE_BYTES + SEAL_OVERHEAD_BYTES;

/** Seals a stream. Errors of the source pass through. An empty stream still produces a last chunk. */
export async function* sealPieces(
  sealer: Pick<PurposeSealer, "seal">,
  aad: Aad,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let index = 0;
  // Hold a full chunk back until the next one arrives, because it could be the last.
  for await (const [piece, isLast] of cut(source, PIECE_BYTES)) {
    yield await sealer.seal(createPieceAad(aad, index++, isLast), piece);
  }
}

/**
 * Opens a sealed stream.
 *
 * @throws {AppError} `internal` if the stream was modified or truncated. Chunks before that are authentic.
 */
export async function* openPieces(
  sealer: Pick<PurposeSealer, "open">,
  aad: Aad,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let index = 0;
  for await (const [record, isLast] of cut(source, RECORD_BYTES)) {
    yield await sealer.open(createPieceAad(aad, index++, isLast), record);
  }
}

/** A range of bytes of the content, including both ends. */
export interface PieceRange {
  start: number;
  end: number;
}

/**
 * Decrypts a range of a sealed file. Only reads the necessary chunks.
 *
 * @throws {AppError} `internal` if one of them was modified or the file was truncated.
 */
export async function* openPieceRange(
  sealer: Pick<PurposeSealer, "open">,
  aad: Aad,
  file: Deno.FsFile,
  { start, end }: PieceRange,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const { size } = await file.stat();
  const lastIndex = countPieces(size) - 1;
  for (let index = Math.floor(start / PIECE_BYTES); index * PIECE_BYTES <= end; index++) {
    const at = index * RECORD_BYTES;
    const record = await readBytesAt(file, at, Math.min(RECORD_BYTES, size - at));
    if (record === undefined) {
      throw new AppError("internal", "Can't read a range of an encrypted file: the file became shorter");
    }
    const piece = await sealer.open(createPieceAad(aad, index, index === lastIndex), record);
    const begin = index * PIECE_BYTES;
    yield piece.subarray(Math.max(0, start - begin), end + 1 - begin);
  }
}

function countPieces(fileBytes: number): number {
  return Math.max(1, Math.ceil(fileBytes / RECORD_BYTES));
}

/**
 * Reads a file from its current position to the end.
 *
 * @param sizeBytes Number of bytes to read.
 * @throws {AppError} `internal` if the file is shorter; the runtime's own errors.
 */
export async function* bytesOfFile(
  file: Deno.FsFile,
  sizeBytes: number,
  what: string,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (let left = sizeBytes; left > 0;) {
    const chunk = new Uint8Array(Math.min(left, RECORD_BYTES));
    const count = await file.read(chunk);
    if (count === null) throw new AppError("internal", `Can't read "${what}": the file became shorter`);
    left -= count;
    yield chunk.subarray(0, count);
  }
}

/** Splits a stream into parts of equal size, each with a flag for the last one, which may be shorter or empty. */
async function* cut(source: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<[Uint8Array, boolean]> {
  let waiting: Buffer = Buffer.alloc(0);
  for await (const chunk of source) {
    waiting = waiting.length === 0 ? Buffer.from(chunk) : Buffer.concat([waiting, chunk]);
    let at = 0;
    for (; waiting.length - at > size; at += size) yield [waiting.subarray(at, at + size), false];
    waiting = waiting.subarray(at);
  }
  yield [waiting, true];
}

function createPieceAad(aad: Aad, index: number, isLast: boolean): Aad {
  return { ...aad, field: `${aad.field}/${index}${isLast ? "/end" : ""}` };
}
