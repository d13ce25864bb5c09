/** Decodes, resizes and encodes images in the sandbox. */
import { decodeImage, encodeJpeg, loadCodecs } from "./image_codecs.ts";
import { type ImageFacts, sniffImage } from "./image_header.ts";
import { encodePng } from "./png.ts";
import { checkImage } from "./whole_image.ts";
import { downscale, fitWithin, flattenOntoWhite, type Raster } from "./raster.ts";
import { serveSandbox } from "../../platform/sandbox/child.ts";

/** What to produce. */
export type ImageOperation =
  | { kind: "png"; maxPx?: number; mustBeComplete?: boolean }
  | { kind: "png_of_width"; widthPx: number; mustBeComplete?: boolean }
  | { kind: "jpeg"; maxPx: number; quality: number };

/** A job; its bytes are the image, and those of its result the new file. */
export interface ImageJobTask {
  operation: ImageOperation;
  maxPixels: number;
}

async function processImage(
  bytes: Uint8Array<ArrayBuffer>,
  { operation, maxPixels }: ImageJobTask,
): Promise<Uint8Array<ArrayBuffer>> {
  const facts = sniffImage(bytes);
  if (facts === undefined) throw new Error("it isn't a PNG, JPEG, WebP or GIF");
  if (operation.kind !== "jpeg" && operation.mustBeComplete) checkImage(bytes, facts.type);
  const raster = await decodeImage(bytes, facts, { maxPixels }, getMinSidePx(facts, operation));
  const { width, height } = getTargetSize(raster, operation);
  const reduced = downscale(raster, width, height);
  if (operation.kind !== "jpeg") return encodePng(reduced);
  flattenOntoWhite(reduced);
  return await encodeJpeg(reduced, operation.quality);
}

/** Returns the minimum length of the longer side. The image may be rotated, so its shorter side counts as width. */
function getMinSidePx({ widthPx, heightPx }: ImageFacts, order: ImageOperation): number | undefined {
  if (order.kind !== "png_of_width") return order.maxPx;
  return order.widthPx * Math.max(widthPx, heightPx) / Math.min(widthPx, heightPx);
}

function getTargetSize({ width, height }: Raster, order: ImageOperation): { width: number; height: number } {
  if (order.kind !== "png_of_width") return fitWithin(width, height, order.maxPx ?? Infinity);
  if (order.widthPx >= width) return { width, height };
  return { width: order.widthPx, height: Math.max(1, Math.round(height * order.widthPx / width)) };
}

await serveSandbox("image_child", {
  load: loadCodecs,
  run: async (value, [bytes]) => ({ bytes: [await processImage(bytes!, value as ImageJobTask)] }),
});
