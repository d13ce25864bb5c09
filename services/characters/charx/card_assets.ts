/** CHARX assets: expressions, backgrounds, data of other programs. Stored as one ZIP next to the card. */
import { join } from "node:path";
import { AppError } from "../../errors.ts";
import { fileError, fileExists, removeFile, writeChunksAtomic } from "../../storage/atomic_file.ts";
import { readContent, readZipDirectory, streamPacked, type ZipEntry } from "../../storage/zip/zip_reader.ts";
import { type PackedEntry, writeZip } from "../../storage/zip/zip_writer.ts";

/** Maximum of the classic ZIP format. */
const MAX_ENTRIES = 65_535;

/** Entries of an open ZIP. They are copied as stored, without recompression. */
export class CardFiles implements Disposable {
  readonly #file: Deno.FsFile;

  private constructor(file: Deno.FsFile, readonly entries: readonly ZipEntry[]) {
    this.#file = file;
  }

  /**
   * Opens a ZIP.
   *
   * @param entries The entries to use; by default all.
   * @returns `undefined` if there is no file.
   * @throws {AppError} `unprocessable` if it's damaged, `internal`
   */
  static async open(path: string, entries?: readonly ZipEntry[]): Promise<CardFiles | undefined> {
    let file: Deno.FsFile;
    try {
      file = await Deno.open(path);
    } catch (cause) {
      if (cause instanceof Deno.errors.NotFound) return undefined;
      throw fileError(`Can't read "${path}"`, cause);
    }
    try {
      return new CardFiles(file, entries ?? (await readZipDirectory(file, MAX_ENTRIES)).entries);
    } catch (error) {
      file.close();
      throw error;
    }
  }

  /** Yields entries for another ZIP. @param wanted By default all. */
  *toPackedEntries(wanted: (path: string) => boolean = () => true): Generator<PackedEntry> {
    for (const entry of this.entries) {
      const { path, method, crc, packedBytes, sizeBytes } = entry;
      if (!wanted(path)) continue;
      yield {
        path,
        isDeflated: method !== 0,
        crc,
        packedBytes,
        sizeBytes,
        content: streamPacked(this.#file, entry),
      };
    }
  }

  /**
   * Reads an entry and verifies its checksum.
   *
   * @throws {AppError} `too_large`; `unprocessable` if it's damaged
   */
  async read(entry: ZipEntry, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
    if (entry.sizeBytes > maxBytes) throw new AppError("too_large", `Can't read "${entry.path}": it is too large`);
    return await readContent(this.#file, entry);
  }

  [Symbol.dispose](): void {
    this.#file.close();
  }
}

/** The assets of our characters. Cards in folders of other programs have none. */
export class CardAssets {
  readonly #folder: string;

  /** @param folder Our card folder. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns the path of a character's assets. No card has such a name. */
  getPath(id: string): string {
    return join(this.#folder, `${id}.assets.zip`);
  }

  /** @throws {AppError} `internal` */
  async has(id: string): Promise<boolean> {
    return await fileExists(this.getPath(id));
  }

  /** Opens the assets of a character. They don't change while open. @throws {AppError} `unprocessable`, `internal` */
  async open(id: string): Promise<CardFiles | undefined> {
    return await CardFiles.open(this.getPath(id));
  }

  /**
   * Replaces the assets of a character; removes them if there are none. @throws {AppError} `storage_full`, `internal`
   */
  async write(id: string, files: CardFiles | undefined): Promise<void> {
    await this.#write(id, [...files?.toPackedEntries() ?? []]);
  }

  /** Removes one asset. @throws {AppError} like `open` and `write` */
  async removeEntry(id: string, path: string): Promise<void> {
    using files = await this.open(id);
    if (files !== undefined) await this.#write(id, [...files.toPackedEntries((one) => one !== path)]);
  }

  async #write(id: string, entries: PackedEntry[]): Promise<void> {
    if (entries.length === 0) await removeFile(this.getPath(id));
    else await writeChunksAtomic(this.getPath(id), writeZip(entries, { isLarge: false }));
  }
}
