/**
 * Archive of many files as one stream: for each file a header, then its bytes; the last header has the number of files.
 */
import { AppError } from "../errors.ts";

/** A file of an archive. */
export interface ArchiveEntry {
  /** Relative, with slashes: `"characters/Ann.png"`. */
  path: string;
  sizeBytes: number;
  /** Time of the last modification, in milliseconds since 1970, if it matters. */
  mtimeMs?: number;
  /** Exactly `sizeBytes` bytes. */
  content: AsyncIterable<Uint8Array>;
}

type Head = { path: string; size: number; mtime?: number } | { end: true; entries: number };

const LENGTH_BYTES = 4;
/** A header is a path of at most 4 kB and a number. */
const MAX_HEAD_BYTES = 64 * 1024;
const encoder = new TextEncoder();

/** Writes files one after another. @throws {AppError} `internal` if a file doesn't have its declared size. */
export async function* writeArchive(entries: AsyncIterable<ArchiveEntry>): AsyncGenerator<Uint8Array> {
  let count = 0;
  for await (const { path, sizeBytes, mtimeMs, content } of entries) {
    yield headBytes({ path, size: sizeBytes, mtime: mtimeMs });
    let written = 0;
    for await (const chunk of content) {
      written += chunk.byteLength;
      yield chunk;
    }
    if (written !== sizeBytes) {
      throw new AppError(
        "internal",
        `Can't archive "${path}": it has ${written} bytes instead of ${sizeBytes}`,
      );
    }
    count++;
  }
  yield headBytes({ end: true, entries: count });
}

/**
 * Reads an archive. Read or skip the content of each file before the next.
 *
 * @throws {AppError} `unprocessable` if it isn't an archive or is incomplete.
 */
export async function* readArchive(source: AsyncIterable<Uint8Array>): AsyncGenerator<ArchiveEntry> {
  const bytes = new ByteSource(source);
  for (let count = 0;; count++) {
    const head = await readHead(bytes);
    if ("end" in head) {
      if (head.entries !== count || !await bytes.isAtEnd()) throw damaged("its end is not where it should be");
      return;
    }
    const content = bytes.take(head.size);
    yield { path: head.path, sizeBytes: head.size, mtimeMs: head.mtime, content };
    for await (const _ of content); // skip what wasn't read
  }
}

function headBytes(head: Head): Uint8Array {
  const text = encoder.encode(JSON.stringify(head));
  const bytes = new Uint8Array(LENGTH_BYTES + text.byteLength);
  new DataView(bytes.buffer).setUint32(0, text.byteLength);
  bytes.set(text, LENGTH_BYTES);
  return bytes;
}

async function readHead(bytes: ByteSource): Promise<Head> {
  const length = await bytes.exactly(LENGTH_BYTES);
  const size = new DataView(length.buffer, length.byteOffset).getUint32(0);
  if (size > MAX_HEAD_BYTES) throw damaged("the head of a file is too long");
  const head = JSON.parse(new TextDecoder().decode(await bytes.exactly(size)));
  const isFile = typeof head.path === "string" && Number.isSafeInteger(head.size) && head.size >= 0 &&
    (head.mtime === undefined || Number.isSafeInteger(head.mtime));
  if (!isFile && !(head.end === true && Number.isSafeInteger(head.entries))) {
    throw damaged("the head of a file is none");
  }
  return head;
}

/** Takes exact numbers of bytes from a stream of chunks. */
class ByteSource {
  readonly #iterator: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#iterator = source[Symbol.asyncIterator]();
  }

  async exactly(size: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(size);
    let at = 0;
    for await (const part of this.take(size)) {
      bytes.set(part, at);
      at += part.byteLength;
    }
    return bytes;
  }

  async *take(size: number): AsyncGenerator<Uint8Array> {
    for (let left = size; left > 0;) {
      if (!await this.#fill()) throw damaged("it was cut off");
      const part = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(part.byteLength);
      left -= part.byteLength;
      yield part;
    }
  }

  async isAtEnd(): Promise<boolean> {
    return !await this.#fill();
  }

  async #fill(): Promise<boolean> {
    while (this.#rest.byteLength === 0) {
      const { done, value } = await this.#iterator.next();
      if (done) return false;
      this.#rest = value;
    }
    return true;
  }
}

function damaged(found: string): AppError {
  return new AppError("unprocessable", `Can't read the backup: ${found}`);
}
