/** What the image of a card says about itself, besides its pixels: where it was taken, and how it was generated. */
import { createChunk, isPng, joinPng } from "../../attachments/images/png.ts";
import { getKeyword } from "./png_card.ts";

/**
 * Texts of image generators (A1111, ComfyUI, InvokeAI, NovelAI), XMP, and Exif as text. NovelAI writes the prompt to
 * `Description` and its settings to `Comment`.
 */
const PRIVATE_KEYWORDS =
  /^(parameters|prompt|workflow|dream|sd-metadata|invokeai_\w+|fooocus_scheme|generation_data|description|comment|source|xml:com\.adobe\.xmp|raw profile type .*)$/i;

const SIGNATURE_BYTES = 8;
/** Length, type and checksum of a chunk. */
const FRAME_BYTES = 12;
const ORIENTATION_TAG = 0x0112;

/**
 * Removes place, camera and generation parameters from a PNG. Its pixels, its card and its orientation stay. Nothing is
 * decoded, so large images don't take long.
 *
 * @returns The same bytes if there is nothing to remove, or if it isn't a whole PNG.
 */
export function removeImageMetadata(png: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (!isPng(png)) return png;
  const view = new DataView(png.buffer, png.byteOffset, png.byteLength);
  const kept: { bytes: Uint8Array }[] = [];
  let hasRemoved = false;
  for (let at = SIGNATURE_BYTES; at < png.length;) {
    if (png.length - at < FRAME_BYTES) return png;
    const end = at + FRAME_BYTES + view.getUint32(at);
    if (end > png.length) return png;
    const type = String.fromCharCode(...png.subarray(at + 4, at + 8));
    const data = png.subarray(at + 8, end - 4);
    if (type === "eXIf") {
      hasRemoved = true;
      const orientation = findOrientation(data);
      if (orientation > 1) kept.push(createChunk("eXIf", createExif(orientation)));
    } else if (PRIVATE_KEYWORDS.test(getKeyword({ type, data }) ?? "")) hasRemoved = true;
    else kept.push({ bytes: png.subarray(at, end) });
    if (type === "IEND") break;
    at = end;
  }
  return hasRemoved ? joinPng(kept) : png;
}

/** Returns the orientation in Exif data, 1 to 8; 1 if it has none. @see CIPA DC-008, section 4.6.4 */
function findOrientation(exif: Uint8Array): number {
  const view = new DataView(exif.buffer, exif.byteOffset, exif.byteLength);
  if (view.byteLength < 8) return 1;
  const isLittle = view.getUint16(0) === 0x4949;
  const first = view.getUint32(4, isLittle);
  if (first + 2 > view.byteLength) return 1;
  const count = view.getUint16(first, isLittle);
  for (let n = 0, at = first + 2; n < count && at + 12 <= view.byteLength; n++, at += 12) {
    if (view.getUint16(at, isLittle) !== ORIENTATION_TAG) continue;
    const orientation = view.getUint16(at + 8, isLittle);
    return orientation <= 8 ? orientation : 1;
  }
  return 1;
}

/** Creates Exif data with nothing but an orientation. */
function createExif(orientation: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(26));
  view.setUint32(0, 0x4d4d002a);
  view.setUint32(4, 8);
  view.setUint16(8, 1);
  view.setUint16(10, ORIENTATION_TAG);
  view.setUint16(12, 3);
  view.setUint32(14, 1);
  view.setUint16(18, orientation);
  return new Uint8Array(view.buffer);
}
