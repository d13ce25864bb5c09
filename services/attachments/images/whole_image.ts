/**
 * Says whether an image file is whole: every chunk, segment and block up to its end marker, PNG's check sums included. It
 * reads the bytes as they pass and holds none of them, so a file of any size costs no memory. Nothing is decoded.
 */
import { crc32 } from "node:zlib";
import { AppError } from "../../errors.ts";
import type { ImageType } from "./image_type.ts";

/** What a parser asks for next. */
type Want =
  /** The next bytes, a few. */
  | { take: number }
  /** To pass over bytes; `crc` starts a check sum over them. */
  | { skip: number; crc?: number }
  /** To pass over everything up to and including this byte. */
  | { until: number };

/** Gets what it asked for: bytes, or for `skip` their check sum in four bytes. Ends with the image. */
type Parser = Generator<Want, void, Uint8Array>;

class Fault extends Error {}

/** A check that goes along with the bytes of a file. */
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

  /** Reads on. @throws {AppError} `unprocessable` for damage */
  push(chunk: Uint8Array): void {
    try {
      for (let at = 0; this.#want !== undefined && at < chunk.length;) at += this.#read(chunk.subarray(at));
    } catch (error) {
      if (error instanceof Fault) throw damaged(error.message);
      throw error;
    }
  }

  /** To be called after the last byte. @throws {AppError} `unprocessable` for a file that is cut off */
  end(): void {
    if (this.#want !== undefined) throw damaged("it is cut off");
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
    if (this.#count === total) this.#resume("take" in want ? this.#taken : crcBytes(this.#crc));
    return used.length;
  }

  /** Wants of no bytes are met at once: a file may end behind them. */
  #resume(given: Uint8Array): void {
    let next = this.#parser.next(given);
    while (!next.done && "skip" in next.value && next.value.skip === 0) {
      next = this.#parser.next(crcBytes(next.value.crc ?? 0));
    }
    this.#want = next.done ? undefined : next.value;
    this.#count = 0;
  }
}

/** Checks a whole file that is in memory. @throws {AppError} `unprocessable` */
export function checkWholeImage(bytes: Uint8Array, type: ImageType): void {
  const check = new WholeImageCheck(type);
  check.push(bytes);
  check.end();
}

/** Passes a file on and fails at its end if it isn't whole. @throws {AppError} `unprocessable` */
export async function* wholeImage(source: AsyncIterable<Uint8Array>, type: ImageType): AsyncGenerator<Uint8Array> {
  const check = new WholeImageCheck(type);
  for await (const chunk of source) {
    check.push(chunk);
    yield chunk;
  }
  check.end();
}

const PARSERS: Record<ImageType, () => Parser> = {
  "image/png": png,
  "image/jpeg": jpeg,
  "image/gif": gif,
  "image/webp": webp,
};

/** PNG, third edition, section 5.3. A wrong check sum of a chunk that isn't critical harms no pixel. */
function* png(): Parser {
  yield { take: 8 };
  let hasPixels = false;
  for (let type = ""; type !== "IEND";) {
    const head = yield { take: 8 };
    const length = view(head).getUint32(0);
    type = latin1(head.subarray(4));
    if (!/^[A-Za-z]{4}$/.test(type) || length > 0x7fffffff) throw new Fault("a chunk isn't one");
    const found = yield { skip: length, crc: crc32(head.subarray(4)) };
    const stated = yield { take: 4 };
    const isCritical = type[0] === type[0]!.toUpperCase();
    if (isCritical && view(found).getUint32(0) !== view(stated).getUint32(0)) {
      throw new Fault(`the check sum of its ${type} chunk is wrong`);
    }
    hasPixels ||= type === "IDAT";
  }
  if (!hasPixels) throw new Fault("it has no pixels");
}

/** ITU T.81, annex B: segments, and behind each start of a scan its data up to the next marker. */
function* jpeg(): Parser {
  yield { take: 2 };
  let hasScan = false;
  let marker = yield* nextMarker();
  while (marker !== 0xd9) {
    const isAlone = marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7);
    if (isAlone) {
      marker = yield* nextMarker();
      continue;
    }
    const length = view(yield { take: 2 }).getUint16(0);
    if (length < 2 || marker < 0xc0) throw new Fault("a segment isn't one");
    yield { skip: length - 2 };
    if (marker === 0xda) {
      hasScan = true;
      marker = yield* markerBehindScan();
    } else marker = yield* nextMarker();
  }
  if (!hasScan) throw new Fault("it has no pixels");
}

function* nextMarker(): Generator<Want, number, Uint8Array> {
  let [byte] = yield { take: 1 };
  if (byte !== 0xff) throw new Fault("a segment isn't one");
  while (byte === 0xff) [byte] = yield { take: 1 };
  return byte!;
}

/** Within a scan, 0xff is followed by zero or is a restart marker. */
function* markerBehindScan(): Generator<Want, number, Uint8Array> {
  for (;;) {
    yield { until: 0xff };
    let [byte] = yield { take: 1 };
    while (byte === 0xff) [byte] = yield { take: 1 };
    if (byte !== 0 && !(byte! >= 0xd0 && byte! <= 0xd7)) return byte!;
  }
}

/** GIF89a specification, sections 15 to 27. */
function* gif(): Parser {
  const screen = yield { take: 13 };
  yield { skip: tableBytes(screen[10]!) };
  let hasFrame = false;
  for (;;) {
    const [block] = yield { take: 1 };
    if (block === 0x3b) break;
    if (block === 0x21) {
      yield { take: 1 };
    } else if (block === 0x2c) {
      const frame = yield { take: 9 };
      yield { skip: tableBytes(frame[8]!) };
      yield { take: 1 };
      hasFrame = true;
    } else throw new Fault("a block isn't one");
    for (let length = 1; length !== 0;) {
      length = (yield { take: 1 })[0]!;
      yield { skip: length };
    }
  }
  if (!hasFrame) throw new Fault("it has no pixels");
}

function tableBytes(flags: number): number {
  return flags & 0x80 ? 3 << (flags & 7) + 1 : 0;
}

/** RFC 9649, section 2.3: chunks that fill the RIFF container. */
function* webp(): Parser {
  let left = view(yield { take: 12 }).getUint32(4, true) - 4;
  let hasPixels = false;
  while (left > 0) {
    const head = yield { take: 8 };
    const length = view(head).getUint32(4, true);
    if (8 + length > left) throw new Fault("a chunk is longer than the file");
    // The last pad byte is missing in some files.
    const padded = Math.min(left - 8, length + length % 2);
    yield { skip: padded };
    left -= 8 + padded;
    hasPixels ||= ["VP8 ", "VP8L", "ANMF"].includes(latin1(head.subarray(0, 4)));
  }
  if (!hasPixels) throw new Fault("it has no pixels");
}

function view(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

function crcBytes(crc: number): Uint8Array {
  const bytes = new Uint8Array(4);
  view(bytes).setUint32(0, crc);
  return bytes;
}

function damaged(found: string): AppError {
  return new AppError("unprocessable", `Cannot use the image: ${found}`);
}
