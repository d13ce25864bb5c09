/** Where a reader lays down what is too large to be handed over; each file is gone when it was brought in. */
import { join } from "node:path";
import { writePieces } from "../storage/file_pieces.ts";

/** A folder of one import. */
export class Scratch {
  readonly #folder: string;

  /** @param folder Made with the first file; whoever started the import removes it. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Writes a file and gives its path. @throws {AppError} `storage_full`, `internal`; what `pieces` throws */
  async keep(pieces: AsyncIterable<Uint8Array>): Promise<string> {
    await Deno.mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const path = join(this.#folder, crypto.randomUUID());
    await writePieces(path, pieces);
    return path;
  }
}
