/** The other files of a CHARX: pictures of emotions, backgrounds, data of other programs. They lie in one ZIP beside the card. */
import { join } from "node:path";
import { fileExists, readFileIfExists, writeFileAtomic } from "../storage/atomic_file.ts";
import { removeFile } from "./plain_files.ts";

/** The files of all characters of ours. What is in a folder of another program has none. */
export class CardAssets {
  readonly #folder: string;

  /** @param folder Of our own card files. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Gives where those of a character lie; no card has such a name. */
  pathOf(id: string): string {
    return join(this.#folder, `${id}.assets.zip`);
  }

  /** @throws {AppError} `internal` */
  async has(id: string): Promise<boolean> {
    return await fileExists(this.pathOf(id));
  }

  /** @throws {AppError} `internal` */
  async read(id: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    return await readFileIfExists(this.pathOf(id)) as Uint8Array<ArrayBuffer> | undefined;
  }

  /** Keeps these in place of those that were there; `undefined` for none. @throws {AppError} `storage_full`, `internal` */
  async write(id: string, zip: Uint8Array | undefined): Promise<void> {
    if (zip === undefined) await removeFile(this.pathOf(id));
    else await writeFileAtomic(this.pathOf(id), zip);
  }
}
