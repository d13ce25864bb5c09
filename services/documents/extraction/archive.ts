/**
 * Reads ZIP archives of XML in memory, up to a number of inflated bytes for all entries together.
 *
 * XML is a stream of tags: memory and time grow with its length, however deep it is nested. Entities that a file declares aren't
 * expanded, and nothing outside the file is read.
 */
import { AppError } from "../../errors.ts";
import { readWholeContent, readZipDirectory, type ZipEntry } from "../../storage/zip/zip_reader.ts";
import { ExtractionFault, type ExtractionLimits } from "./extraction.ts";
import type { RandomAccessFile } from "../../storage/file_pieces.ts";
import { Parser } from "htmlparser2";

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

/** A file in memory. */
class MemoryFile implements RandomAccessFile {
  #at = 0;

  constructor(readonly bytes: Uint8Array) {}

  stat(): Promise<{ size: number }> {
    return Promise.resolve({ size: this.bytes.length });
  }

  seek(offset: number): Promise<number> {
    return Promise.resolve(this.#at = offset);
  }

  read(into: Uint8Array): Promise<number | null> {
    const piece = this.bytes.subarray(this.#at, this.#at + into.length);
    into.set(piece);
    this.#at += piece.length;
    return Promise.resolve(piece.length === 0 && into.length > 0 ? null : piece.length);
  }
}

/** Attributes by their names without namespaces. */
export type XmlAttributes = Record<string, string | undefined>;

/** What to do with the parts of a file. Names are lower case and have no namespaces. */
export interface XmlHandlers {
  open?(name: string, attributes: XmlAttributes): void;
  /** @param name The innermost open element. */
  text?(text: string, name: string): void;
  close?(name: string): void;
}

/** Reads a file. */
export function readXmlTags(xml: string, { open, text, close }: XmlHandlers): void {
  const stack: string[] = [];
  const parser = new Parser({
    onopentag(name, attributes) {
      stack.push(toLocalName(name));
      open?.(stack.at(-1)!, toLocalNames(attributes));
    },
    ontext: (data) => text?.(data, stack.at(-1) ?? ""),
    onclosetag() {
      const name = stack.pop();
      if (name !== undefined) close?.(name);
    },
  }, { xmlMode: true, decodeEntities: true });
  parser.write(xml);
  parser.end();
}

function toLocalName(name: string): string {
  return name.slice(name.indexOf(":") + 1).toLowerCase();
}

function toLocalNames(attributes: Record<string, string>): XmlAttributes {
  const local: XmlAttributes = Object.create(null);
  for (const name in attributes) local[toLocalName(name)] = attributes[name];
  return local;
}
