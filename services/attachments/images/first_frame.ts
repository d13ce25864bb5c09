/** The first frame of an animation: its position in a GIF, and a still file of it for WebP. */
import { Buffer } from "node:buffer";
import { ImageError } from "./raster.ts";

/** Position and size of a frame on the canvas, in pixels. */
export interface FrameRect {
  x: number;
  y: number;
  width: number;
  height: number;
}

/**
 * Finds the first frame of a GIF. The header doesn't limit its size.
 *
 * @param bytes A file recognized as GIF.
 * @throws {ImageError} if there is no frame
 * @see GIF89a specification, sections 18 to 26
 */
export function findFirstGifFrame(bytes: Uint8Array): FrameRect {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const flags = bytes[10]!;
  let at = 13 + (flags & 0x80 ? 3 << (flags & 7) + 1 : 0);
  while (bytes[at] === 0x21) {
    at += 2;
    while (at < bytes.length && bytes[at] !== 0) at += 1 + bytes[at]!;
    at++;
  }
  if (bytes[at] !== 0x2c || at + 10 > bytes.length) throw new ImageError("the file ends before its first frame");
  const [x, y, width, height] = [1, 3, 5, 7].map((offset) => view.getUint16(at + offset, true));
  return { x: x!, y: y!, width: width!, height: height! };
}

/** First frame of an animated WebP file. */
export interface WebpFrame extends FrameRect {
  /** The frame as a still WebP file. */
  file: Uint8Array;
}

/**
 * Extracts the first frame of an animated WebP file, since the codec only reads still images.
 *
 * @param bytes A file recognized as WebP.
 * @returns `undefined` for a still image.
 * @throws {ImageError} if there is no frame
 * @see RFC 9649, section 2.7.1.1
 */
export function extractFirstWebpFrame(bytes: Uint8Array): WebpFrame | undefined {
  const isAnimated = bytes[15] === 0x58 && (bytes[20]! & 2) !== 0; // VP8X with the animation flag
  if (!isAnimated) return undefined;
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 12; at + 8 <= file.length;) {
    const end = at + 8 + file.readUInt32LE(at + 4);
    if (end > file.length) break;
    if (file.toString("latin1", at, at + 4) === "ANMF" && end - at >= 32) {
      const [x, y, width, height] = [8, 11, 14, 17].map((offset) => file.readUIntLE(at + offset, 3));
      const place = { x: x! * 2, y: y! * 2, width: width! + 1, height: height! + 1 };
      return { ...place, file: createStillWebp(place, file.subarray(at + 24, end)) };
    }
    at = end + (end & 1);
  }
  throw new ImageError("the file ends before its first frame");
}

function createStillWebp({ width, height }: FrameRect, frame: Buffer): Uint8Array {
  const head = Buffer.alloc(30);
  head.write("RIFF", 0, "latin1");
  head.writeUInt32LE(22 + frame.length, 4);
  head.write("WEBPVP8X", 8, "latin1");
  head.writeUInt32LE(10, 16);
  head[20] = 0x10; // alpha flag
  head.writeUIntLE(width - 1, 24, 3);
  head.writeUIntLE(height - 1, 27, 3);
  return Buffer.concat([head, frame]);
}
