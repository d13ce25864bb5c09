/** The Worker that decodes, reduces and encodes pictures, one after the other. image_pool.ts is its other end. */
import { messageOf } from "../../errors.ts";
import { decodeImage, encodeJpeg } from "./image_codecs.ts";
import { type ImageFacts, sniffImage } from "./image_type.ts";
import { encodePng } from "./png_file.ts";
import { checkWholeImage } from "./whole_image.ts";
import { flatten, type Raster, reduce, sizeWithin } from "./raster.ts";

/** What is to be made of a picture. */
export type ImageOrder =
  | { kind: "png"; maxPx?: number; mustBeWhole?: boolean }
  | { kind: "png_of_width"; widthPx: number; mustBeWhole?: boolean }
  | { kind: "jpeg"; maxPx: number; quality: number };

/** What the serving thread sends. */
export interface ImageTask {
  bytes: Uint8Array;
  order: ImageOrder;
  maxPixels: number;
}

/** What it gets back: the new file, or why there is none. */
export type ImageResult = { file: Uint8Array<ArrayBuffer> } | { fault: string };

async function make({ bytes, order, maxPixels }: ImageTask): Promise<Uint8Array<ArrayBuffer>> {
  const facts = sniffImage(bytes);
  if (facts === undefined) throw new Error("it is no PNG, JPEG, WebP or GIF");
  if (order.kind !== "jpeg" && order.mustBeWhole) checkWholeImage(bytes, facts.type);
  const raster = await decodeImage(bytes, facts, { maxPixels }, wantedPx(facts, order));
  const { width, height } = wantedSize(raster, order);
  const reduced = reduce(raster, width, height);
  if (order.kind !== "jpeg") return encodePng(reduced);
  flatten(reduced);
  return await encodeJpeg(reduced, order.quality);
}

/** How long the longer side has to be at least. A camera may have been held either way, so its shorter side counts as width. */
function wantedPx({ widthPx, heightPx }: ImageFacts, order: ImageOrder): number | undefined {
  if (order.kind !== "png_of_width") return order.maxPx;
  return order.widthPx * Math.max(widthPx, heightPx) / Math.min(widthPx, heightPx);
}

function wantedSize({ width, height }: Raster, order: ImageOrder): { width: number; height: number } {
  if (order.kind !== "png_of_width") return sizeWithin(width, height, order.maxPx ?? Infinity);
  if (order.widthPx >= width) return { width, height };
  return { width: order.widthPx, height: Math.max(1, Math.round(height * order.widthPx / width)) };
}

// A page has a window and a Worker has not: importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  self.onmessage = async ({ data }: MessageEvent<ImageTask>) => {
    let result: ImageResult;
    try {
      result = { file: await make(data) };
    } catch (error) {
      result = { fault: messageOf(error) };
    }
    self.postMessage(result, "file" in result ? [result.file.buffer] : []);
  };
}
