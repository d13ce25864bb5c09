/**
 * Temporary files of an import, for items too large to send to the serving thread. Each is removed once it was
 * imported.
 */
import { join } from "node:path";
import { writePieces } from "../storage/file_pieces.ts";

/** The folder of one import. */
export class Scratch {
  readonly #folder: string;

  /** @param folder Created with the first file; the code that started the import removes it. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Writes a file and returns its path. @throws {AppError} `storage_full`, `internal`; errors of `pieces` */
  async keep(pieces: AsyncIterable<Uint8Array>): Promise<string> {
    await Deno.mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const path = join(this.#folder, crypto.randomUUID());
    await writePieces(path, pieces);
    return path;
  }
}
