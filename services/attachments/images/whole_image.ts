/**
 * Checks that an image file is complete: all chunks, segments and blocks up to the end marker, including PNG checksums.
 * Works on a stream without buffering or decoding, so memory use is constant.
 */
import { crc32 } from "node:zlib";
import { AppError } from "../../errors.ts";
import type { ImageType } from "./image_header.ts";

/** What a parser needs next. */
type Want =
  /** The next few bytes. */
  | { take: number }
  /** Skips bytes; `crc` is the initial CRC over them. */
  | { skip: number; crc?: number }
  /** Skips everything up to and including this byte. */
  | { until: number };

/** Receives the requested bytes, or for `skip` their CRC in four bytes. Returns at the end of the image. */
type Parser = Generator<Want, void, Uint8Array>;

class FormatError extends Error {}

/** Checks a file as it passes. */
export class WholeImageCheck {
  readonly #parser: Parser;
  #want: Want | undefined;
  #taken: Uint8Array = new Uint8Array();
  #count = 0;
  #crc = 0;

  constructor(type: ImageType) {
    this.#parser = PARSERS[type]();
    this.#want = this.#parser.next().value ?? undefined;
  }

  /** Checks the next chunk. @throws {AppError} `unprocessable` if it's damaged */
  push(chunk: Uint8Array): void {
    try {
      for (let at = 0; this.#want !== undefined && at < chunk.length;) at += this.#read(chunk.subarray(at));
    } catch (error) {
      if (error instanceof FormatError) throw cannotUse(error.message);
      throw error;
    }
  }

  /** Call after the last chunk. @throws {AppError} `unprocessable` if the file is truncated */
  end(): void {
    if (this.#want !== undefined) throw cannotUse("the file is truncated");
  }

  #read(bytes: Uint8Array): number {
    const want = this.#want!;
    if ("until" in want) {
      const found = bytes.indexOf(want.until);
      if (found >= 0) this.#resume(bytes.subarray(found, found + 1));
      return found < 0 ? bytes.length : found + 1;
    }
    const total = "take" in want ? want.take : want.skip;
    const used = bytes.subarray(0, total - this.#count);
    if ("take" in want) {
      if (this.#count === 0) this.#taken = new Uint8Array(total);
      this.#taken.set(used, this.#count);
    } else if (want.crc !== undefined) {
      this.#crc = crc32(used, this.#count === 0 ? want.crc : this.#crc);
    }
    this.#count += used.length;
    if (this.#count === total) this.#resume("take" in want ? this.#taken : toCrcBytes(this.#crc));
    return used.length;
  }

  /** Skips of zero bytes are done at once: the file may end after them. */
  #resume(given: Uint8Array): void {
    let next = this.#parser.next(given);
    while (!next.done && "skip" in next.value && next.value.skip === 0) {
      next = this.#parser.next(toCrcBytes(next.value.crc ?? 0));
    }
    this.#want = next.done ? undefined : next.value;
    this.#count = 0;
  }
}

/** Checks a file in memory. @throws {AppError} `unprocessable` */
export function checkWholeImage(bytes: Uint8Array, type: ImageType): void {
  const check = new WholeImageCheck(type);
  check.push(bytes);
  check.end();
}

/** Passes a file on, and fails at its end if it's incomplete. @throws {AppError} `unprocessable` */
export async function* passWholeImage(source: AsyncIterable<Uint8Array>, type: ImageType): AsyncGenerator<Uint8Array> {
  const check = new WholeImageCheck(type);
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
    const length = view(head).getUint32(0);
    type = latin1(head.subarray(4));
    if (!/^[A-Za-z]{4}$/.test(type) || length > 0x7fffffff) throw new FormatError("a chunk is invalid");
    const found = yield { skip: length, crc: crc32(head.subarray(4)) };
    const stated = yield { take: 4 };
    const isCritical = type[0] === type[0]!.toUpperCase();
    if (isCritical && view(found).getUint32(0) !== view(stated).getUint32(0)) {
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
    const length = view(yield { take: 2 }).getUint16(0);
    if (length < 2 || marker < 0xc0) throw new FormatError("a segment is invalid");
    yield { skip: length - 2 };
    if (marker === 0xda) {
      hasScan = true;
      marker = yield* readMarkerAfterScan();
    } else marker = yield* readMarker();
  }
  if (!hasScan) throw new FormatError("it has no image data");
}

function* readMarker(): Generator<Want, number, Uint8Array> {
  let [byte] = yield { take: 1 };
  if (byte !== 0xff) throw new FormatError("a segment is invalid");
  while (byte === 0xff) [byte] = yield { take: 1 };
  return byte!;
}

/** In scan data, 0xff is followed by zero or is a restart marker. */
function* readMarkerAfterScan(): Generator<Want, number, Uint8Array> {
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
  let left = view(yield { take: 12 }).getUint32(4, true) - 4;
  let hasPixels = false;
  while (left > 0) {
    const head = yield { take: 8 };
    const length = view(head).getUint32(4, true);
    if (8 + length > left) throw new FormatError("a chunk is longer than the file");
    // Some files lack the last padding byte.
    const padded = Math.min(left - 8, length + length % 2);
    yield { skip: padded };
    left -= 8 + padded;
    hasPixels ||= ["VP8 ", "VP8L", "ANMF"].includes(latin1(head.subarray(0, 4)));
  }
  if (!hasPixels) throw new FormatError("it has no image data");
}

function view(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

function toCrcBytes(crc: number): Uint8Array {
  const bytes = new Uint8Array(4);
  view(bytes).setUint32(0, crc);
  return bytes;
}

function cannotUse(found: string): AppError {
  return new AppError("unprocessable", `Can't use the image: ${found}`);
}
