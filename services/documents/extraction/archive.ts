/** Reads entries of a ZIP in memory, up to a number of inflated bytes for all of them together. */
import { AppError } from "../../errors.ts";
import { readWholeContent, readZipDirectory, type ZipEntry } from "../../storage/zip/zip_reader.ts";
import { ExtractionFault, type ExtractionLimits } from "./extraction.ts";
import { MemoryFile } from "./memory_file.ts";

/** More than any book or text has. */
const MAX_ENTRIES = 50_000;

/** An archive of a document. */
export class Archive {
  #inflatedBytes = 0;

  private constructor(
    readonly file: MemoryFile,
    readonly entries: ReadonlyMap<string, ZipEntry>,
    readonly limits: ExtractionLimits,
  ) {}

  /** @throws {ExtractionFault} `damaged`, `too_large` */
  static async open(bytes: Uint8Array, limits: ExtractionLimits): Promise<Archive> {
    const file = new MemoryFile(bytes);
    const { entries } = await toFault(readZipDirectory(file, MAX_ENTRIES));
    return new Archive(file, new Map(entries.map((entry) => [entry.path, entry])), limits);
  }

  /** Returns the content of an entry; `undefined` if there is none. @throws {ExtractionFault} */
  async read(path: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const entry = this.entries.get(path);
    if (entry === undefined) return undefined;
    if (entry.method === -1) throw new ExtractionFault("encrypted", "The file is protected by a password");
    this.#inflatedBytes += entry.sizeBytes;
    if (this.#inflatedBytes > this.limits.inflatedBytes) {
      const limit = Math.round(this.limits.inflatedBytes / 1024 / 1024);
      throw new ExtractionFault("too_large", `Unpacked, the file is larger than ${limit} MiB`);
    }
    return await toFault(readWholeContent(this.file, entry));
  }
}

async function toFault<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new ExtractionFault(error.code === "too_large" ? "too_large" : "damaged", error.message);
  }
}
