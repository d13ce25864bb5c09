/**
 * CHARX files: a ZIP with card.json and its assets. The sandbox validates each file; assets are then copied as stored.
 */
import { AppError } from "../../errors.ts";
import { yieldIfTickUsedUp } from "../../async/delay.ts";
import { readContent, readZipDirectory, streamPacked, type ZipEntry } from "../../storage/zip/zip_reader.ts";
import { createEntry, type PackedEntry, writeZip, zipBytes } from "../../storage/zip/zip_writer.ts";
import { CARD_PATH, isSafeCharxPath, MAX_CHARX_BYTES, MAX_CHARX_IMAGE_BYTES } from "./charx_format.ts";
import type { CharxPlan } from "./charx_plan.ts";
import type { CharxRequest } from "./charx_child.ts";
import { type CharxResponse, createTooLargeError } from "./charx_reader.ts";
import { openPngFiles, removeAssetChunks } from "../png/png_assets.ts";
import { removeCard } from "../png/png_card.ts";
import { join } from "node:path";
import { pathExists, removeFile, toFileError, writeChunksAtomic } from "../../storage/atomic_file.ts";
import { offerFile } from "../../platform/sandbox/remote_file.ts";
import { type Sandbox, SandboxFault, type SandboxKind } from "../../platform/sandbox/sandbox.ts";

/** Content of a CHARX file. */
interface CharxContent {
  /** The content of card.json. */
  text: Uint8Array<ArrayBuffer>;
  /** The main image in any format. */
  image?: Uint8Array<ArrayBuffer>;
  /** All other files; also the main image, if it isn't a PNG. */
  others: ZipEntry[];
}

const MIB = 1024 * 1024;
/** Processor time. A file is read once; 200 MB take two seconds. */
const TIMEOUT_MS = 30_000;
const TIMEOUT_PER_MIB_MS = 500;

const KIND: SandboxKind = {
  url: new URL("./charx_child.ts", import.meta.url),
  maxChildren: 2,
  maxCpuMs: TIMEOUT_MS + MAX_CHARX_BYTES / MIB * TIMEOUT_PER_MIB_MS,
  maxResidentBytes: 512 * MIB,
  // Card and main image.
  maxMessageBytes: 2 * MAX_CHARX_IMAGE_BYTES,
};

/** Bytes per step when compressing, about a millisecond. */
const STEP_BYTES = 64 * 1024;

/**
 * Reads a CHARX file.
 *
 * @returns `undefined` for a file without a ZIP directory.
 * @throws {AppError} `unprocessable` for an invalid file; `too_large` above 512 MiB, or if it inflates by more than 64
 *   MiB
 */
export async function readCharx(path: string, sandbox: Sandbox): Promise<CharxContent | undefined> {
  using file = await Deno.open(path);
  const { size } = await file.stat();
  if (size > MAX_CHARX_BYTES) throw createTooLargeError();
  const { answer, bytes: [text, image] } = await runReader(file, size, sandbox);
  if (answer.failure !== undefined) throw new AppError(answer.failure.code, answer.failure.message);
  if (answer.isNotZip) return undefined;
  if (text === undefined) throw new AppError("unprocessable", "Can't read the CHARX file: it has no card.json");
  return { text, image, others: answer.others ?? [] };
}

async function runReader(
  file: Deno.FsFile,
  sizeBytes: number,
  sandbox: Sandbox,
): Promise<{ answer: CharxResponse; bytes: Uint8Array<ArrayBuffer>[] }> {
  const request: CharxRequest = { sizeBytes };
  const maxCpuMs = TIMEOUT_MS + sizeBytes / MIB * TIMEOUT_PER_MIB_MS;
  try {
    const { value, bytes } = await sandbox.run(KIND, { value: request, functions: offerFile(file), maxCpuMs });
    return { answer: parseAnswer(value), bytes };
  } catch (error) {
    if (!(error instanceof SandboxFault)) throw error;
    throw new AppError("unprocessable", `Can't read the CHARX file: ${error.message}`);
  }
}

/** Reads what the child has sent, which may be anything: a file may have taken control of it. */
function parseAnswer(value: unknown): CharxResponse {
  const { others, isNotZip, failure } = (value ?? {}) as CharxResponse;
  const entries = Array.isArray(others) ? others : [];
  return {
    isNotZip: isNotZip === true,
    others: entries.filter(({ path, ...numbers }) =>
      typeof path === "string" && isSafeCharxPath(path) &&
      Object.values(numbers).every((number) => Number.isSafeInteger(number))
    ),
    failure: failure && {
      code: failure.code === "too_large" ? "too_large" : "unprocessable",
      message: String(failure.message),
    },
  };
}

/** A CHARX ready to be written. */
interface CharxFile {
  sizeBytes: number;
  /** True if the import would reject it. */
  isTooLarge: boolean;
  /** Yields the file from the start, always with the same bytes. */
  stream(): AsyncGenerator<Uint8Array>;
}

/**
 * Creates a CHARX file.
 *
 * @param plan Of the card.
 * @param png The character's image, if any.
 * @param others Its assets, which must stay open while the file is written.
 */
export async function createCharx(
  { text, imagePath, files }: CharxPlan,
  png?: Uint8Array,
  others?: CardFiles,
): Promise<CharxFile> {
  const own = [await deflateEntry(CARD_PATH, text)];
  let imageBytes = 0;
  if (png !== undefined && imagePath !== undefined) {
    const image = removeAssetChunks(removeCard(png));
    imageBytes = image.length;
    own.push(createEntry(imagePath, image));
  }
  if (png !== undefined) own.push(...openPngFiles(png, files));
  const sizeBytes = zipBytes([...own, ...others?.entries ?? []]);
  return {
    sizeBytes,
    isTooLarge: sizeBytes > MAX_CHARX_BYTES || imageBytes > MAX_CHARX_IMAGE_BYTES,
    stream: () => writeZip([...own, ...others?.toPackedEntries() ?? []], { isLarge: false }),
  };
}

async function deflateEntry(path: string, bytes: Uint8Array<ArrayBuffer>): Promise<PackedEntry> {
  const steps = async function* (): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    for (let at = 0; at < bytes.length; at += STEP_BYTES) {
      await yieldIfTickUsedUp();
      yield bytes.subarray(at, at + STEP_BYTES);
    }
  };
  const stream = ReadableStream.from(steps()).pipeThrough(new CompressionStream("deflate-raw"));
  return createEntry(path, bytes, await new Response(stream).bytes());
}

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
      throw toFileError(`Can't read "${path}"`, cause);
    }
    try {
      return new CardFiles(file, entries ?? (await readZipDirectory(file, MAX_ENTRIES)).entries);
    } catch (error) {
      file.close();
      throw error;
    }
  }

  /** Yields entries for another ZIP. @param includes By default all. */
  *toPackedEntries(includes: (path: string) => boolean = () => true): Generator<PackedEntry> {
    for (const entry of this.entries) {
      const { path, method, crc, packedBytes, sizeBytes } = entry;
      if (!includes(path)) continue;
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
    if (entry.sizeBytes > maxBytes) throw new AppError("too_large", `Can't read "${entry.path}": it's too large`);
    return await readContent(this.#file, entry);
  }

  [Symbol.dispose](): void {
    this.#file.close();
  }
}

/**
 * The CHARX assets of our characters: expressions, backgrounds, data of other programs. Stored as one ZIP next to the
 * card. Cards in folders of other programs have none.
 */
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
    return await pathExists(this.getPath(id));
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
