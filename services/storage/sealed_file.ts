/** Reads and writes files that are encrypted in chunks; see crypto/sealed_pieces.ts. */
import { createHash } from "node:crypto";
import { bytesOfFile, openPieceRange, openPieces, type PieceRange, sealPieces } from "../crypto/sealed_pieces.ts";
import type { Aad, PurposeSealer } from "../crypto/sealer.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import { writeChunksAtomic } from "./atomic_file.ts";

/** Path and AAD of a sealed file. */
export interface SealedFile {
  path: string;
  /** Its `field` applies to all pieces of the file. */
  aad: Aad;
}

/** Returns path and AAD of the file of an attachment version. */
export function getAttachmentFile(folder: string, name: string, version: number): SealedFile {
  return {
    path: `${folder}/${getAttachmentFileName(name, version)}`,
    aad: { table: "attachments", id: name, field: "picture", version },
  };
}

/**
 * Returns the file name of an attachment version. The name is hashed, because file systems may ignore case or reserve
 * device names.
 */
export function getAttachmentFileName(name: string, version: number): string {
  return `${createHash("sha256").update(name).digest("hex").slice(0, 40)}.${version}`;
}

/** The purpose of the encryption of the stored files of imports. */
export const IMPORT_SOURCES_PURPOSE = "imports";

/** Returns path and AAD of the stored file of an import. */
export function getImportSourceFile(folder: string, id: string): SealedFile {
  return { path: `${folder}/${id}`, aad: { table: "import_sources", id, field: "file", version: 1 } };
}

/**
 * Writes a sealed file atomically.
 *
 * @returns Size of the content in bytes.
 * @throws {AppError} `storage_full`, `internal`; errors of `source` unchanged
 */
export async function writeSealedFile(
  sealer: PurposeSealer,
  { path, aad }: SealedFile,
  source: AsyncIterable<Uint8Array>,
): Promise<number> {
  let sizeBytes = 0;
  async function* countRead(): AsyncGenerator<Uint8Array> {
    for await (const chunk of source) {
      sizeBytes += chunk.byteLength;
      yield chunk;
    }
  }
  await writeChunksAtomic(path, sealPieces(sealer, aad, countRead()));
  return sizeBytes;
}

/**
 * Reads a sealed file in pieces. The file is opened when the first piece is requested.
 *
 * @throws {AppError} `internal` if the file is missing, modified or truncated. Pieces yielded before are authentic.
 */
export async function* readSealedFile(
  sealer: PurposeSealer,
  { path, aad }: SealedFile,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  using file = await Deno.open(path).catch((cause) => {
    throw new AppError("internal", `Can't read "${path}": ${getErrorMessage(cause)}`, { cause });
  });
  const { size } = await file.stat();
  yield* openPieces(sealer, aad, bytesOfFile(file, size, path));
}

/**
 * Reads a range of a sealed file. The file is opened when the first piece is requested.
 *
 * @param range Must be inside the content.
 * @throws {AppError} `internal` if the file is missing, modified or truncated.
 */
export async function* readSealedRange(
  sealer: PurposeSealer,
  { path, aad }: SealedFile,
  range: PieceRange,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  using file = await Deno.open(path).catch((cause) => {
    throw new AppError("internal", `Can't read "${path}": ${getErrorMessage(cause)}`, { cause });
  });
  yield* openPieceRange(sealer, aad, file, range);
}
