/** Operations on pixels in memory. Only used in children of the sandbox. */

/** Pixels in rows from the top left, four bytes each: red, green, blue, alpha (not premultiplied). */
export interface Raster {
  width: number;
  height: number;
  pixels: Uint8Array<ArrayBuffer>;
}

/** Returns the largest size with these proportions whose longer side is at most `maxPx`. Never enlarges. */
export function fitWithin(width: number, height: number, maxPx: number): { width: number; height: number } {
  const ratio = Math.min(1, maxPx / Math.max(width, height));
  return { width: Math.max(1, Math.round(width * ratio)), height: Math.max(1, Math.round(height * ratio)) };
}

/** Reports whether all pixels are opaque. */
export function isOpaque({ pixels }: Raster): boolean {
  for (let at = 3; at < pixels.length; at += 4) {
    if (pixels[at] !== 255) return false;
  }
  return true;
}

/**
 * Scales an image down. Each new pixel is the average of the area it covers.
 *
 * imagescript picks the nearest pixel, which is visible on hair and text. Colors are weighted by alpha, so that the
 * color of transparent pixels doesn't bleed into edges.
 *
 * @param width At most the width of the image, at least 1; likewise `height`.
 */
export function downscale(source: Raster, width: number, height: number): Raster {
  if (width === source.width && height === source.height) return source;
  const pixels = new Uint8Array(width * height * 4);
  const columns = computeCoverage(source.width, width);
  const rows = computeCoverage(source.height, height);
  const isPlain = isOpaque(source);
  const line = new Float32Array(width * 4);
  const sum = new Float32Array(width * 4);
  for (let y = 0; y < height; y++) {
    sum.fill(0);
    for (let from = rows.first[y]!; from <= rows.last[y]!; from++) {
      downscaleLine(source, from, columns, line, isPlain);
      const weight = rows.weights[rows.offset[y]! + from - rows.first[y]!]!;
      for (let i = 0; i < sum.length; i++) sum[i]! += line[i]! * weight;
    }
    const at = y * width * 4;
    for (let i = 0; i < sum.length; i += 4) {
      const alpha = sum[i + 3]!;
      const scale = isPlain ? 1 : alpha === 0 ? 0 : 255 / alpha;
      pixels[at + i] = sum[i]! * scale + 0.5;
      pixels[at + i + 1] = sum[i + 1]! * scale + 0.5;
      pixels[at + i + 2] = sum[i + 2]! * scale + 0.5;
      pixels[at + i + 3] = alpha + 0.5;
    }
  }
  return { width, height, pixels };
}

/** Which source pixels each target pixel covers, and with which weight. */
interface Coverage {
  first: Int32Array;
  last: Int32Array;
  /** Index of the first weight of each target pixel; weights are in the order of source pixels. */
  offset: Int32Array;
  weights: Float32Array;
}

function computeCoverage(sourceLength: number, targetLength: number): Coverage {
  const step = sourceLength / targetLength;
  const [first, last, offset] = [0, 0, 0].map(() => new Int32Array(targetLength)) as [
    Int32Array,
    Int32Array,
    Int32Array,
  ];
  const weights: number[] = [];
  for (let target = 0; target < targetLength; target++) {
    first[target] = Math.floor(target * step);
    last[target] = Math.min(sourceLength, Math.ceil((target + 1) * step)) - 1;
    offset[target] = weights.length;
    for (let from = first[target]!; from <= last[target]!; from++) {
      weights.push((Math.min(from + 1, (target + 1) * step) - Math.max(from, target * step)) / step);
    }
  }
  return { first, last, offset, weights: Float32Array.from(weights) };
}

function downscaleLine(source: Raster, row: number, columns: Coverage, line: Float32Array, isPlain: boolean): void {
  const { pixels } = source;
  const { first, last, weights } = columns;
  const start = row * source.width * 4;
  let next = 0;
  for (let x = 0; x < first.length; x++) {
    let red = 0, green = 0, blue = 0, alpha = 0;
    const end = start + last[x]! * 4;
    for (let at = start + first[x]! * 4; at <= end; at += 4) {
      const weight = weights[next++]!;
      const share = isPlain ? weight : weight * pixels[at + 3]! / 255;
      red += pixels[at]! * share;
      green += pixels[at + 1]! * share;
      blue += pixels[at + 2]! * share;
      alpha += pixels[at + 3]! * weight;
    }
    line[x * 4] = red;
    line[x * 4 + 1] = green;
    line[x * 4 + 2] = blue;
    line[x * 4 + 3] = alpha;
  }
}

/**
 * Rotates and mirrors an image to its camera orientation.
 *
 * @param orientation 1 to 8; 1 changes nothing. Exif 2.32, tag 0x0112
 */
export function orient(source: Raster, orientation: number): Raster {
  if (orientation === 1) return source;
  const isOnItsSide = orientation > 4;
  const [width, height] = isOnItsSide ? [source.height, source.width] : [source.width, source.height];
  const from = new Uint32Array(source.pixels.buffer, source.pixels.byteOffset, source.width * source.height);
  const to = new Uint32Array(width * height);
  const isMirroredX = [2, 3, 7, 8].includes(orientation);
  const isMirroredY = [3, 4, 6, 7].includes(orientation);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const [column, row] = isOnItsSide ? [y, x] : [x, y];
      const sourceX = isMirroredX ? source.width - 1 - column : column;
      const sourceY = isMirroredY ? source.height - 1 - row : row;
      to[y * width + x] = from[sourceY * source.width + sourceX]!;
    }
  }
  return { width, height, pixels: new Uint8Array(to.buffer) };
}

/** Blends an image onto white, in place: JPEG has no alpha. */
export function flattenOntoWhite({ pixels }: Raster): void {
  for (let at = 0; at < pixels.length; at += 4) {
    const alpha = pixels[at + 3]!;
    if (alpha === 255) continue;
    for (let i = at; i < at + 3; i++) pixels[i] = (pixels[i]! * alpha + 255 * (255 - alpha)) / 255 + 0.5;
    pixels[at + 3] = 255;
  }
}

/** Thrown for files that are invalid or exceed a limit. The message says what was found. */
export class ImageError extends Error {}
