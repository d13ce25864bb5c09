/**
 * Files sealed piece by piece, so that none is ever held whole. Each piece is bound to its file, its number and whether
 * it is the last: pieces can neither be swapped nor left out, nor a file cut at the end of one.
 */
import { Buffer } from "node:buffer";
import { type Place, type PurposeSealer, SEAL_OVERHEAD_BYTES } from "../crypto/sealer.ts";
import { AppError, messageOf } from "../errors.ts";
import { writeChunksAtomic } from "../storage/atomic_file.ts";

/** Bytes of a piece before sealing; part of the stored format. */
const PIECE_BYTES = 64 * 1024;
const RECORD_BYTES = PIECE_BYTES + SEAL_OVERHEAD_BYTES;

/** Where a sealed file lies and what it is bound to. */
export interface SealedFile {
  path: string;
  /** Its `field` is that of the file's pieces. */
  place: Place;
}

/**
 * Writes a sealed file; a crash leaves it whole or not there.
 *
 * @returns Bytes of the content.
 * @throws {AppError} `storage_full`, `internal`; an AppError of the source as it is.
 */
export async function writeSealedFile(
  sealer: PurposeSealer,
  { path, place }: SealedFile,
  source: AsyncIterable<Uint8Array>,
): Promise<number> {
  let sizeBytes = 0;
  async function* records(): AsyncGenerator<Uint8Array> {
    let waiting: Buffer = Buffer.alloc(0);
    let index = 0;
    for await (const chunk of source) {
      sizeBytes += chunk.byteLength;
      waiting = Buffer.concat([waiting, chunk]);
      // A full piece waits for what comes behind it: it may be the last one.
      while (waiting.length > PIECE_BYTES) {
        yield await sealer.seal(piecePlace(place, index++, false), waiting.subarray(0, PIECE_BYTES));
        waiting = waiting.subarray(PIECE_BYTES);
      }
    }
    yield await sealer.seal(piecePlace(place, index, true), waiting);
  }
  await writeChunksAtomic(path, records());
  return sizeBytes;
}

/**
 * Reads a sealed file piece by piece. Nothing is opened before the first piece is asked for.
 *
 * @throws {AppError} `internal` when the file is missing, was changed or cut; what came before was genuine.
 */
export async function* readSealedFile(
  sealer: PurposeSealer,
  { path, place }: SealedFile,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  using file = await Deno.open(path).catch((cause) => {
    throw new AppError("internal", `Cannot read "${path}": ${messageOf(cause)}`, { cause });
  });
  const { size } = await file.stat();
  const count = Math.max(1, Math.ceil(size / RECORD_BYTES));
  for (let index = 0; index < count; index++) {
    const record = new Uint8Array(Math.min(RECORD_BYTES, size - index * RECORD_BYTES));
    for (let filled = 0; filled < record.length;) {
      const readBytes = await file.read(record.subarray(filled));
      if (readBytes === null) throw new AppError("internal", `Cannot read "${path}": it became shorter`);
      filled += readBytes;
    }
    yield await sealer.open(piecePlace(place, index, index === count - 1), record);
  }
}

function piecePlace(place: Place, index: number, isLast: boolean): Place {
  return { ...place, field: `${place.field}/${index}${isLast ? "/end" : ""}` };
}
