/** ZIP archives of XML, read in memory. */
import { AppError } from "../../errors.ts";
import { readWholeContent, readZipDirectory, streamContent, type ZipEntry } from "../../storage/zip/zip_reader.ts";
import { ExtractionFault, type ExtractionLimits } from "./extraction.ts";
import { decodePart } from "./plain_text.ts";
import type { RandomAccessFile } from "../../storage/atomic_file.ts";
import { Parser } from "htmlparser2";

/** Maximum number of entries. No book or text has more. */
const MAX_ENTRIES = 50_000;

/** An archive of a document. Inflates up to a number of bytes for all entries together. */
export class Archive {
  #inflatedBytes = 0;
  /** Paths by their lower case. */
  #spellings: Map<string, string> | undefined;

  private constructor(
    readonly file: MemoryFile,
    readonly entries: ReadonlyMap<string, ZipEntry>,
    readonly limits: ExtractionLimits,
  ) {}

  /** @throws {ExtractionFault} `damaged`, `too_large` */
  static async open(bytes: Uint8Array, limits: ExtractionLimits): Promise<Archive> {
    const file = new MemoryFile(bytes);
    const { entries } = await toFault(readZipDirectory(file, MAX_ENTRIES));
    // Some programs write backslashes, which the format doesn't allow.
    return new Archive(file, new Map(entries.map((entry) => [entry.path.replaceAll("\\", "/"), entry])), limits);
  }

  /** Returns the content of an entry; `undefined` if there is none. @throws {ExtractionFault} */
  async read(path: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const entry = this.#find(path);
    return entry && await toFault(readWholeContent(this.file, entry));
  }

  /** Yields the content of an entry in pieces; nothing if there is none. @throws {ExtractionFault} */
  async *stream(path: string): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const entry = this.#find(path);
    if (entry === undefined) return;
    const pieces = streamContent(this.file, entry);
    for (let next; !(next = await toFault(pieces.next())).done;) yield next.value;
  }

  /** Systems whose file names ignore case write references in another case. */
  #findSpelling(path: string): string | undefined {
    this.#spellings ??= new Map(Array.from(this.entries.keys(), (path) => [path.toLowerCase(), path]));
    return this.#spellings.get(path.toLowerCase());
  }

  #find(path: string): ZipEntry | undefined {
    const entry = this.entries.get(path) ?? this.entries.get(this.#findSpelling(path) ?? "");
    if (entry === undefined) return undefined;
    if (entry.method === -1) {
      throw new ExtractionFault("encrypted", "Can't read the file: it's protected by a password");
    }
    this.#inflatedBytes += entry.sizeBytes;
    if (this.#inflatedBytes > this.limits.inflatedBytes) {
      const limit = Math.round(this.limits.inflatedBytes / 1024 / 1024);
      throw new ExtractionFault("too_large", `Can't read the file: it's larger than ${limit} MiB when decompressed`);
    }
    return entry;
  }
}

/** Returns the text of an XML part; empty if there is none. @throws {ExtractionFault} */
export async function readPart(archive: Archive, path: string): Promise<string> {
  const bytes = await archive.read(path);
  return bytes === undefined ? "" : decodePart(bytes);
}

/**
 * Returns the paths of the parts that a part refers to, by their kinds: the last word of the type of a relationship.
 *
 * @see ECMA-376, part 2, section 9.3
 */
export async function readRelations(
  archive: Archive,
  path: string,
): Promise<{ id: string; kind: string; path: string }[]> {
  const folder = path.slice(0, path.lastIndexOf("/") + 1);
  const relations: { id: string; kind: string; path: string }[] = [];
  readXmlTags(await readPart(archive, getRelationsPath(path)), {
    open(name, { id = "", type = "", target = "", targetmode }) {
      if (name !== "relationship" || targetmode === "External") return;
      const steps = (target.startsWith("/") ? target : folder + target).split("/");
      const parts: string[] = [];
      for (const step of steps) {
        if (step === "..") parts.pop();
        else if (step !== "" && step !== ".") parts.push(step);
      }
      relations.push({ id, kind: type.slice(type.lastIndexOf("/") + 1), path: parts.join("/") });
    },
  });
  return relations;
}

/** Returns the addresses outside of the file that a part refers to, by the IDs of the relationships. */
export async function readAddresses(archive: Archive, path: string): Promise<Map<string, string>> {
  const addresses = new Map<string, string>();
  readXmlTags(await readPart(archive, getRelationsPath(path)), {
    open(name, { id = "", target = "", targetmode }) {
      if (name === "relationship" && targetmode === "External") addresses.set(id, target);
    },
  });
  return addresses;
}

function getRelationsPath(path: string): string {
  const folder = path.slice(0, path.lastIndexOf("/") + 1);
  return `${folder}_rels/${path.slice(folder.length)}.rels`;
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

/** Handlers for the parts of a file. Names are in lower case, without namespaces. */
interface XmlHandlers {
  /** @param written The attributes by their names with namespaces. */
  open?(name: string, attributes: XmlAttributes, written: Readonly<Record<string, string>>): void;
  /** @param name The innermost open element. */
  text?(text: string, name: string): void;
  close?(name: string): void;
}

/**
 * Reads a file as a stream of tags: memory and time are proportional to its length, no matter how deeply it's nested.
 * Declared entities aren't expanded, and nothing outside the file is read.
 */
export function readXmlTags(xml: string, handlers: XmlHandlers): void {
  const parser = createXmlParser(handlers);
  parser.write(xml);
  parser.end();
}

/**
 * Reads a part like `readXmlTags`, in pieces, so that a part of any size takes little memory. Yields after each piece.
 *
 * @throws {ExtractionFault}
 */
export async function* streamXmlTags(archive: Archive, path: string, handlers: XmlHandlers): AsyncGenerator<void> {
  const parser = createXmlParser(handlers);
  let decoder: TextDecoder | undefined;
  for await (const piece of archive.stream(path)) {
    decoder ??= new TextDecoder(findUtf16(piece) ?? "utf-8");
    parser.write(decoder.decode(piece, { stream: true }));
    yield;
  }
  parser.write(decoder?.decode() ?? "");
  parser.end();
  yield;
}

/** XML of Office files is UTF-8 or UTF-16 (ECMA-376, part 2, section 8.1.4). */
function findUtf16(bytes: Uint8Array): string | undefined {
  const [first, second] = bytes;
  if ((first === 0xff && second === 0xfe) || (first === 0x3c && second === 0)) return "utf-16le";
  return (first === 0xfe && second === 0xff) || (first === 0 && second === 0x3c) ? "utf-16be" : undefined;
}

function createXmlParser({ open, text, close }: XmlHandlers): Parser {
  const stack: string[] = [];
  return new Parser({
    onopentag(name, attributes) {
      stack.push(toLocalName(name));
      open?.(stack.at(-1)!, toLocalNames(attributes), attributes);
    },
    ontext: (data) => text?.(data, stack.at(-1) ?? ""),
    onclosetag() {
      const name = stack.pop();
      if (name !== undefined) close?.(name);
    },
  }, { xmlMode: true, decodeEntities: true });
}

function toLocalName(name: string): string {
  return name.slice(name.indexOf(":") + 1).toLowerCase();
}

function toLocalNames(attributes: Record<string, string>): XmlAttributes {
  const local: XmlAttributes = Object.create(null);
  for (const name in attributes) local[toLocalName(name)] = attributes[name];
  return local;
}
