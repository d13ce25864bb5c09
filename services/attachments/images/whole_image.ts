/**
 * Checks that an image file is complete: all chunks, segments and blocks up to the end marker, including PNG checksums.
 * Works on a stream without buffering or decoding, so memory use is constant.
 */
import { crc32 } from "node:zlib";
import { AppError } from "../../errors.ts";
import type { ImageType } from "./image_header.ts";

/** What a parser needs next. */
type Demand =
  /** The next few bytes. */
  | { take: number }
  /** Skips bytes; `crc` is the initial CRC over them. */
  | { skip: number; crc?: number }
  /** Skips everything up to and including this byte. */
  | { until: number };

/** Receives the requested bytes, or for `skip` their CRC in four bytes. Returns at the end of the image. */
type Parser = Generator<Demand, void, Uint8Array>;

class FormatError extends Error {}

/** Checks a file as it passes. */
export class ImageCheck {
  readonly #parser: Parser;
  #demand: Demand | undefined;
  #collected: Uint8Array = new Uint8Array();
  #count = 0;
  #crc = 0;

  constructor(type: ImageType) {
    this.#parser = PARSERS[type]();
    this.#demand = this.#parser.next().value ?? undefined;
  }

  /** Checks the next chunk. @throws {AppError} `unprocessable` if it's damaged */
  push(chunk: Uint8Array): void {
    try {
      for (let at = 0; this.#demand !== undefined && at < chunk.length;) at += this.#read(chunk.subarray(at));
    } catch (error) {
      if (error instanceof FormatError) throw createDamagedError(error.message);
      throw error;
    }
  }

  /** Call after the last chunk. @throws {AppError} `unprocessable` if the file is truncated */
  end(): void {
    if (this.#demand !== undefined) throw createDamagedError("the file is truncated");
  }

  #read(bytes: Uint8Array): number {
    const demand = this.#demand!;
    if ("until" in demand) {
      const found = bytes.indexOf(demand.until);
      if (found >= 0) this.#resume(bytes.subarray(found, found + 1));
      return found < 0 ? bytes.length : found + 1;
    }
    const total = "take" in demand ? demand.take : demand.skip;
    const used = bytes.subarray(0, total - this.#count);
    if ("take" in demand) {
      if (this.#count === 0) this.#collected = new Uint8Array(total);
      this.#collected.set(used, this.#count);
    } else if (demand.crc !== undefined) {
      this.#crc = crc32(used, this.#count === 0 ? demand.crc : this.#crc);
    }
    this.#count += used.length;
    if (this.#count === total) this.#resume("take" in demand ? this.#collected : toCrcBytes(this.#crc));
    return used.length;
  }

  /** Skips of zero bytes are done at once: the file may end after them. */
  #resume(bytes: Uint8Array): void {
    let next = this.#parser.next(bytes);
    while (!next.done && "skip" in next.value && next.value.skip === 0) {
      next = this.#parser.next(toCrcBytes(next.value.crc ?? 0));
    }
    this.#demand = next.done ? undefined : next.value;
    this.#count = 0;
  }
}

/** Checks a file in memory. @throws {AppError} `unprocessable` */
export function checkImage(bytes: Uint8Array, type: ImageType): void {
  const check = new ImageCheck(type);
  check.push(bytes);
  check.end();
}

/** Passes a file on, and fails at its end if it's incomplete. @throws {AppError} `unprocessable` */
export async function* checkImageStream(
  source: AsyncIterable<Uint8Array>,
  type: ImageType,
): AsyncGenerator<Uint8Array> {
  const check = new ImageCheck(type);
  for await (const chunk of source) {
    check.push(chunk);
    yield chunk;
  }
  check.end();
}

const PARSERS: Record<ImageType, () => Parser> = {
  "image/png": parsePng,
  "image/jpeg": parseJpeg,
  "image/gif": parseGif,
  "image/webp": parseWebp,
};

/** A wrong CRC of an ancillary chunk doesn't affect pixels. @see https://www.w3.org/TR/png-3/#5Chunk-layout */
function* parsePng(): Parser {
  yield { take: 8 };
  let hasPixels = false;
  for (let type = ""; type !== "IEND";) {
    const head = yield { take: 8 };
    const length = createView(head).getUint32(0);
    type = decodeLatin1(head.subarray(4));
    if (!/^[A-Za-z]{4}$/.test(type) || length > 0x7fffffff) throw new FormatError("a chunk is invalid");
    const found = yield { skip: length, crc: crc32(head.subarray(4)) };
    const stated = yield { take: 4 };
    const isCritical = type[0] === type[0]!.toUpperCase();
    if (isCritical && createView(found).getUint32(0) !== createView(stated).getUint32(0)) {
      throw new FormatError(`the checksum of its ${type} chunk is wrong`);
    }
    hasPixels ||= type === "IDAT";
  }
  if (!hasPixels) throw new FormatError("it has no image data");
}

/** Parses segments, and after each start of scan the data up to the next marker. @see ITU T.81, annex B */
function* parseJpeg(): Parser {
  yield { take: 2 };
  let hasScan = false;
  let marker = yield* readMarker();
  while (marker !== 0xd9) {
    const isAlone = marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7);
    if (isAlone) {
      marker = yield* readMarker();
      continue;
    }
    const length = createView(yield { take: 2 }).getUint16(0);
    if (length < 2 || marker < 0xc0) throw new FormatError("a segment is invalid");
    yield { skip: length - 2 };
    if (marker === 0xda) {
      hasScan = true;
      marker = yield* readMarkerAfterScan();
    } else marker = yield* readMarker();
  }
  if (!hasScan) throw new FormatError("it has no image data");
}

function* readMarker(): Generator<Demand, number, Uint8Array> {
  let [byte] = yield { take: 1 };
  if (byte !== 0xff) throw new FormatError("a segment is invalid");
  while (byte === 0xff) [byte] = yield { take: 1 };
  return byte!;
}

/** In scan data, 0xff is followed by zero or is a restart marker. */
function* readMarkerAfterScan(): Generator<Demand, number, Uint8Array> {
  for (;;) {
    yield { until: 0xff };
    let [byte] = yield { take: 1 };
    while (byte === 0xff) [byte] = yield { take: 1 };
    if (byte !== 0 && !(byte! >= 0xd0 && byte! <= 0xd7)) return byte!;
  }
}

/** Parses the blocks of a GIF. @see GIF89a specification, sections 15 to 27 */
function* parseGif(): Parser {
  const screen = yield { take: 13 };
  yield { skip: getTableBytes(screen[10]!) };
  let hasFrame = false;
  for (;;) {
    const [block] = yield { take: 1 };
    if (block === 0x3b) break;
    if (block === 0x21) {
      yield { take: 1 };
    } else if (block === 0x2c) {
      const frame = yield { take: 9 };
      yield { skip: getTableBytes(frame[8]!) };
      yield { take: 1 };
      hasFrame = true;
    } else throw new FormatError("a block is invalid");
    for (let length = 1; length !== 0;) {
      length = (yield { take: 1 })[0]!;
      yield { skip: length };
    }
  }
  if (!hasFrame) throw new FormatError("it has no image data");
}

function getTableBytes(flags: number): number {
  return flags & 0x80 ? 3 << (flags & 7) + 1 : 0;
}

/** Parses the chunks of the RIFF container. @see RFC 9649, section 2.3 */
function* parseWebp(): Parser {
  let left = createView(yield { take: 12 }).getUint32(4, true) - 4;
  let hasPixels = false;
  while (left > 0) {
    const head = yield { take: 8 };
    const length = createView(head).getUint32(4, true);
    if (8 + length > left) throw new FormatError("a chunk is longer than the file");
    // Some files lack the last padding byte.
    const padded = Math.min(left - 8, length + length % 2);
    yield { skip: padded };
    left -= 8 + padded;
    hasPixels ||= ["VP8 ", "VP8L", "ANMF"].includes(decodeLatin1(head.subarray(0, 4)));
  }
  if (!hasPixels) throw new FormatError("it has no image data");
}

function createView(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function decodeLatin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

function toCrcBytes(crc: number): Uint8Array {
  const bytes = new Uint8Array(4);
  createView(bytes).setUint32(0, crc);
  return bytes;
}

function createDamagedError(found: string): AppError {
  return new AppError("unprocessable", `Can't use the image: ${found}`);
}
