/** Files sealed piece by piece; see crypto/sealed_pieces.ts for what that keeps apart. */
import { createHash } from "node:crypto";
import { bytesOfFile, openPieces, sealPieces } from "../crypto/sealed_pieces.ts";
import type { Place, PurposeSealer } from "../crypto/sealer.ts";
import { AppError, messageOf } from "../errors.ts";
import { writeChunksAtomic } from "./atomic_file.ts";

/** Where a sealed file lies and what it is bound to. */
export interface SealedFile {
  path: string;
  /** Its `field` is that of the file's pieces. */
  place: Place;
}

/** Gives the file of one version of an attachment, and what it is bound to. */
export function attachmentFile(folder: string, name: string, version: number): SealedFile {
  return {
    path: `${folder}/${attachmentFileName(name, version)}`,
    place: { table: "attachments", id: name, field: "picture", version },
  };
}

/** A file of its own for each name, also where file names know no letter case or some are devices. */
export function attachmentFileName(name: string, version: number): string {
  return `${createHash("sha256").update(name).digest("hex").slice(0, 40)}.${version}`;
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
  async function* counted(): AsyncGenerator<Uint8Array> {
    for await (const chunk of source) {
      sizeBytes += chunk.byteLength;
      yield chunk;
    }
  }
  await writeChunksAtomic(path, sealPieces(sealer, place, counted()));
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
  yield* openPieces(sealer, place, bytesOfFile(file, size, path));
}
