/** The other files of a CHARX: pictures of emotions, backgrounds, data of other programs. They lie in one ZIP beside the card. */
import { join } from "node:path";
import { fileError, fileExists, writeChunksAtomic } from "../../storage/atomic_file.ts";
import { packedPieces, readZipDirectory, type ZipEntry } from "../../storage/zip/zip_reader.ts";
import { type PackedEntry, writeZip } from "../../storage/zip/zip_writer.ts";
import { removeFile } from "../../storage/plain_files.ts";

/** As many as a zip of this kind can have. */
const MAX_ENTRIES = 65_535;

/** Files in an opened ZIP; they are copied as they lie there, packed or not. */
export class CardFiles implements Disposable {
  readonly #file: Deno.FsFile;

  private constructor(file: Deno.FsFile, readonly entries: readonly ZipEntry[]) {
    this.#file = file;
  }

  /**
   * Opens a ZIP.
   *
   * @param entries Those that are meant; by default all.
   * @returns `undefined` when there is none.
   * @throws {AppError} `unprocessable` for one that is damaged, `internal`
   */
  static async open(path: string, entries?: readonly ZipEntry[]): Promise<CardFiles | undefined> {
    let file: Deno.FsFile;
    try {
      file = await Deno.open(path);
    } catch (cause) {
      if (cause instanceof Deno.errors.NotFound) return undefined;
      throw fileError(`Cannot read "${path}"`, cause);
    }
    try {
      return new CardFiles(file, entries ?? (await readZipDirectory(file, MAX_ENTRIES)).entries);
    } catch (error) {
      file.close();
      throw error;
    }
  }

  /** Gives them for another ZIP. @param wanted By default all. */
  *packed(wanted: (path: string) => boolean = () => true): Generator<PackedEntry> {
    for (const entry of this.entries) {
      const { path, method, crc, packedBytes, sizeBytes } = entry;
      if (!wanted(path)) continue;
      yield {
        ...{ path, isDeflated: method !== 0, crc, packedBytes, sizeBytes },
        content: packedPieces(this.#file, entry),
      };
    }
  }

  [Symbol.dispose](): void {
    this.#file.close();
  }
}

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

  /** Opens those of a character, which stay as they are then. @throws {AppError} `unprocessable`, `internal` */
  async open(id: string): Promise<CardFiles | undefined> {
    return await CardFiles.open(this.pathOf(id));
  }

  /** Keeps these in place of those that were there; `undefined` or none at all for none. @throws {AppError} `storage_full`, `internal` */
  async write(id: string, files: CardFiles | undefined): Promise<void> {
    await this.#write(id, [...files?.packed() ?? []]);
  }

  /** Removes one of them. @throws {AppError} as `open` and `write` */
  async leaveOut(id: string, path: string): Promise<void> {
    using files = await this.open(id);
    if (files !== undefined) await this.#write(id, [...files.packed((one) => one !== path)]);
  }

  async #write(id: string, entries: PackedEntry[]): Promise<void> {
    if (entries.length === 0) await removeFile(this.pathOf(id));
    else await writeChunksAtomic(this.pathOf(id), writeZip(entries, { isLarge: false }));
  }
}
