/**
 * Streams sealed piece by piece, so that none is ever held whole. Each piece is bound to its place, its number and whether
 * it is the last: pieces can neither be swapped nor left out, nor a stream cut at the end of one.
 */
import { Buffer } from "node:buffer";
import { AppError } from "../errors.ts";
import { type Place, type PurposeSealer, SEAL_OVERHEAD_BYTES } from "./sealer.ts";

/** Bytes of a piece before sealing; part of the stored format. */
const PIECE_BYTES = 64 * 1024;
const RECORD_BYTES = PIECE_BYTES + SEAL_OVERHEAD_BYTES;

/** Seals a stream; what the source throws passes. An empty one still has its last piece. */
export async function* sealPieces(
  sealer: Pick<PurposeSealer, "seal">,
  place: Place,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let index = 0;
  // A full piece waits for what comes behind it: it may be the last one.
  for await (const [piece, isLast] of cut(source, PIECE_BYTES)) {
    yield await sealer.seal(piecePlace(place, index++, isLast), piece);
  }
}

/**
 * Opens a sealed stream.
 *
 * @throws {AppError} `internal` when it was changed or cut; what came before was genuine.
 */
export async function* openPieces(
  sealer: Pick<PurposeSealer, "open">,
  place: Place,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let index = 0;
  for await (const [record, isLast] of cut(source, RECORD_BYTES)) {
    yield await sealer.open(piecePlace(place, index++, isLast), record);
  }
}

/**
 * Gives the bytes of a file from where it stands to its end.
 *
 * @param sizeBytes Bytes to give; a file that has fewer has become shorter.
 * @throws {AppError} `internal` when it ends before; what the runtime throws.
 */
export async function* bytesOfFile(
  file: Deno.FsFile,
  sizeBytes: number,
  what: string,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (let left = sizeBytes; left > 0;) {
    const chunk = new Uint8Array(Math.min(left, RECORD_BYTES));
    const count = await file.read(chunk);
    if (count === null) throw new AppError("internal", `Cannot read "${what}": it became shorter`);
    left -= count;
    yield chunk.subarray(0, count);
  }
}

/** Cuts a stream into parts of one size, each with whether it is the last; the last one is shorter, or empty. */
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

function piecePlace(place: Place, index: number, isLast: boolean): Place {
  return { ...place, field: `${place.field}/${index}${isLast ? "/end" : ""}` };
}
