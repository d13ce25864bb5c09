/** Pixels in memory: made smaller, turned, laid over white. Only the image Worker has any. */

/** A picture as rows of pixels from the top left, four bytes each: red, green, blue, alpha (not multiplied). */
export interface Raster {
  width: number;
  height: number;
  pixels: Uint8Array<ArrayBuffer>;
}

/** Gives the largest size with the picture's proportions whose longer side is at most `maxPx`; never a larger one. */
export function sizeWithin(width: number, height: number, maxPx: number): { width: number; height: number } {
  const ratio = Math.min(1, maxPx / Math.max(width, height));
  return { width: Math.max(1, Math.round(width * ratio)), height: Math.max(1, Math.round(height * ratio)) };
}

/** Tells whether no pixel lets anything through. */
export function isOpaque({ pixels }: Raster): boolean {
  for (let at = 3; at < pixels.length; at += 4) {
    if (pixels[at] !== 255) return false;
  }
  return true;
}

/**
 * Makes a picture smaller: each new pixel is the mean of the area it covers, with parts of pixels counted as parts.
 *
 * imagescript only picks the nearest pixel, which is visible on hair and text. Colours are weighed by their alpha, else
 * the colour of what nobody sees would bleed into edges.
 *
 * @param width At most the picture's own, as is `height`; both at least 1.
 */
export function reduce(source: Raster, width: number, height: number): Raster {
  if (width === source.width && height === source.height) return source;
  const pixels = new Uint8Array(width * height * 4);
  const columns = coverage(source.width, width);
  const rows = coverage(source.height, height);
  const isPlain = isOpaque(source);
  const line = new Float32Array(width * 4);
  const sum = new Float32Array(width * 4);
  for (let y = 0; y < height; y++) {
    sum.fill(0);
    for (let from = rows.first[y]!; from <= rows.last[y]!; from++) {
      reduceLine(source, from, columns, line, isPlain);
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

/** Which source places each target place covers, and by how much of its own area. */
interface Coverage {
  first: Int32Array;
  last: Int32Array;
  /** Where the weights of a target place begin; they lie in the order of its source places. */
  offset: Int32Array;
  weights: Float32Array;
}

function coverage(sourceLength: number, targetLength: number): Coverage {
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

function reduceLine(source: Raster, row: number, columns: Coverage, line: Float32Array, isPlain: boolean): void {
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
 * Turns and mirrors a picture so that it stands as its camera held it.
 *
 * @param orientation 1 to 8, where 1 changes nothing. Exif 2.32, tag 0x0112
 */
export function turn(source: Raster, orientation: number): Raster {
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

/** Lays a picture over white, in place: JPEG knows no alpha. */
export function flatten({ pixels }: Raster): void {
  for (let at = 0; at < pixels.length; at += 4) {
    const alpha = pixels[at + 3]!;
    if (alpha === 255) continue;
    for (let i = at; i < at + 3; i++) pixels[i] = (pixels[i]! * alpha + 255 * (255 - alpha)) / 255 + 0.5;
    pixels[at + 3] = 255;
  }
}

/** Thrown where a file breaks the rules of its format or goes over a limit; says what was found. */
export class ImageFault extends Error {}
