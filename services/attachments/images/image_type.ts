/** What kind of picture some bytes are and how large, by their header alone: nothing is decoded, and no size is believed. */

/** The kinds of pictures Parlor takes; also the only types it ever serves for them. */
export type ImageType = "image/png" | "image/jpeg" | "image/webp" | "image/gif";

/** What the header of a picture says. */
export interface ImageFacts {
  type: ImageType;
  widthPx: number;
  heightPx: number;
}

/**
 * Tells kind and size of a picture from its first bytes.
 *
 * @param bytes The whole file, or its beginning: PNG, GIF and WebP need 30 bytes, a JPEG everything before its frame.
 * @returns `undefined` for anything that is no PNG, JPEG, WebP or GIF with a legal header.
 */
export function sniffImage(bytes: Uint8Array): ImageFacts | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return sniffPng(view) ?? sniffJpeg(view) ?? sniffGif(view) ?? sniffWebp(view);
}

/** Bit depths that a colour type allows. PNG specification, table 11.1 */
const PNG_DEPTHS: Record<number, number[]> = {
  0: [1, 2, 4, 8, 16],
  2: [8, 16],
  3: [1, 2, 4, 8],
  4: [8, 16],
  6: [8, 16],
};

function sniffPng(view: DataView): ImageFacts | undefined {
  if (view.byteLength < 33 || view.getUint32(0) !== 0x89504e47 || view.getUint32(4) !== 0x0d0a1a0a) return undefined;
  if (view.getUint32(8) !== 13 || textAt(view, 12) !== "IHDR") return undefined;
  const [depth, colourType, compression, filter, interlace] = [24, 25, 26, 27, 28].map((at) => view.getUint8(at));
  if (!PNG_DEPTHS[colourType!]?.includes(depth!) || compression !== 0 || filter !== 0 || interlace! > 1) {
    return undefined;
  }
  const [widthPx, heightPx] = [view.getUint32(16), view.getUint32(20)];
  // PNG specification, section 11.2.2: at most 2^31 - 1.
  return widthPx > 0x7fffffff || heightPx > 0x7fffffff ? undefined : facts("image/png", widthPx, heightPx);
}

/** Goes from marker to marker up to the frame header. ITU T.81, annex B */
function sniffJpeg(view: DataView): ImageFacts | undefined {
  if (view.byteLength < 4 || view.getUint16(0) !== 0xffd8 || view.getUint8(2) !== 0xff) return undefined;
  let at = 2;
  while (at + 9 <= view.byteLength) {
    if (view.getUint8(at) !== 0xff) return undefined;
    const marker = view.getUint8(at + 1);
    if (marker === 0xff) {
      at++; // fill byte
    } else if (isFrame(marker)) {
      return facts("image/jpeg", view.getUint16(at + 7), view.getUint16(at + 5));
    } else if (marker === 0xd9 || marker === 0xda || marker < 0xc0 || view.getUint16(at + 2) < 2) {
      return undefined; // the picture's end, or its data, before any frame
    } else {
      at += 2 + view.getUint16(at + 2);
    }
  }
  return undefined;
}

/** SOF0 to SOF15 without DHT, JPG and DAC, which share the range. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}

function sniffGif(view: DataView): ImageFacts | undefined {
  if (view.byteLength < 13) return undefined;
  const magic = textAt(view, 0) + textAt(view, 4, 2);
  if (magic !== "GIF87a" && magic !== "GIF89a") return undefined;
  return facts("image/gif", view.getUint16(6, true), view.getUint16(8, true));
}

/** WebP container specification: lossy, lossless or extended, by the first chunk. RFC 9649 */
function sniffWebp(view: DataView): ImageFacts | undefined {
  if (view.byteLength < 30 || textAt(view, 0) !== "RIFF" || textAt(view, 8) !== "WEBP") return undefined;
  switch (textAt(view, 12)) {
    case "VP8 ":
      if (view.getUint8(23) !== 0x9d || view.getUint8(24) !== 0x01 || view.getUint8(25) !== 0x2a) return undefined;
      return facts("image/webp", view.getUint16(26, true) & 0x3fff, view.getUint16(28, true) & 0x3fff);
    case "VP8L": {
      const bits = view.getUint32(21, true);
      if (view.getUint8(20) !== 0x2f || bits >>> 29 !== 0) return undefined;
      return facts("image/webp", (bits & 0x3fff) + 1, (bits >>> 14 & 0x3fff) + 1);
    }
    case "VP8X":
      return facts("image/webp", 1 + uint24(view, 24), 1 + uint24(view, 27));
    default:
      return undefined;
  }
}

function facts(type: ImageType, widthPx: number, heightPx: number): ImageFacts | undefined {
  return widthPx === 0 || heightPx === 0 ? undefined : { type, widthPx, heightPx };
}

function textAt(view: DataView, offset: number, length = 4): string {
  return String.fromCharCode(...new Uint8Array(view.buffer, view.byteOffset + offset, length));
}

function uint24(view: DataView, offset: number): number {
  return view.getUint16(offset, true) | view.getUint8(offset + 2) << 16;
}
