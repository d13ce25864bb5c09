/** Many files as one stream: of each its head, then its bytes; a last head that says how many there were. */
import { AppError } from "../errors.ts";

/** One file of an archive. */
export interface ArchiveEntry {
  /** Relative, with slashes: `"characters/Ann.png"`. */
  path: string;
  sizeBytes: number;
  /** Exactly `sizeBytes` bytes. */
  content: AsyncIterable<Uint8Array>;
}

type Head = { path: string; size: number } | { end: true; entries: number };

const LENGTH_BYTES = 4;
/** A head is a path of 4 kB at most and a number. */
const MAX_HEAD_BYTES = 64 * 1024;
const encoder = new TextEncoder();

/** Writes files one behind the other. @throws {AppError} `internal` when one has another size than it said. */
export async function* writeArchive(entries: AsyncIterable<ArchiveEntry>): AsyncGenerator<Uint8Array> {
  let count = 0;
  for await (const { path, sizeBytes, content } of entries) {
    yield headBytes({ path, size: sizeBytes });
    let written = 0;
    for await (const chunk of content) {
      written += chunk.byteLength;
      yield chunk;
    }
    if (written !== sizeBytes) {
      throw new AppError(
        "internal",
        `Cannot archive "${path}": it has ${written} bytes where ${sizeBytes} were announced`,
      );
    }
    count++;
  }
  yield headBytes({ end: true, entries: count });
}

/**
 * Reads them back. The content of one has to be read, or left, before the next is asked for.
 *
 * @throws {AppError} `unprocessable` when it is no archive, or was cut.
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
    yield { path: head.path, sizeBytes: head.size, content };
    for await (const _ of content); // what nobody wanted of it
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
  const isFile = typeof head.path === "string" && Number.isSafeInteger(head.size) && head.size >= 0;
  if (!isFile && !(head.end === true && Number.isSafeInteger(head.entries))) {
    throw damaged("the head of a file is none");
  }
  return head;
}

/** Takes counted bytes from a stream of chunks. */
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
  return new AppError("unprocessable", `Cannot read the backup: ${found}`);
}
