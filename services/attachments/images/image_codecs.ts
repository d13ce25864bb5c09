/**
 * Decodes and encodes images with WebAssembly: imagescript, and @jsquash/webp for WebP (docs/decisions/0034-image-codecs.md). Each call
 * uses a new instance, whose memory is freed with it. These functions block; only children of the sandbox call them.
 */
import decodeWebpFile, { init as initWebp } from "@jsquash/webp/decode.js";
import { type ImageFacts, readOrientation } from "./image_header.ts";
import { keepPixelChunks } from "./png.ts";
import { fitWithin, ImageError, orient, type Raster } from "./raster.ts";
import { Buffer } from "node:buffer";

/** Codec files. The names are literals, so that build.ts includes them in the executable. */
const CODEC_FILES = {
  png: () => import.meta.resolve("imagescript/wasm/any/png.wasm"),
  jpeg: () => import.meta.resolve("imagescript/wasm/any/jpeg.wasm"),
  gif: () => import.meta.resolve("imagescript/wasm/any/gif.wasm"),
  webp: () => import.meta.resolve("@jsquash/webp/codec/dec/webp_dec.wasm"),
};

const compiled = new Map<string, Promise<WebAssembly.Module>>();

/** Loads a codec. In the sandbox, only codecs that were loaded before can be used. */
export function loadCodec(name: keyof typeof CODEC_FILES): Promise<WebAssembly.Module> {
  let module = compiled.get(name);
  if (module === undefined) {
    module = Deno.readFile(new URL(CODEC_FILES[name]())).then((code) => WebAssembly.compile(code));
    compiled.set(name, module);
  }
  return module;
}

/** Loads all codecs. */
export async function loadCodecs(): Promise<void> {
  await Promise.all(Object.keys(CODEC_FILES).map((name) => loadCodec(name as keyof typeof CODEC_FILES)));
}

/** Limits for decoding. */
export interface DecodeLimits {
  /** Maximum number of decoded pixels of an image or first frame. */
  maxPixels: number;
}

/**
 * Decodes an image, or the first frame of an animation.
 *
 * @param facts Result of `sniffImage` for the same bytes.
 * @param wantedPx Minimum length of the longer side. A JPEG is then decoded at 1/2, 1/4 or 1/8 of its size.
 * @throws {ImageError} for broken or large files; errors of the codecs
 */
export function decodeImage(
  bytes: Uint8Array,
  facts: ImageFacts,
  limits: DecodeLimits,
  wantedPx?: number,
): Promise<Raster> {
  if (facts.type === "image/jpeg") return decodeJpeg(bytes, facts, limits, wantedPx);
  checkSize(facts.widthPx, facts.heightPx, limits);
  if (facts.type === "image/png") return decodePng(bytes);
  return facts.type === "image/gif" ? decodeGif(bytes, facts, limits) : decodeWebp(bytes, facts, limits);
}

function checkSize(width: number, height: number, { maxPixels }: DecodeLimits): void {
  if (width * height > maxPixels) {
    throw new ImageError(`${width} × ${height} pixels; the limit is ${maxPixels / 1e6} million`);
  }
}

interface PngCodec {
  memory: WebAssembly.Memory;
  walloc(sizeBytes: number): number;
  /** Returns the address of the pixels, or a negative error code. */
  decode(address: number, sizeBytes: number): number;
  width(): number;
  height(): number;
}

async function decodePng(bytes: Uint8Array): Promise<Raster> {
  const image = keepPixelChunks(bytes);
  const env = { emscripten_notify_memory_growth: () => {} };
  const png = instantiate<PngCodec>(await loadCodec("png"), { env });
  const address = copyIn(png, image);
  const pixels = png.decode(address, image.length);
  if (pixels < 0) throw new ImageError(`its pixels can't be decoded (${pixels})`);
  const [width, height] = [png.width(), png.height()];
  return { width, height, pixels: copyOut(png, pixels, width * height * 4) };
}

interface JpegCodec {
  memory: WebAssembly.Memory;
  walloc(sizeBytes: number): number;
  /** Size of the last result in bytes. */
  wlen(): number;
  /** Returns a handle; 0 and 1 are errors. The size allows decoding at a fraction of the full size. */
  decode(address: number, sizeBytes: number, width: number, height: number): number;
  decode_width(handle: number): number;
  decode_height(handle: number): number;
  decode_format(handle: number): number;
  decode_buffer(handle: number): number;
  encode(address: number, width: number, height: number, quality: number): number;
}

async function decodeJpeg(
  bytes: Uint8Array,
  { widthPx, heightPx }: ImageFacts,
  limits: DecodeLimits,
  wantedPx = Infinity,
): Promise<Raster> {
  const target = fitWithin(widthPx, heightPx, wantedPx);
  const halvings = Math.min(3, Math.floor(Math.log2(widthPx / target.width)));
  checkSize(Math.ceil(widthPx / 2 ** halvings), Math.ceil(heightPx / 2 ** halvings), limits);
  const jpeg = instantiate<JpegCodec>(await loadCodec("jpeg"));
  const handle = jpeg.decode(copyIn(jpeg, bytes), bytes.length, target.width, target.height);
  if (handle === 0 || handle === 1) throw new ImageError("its pixels can't be decoded");
  const [width, height] = [jpeg.decode_width(handle), jpeg.decode_height(handle)];
  const samples = copyOut(jpeg, jpeg.decode_buffer(handle), jpeg.wlen());
  const pixels = toPixels(samples, jpeg.decode_format(handle), width * height);
  return orient({ width, height, pixels }, readOrientation(bytes));
}

/** Formats: 0 gray, 1 RGB, 2 CMYK; 8 bits per channel. */
function toPixels(samples: Uint8Array, format: number, count: number): Uint8Array<ArrayBuffer> {
  const channels = [1, 3, 4][format];
  if (channels === undefined || samples.length !== count * channels) {
    throw new ImageError("its color space isn't supported");
  }
  const pixels = new Uint8Array(count * 4);
  for (let from = 0, to = 0; from < samples.length; from += channels, to += 4) {
    for (let channel = 0; channel < 3; channel++) {
      pixels[to + channel] = format === 0
        ? samples[from]!
        : format === 1
        ? samples[from + channel]!
        : (255 - samples[from + channel]!) * (255 - samples[from + 3]!) / 255;
    }
    pixels[to + 3] = 255;
  }
  return pixels;
}

/**
 * Encodes an image as JPEG.
 *
 * @param raster Fully opaque.
 * @param quality 1 to 100.
 */
export async function encodeJpeg({ width, height, pixels }: Raster, quality: number): Promise<Uint8Array<ArrayBuffer>> {
  const jpeg = instantiate<JpegCodec>(await loadCodec("jpeg"));
  const file = jpeg.encode(copyIn(jpeg, pixels), width, height, quality);
  return copyOut(jpeg, file, jpeg.wlen());
}

interface GifCodec {
  memory: WebAssembly.Memory;
  walloc(sizeBytes: number): number;
  wlen(): number;
  /** Returns a handle; 0 is an error. */
  decoder_new(address: number, sizeBytes: number, limit: number): number;
  /** Returns a handle; 0 is an error, 1 the end of the animation. */
  decoder_frame(decoder: number): number;
  decoder_frame_buffer(frame: number): number;
}

async function decodeGif(bytes: Uint8Array, facts: ImageFacts, limits: DecodeLimits): Promise<Raster> {
  const frame = findFirstGifFrame(bytes);
  checkSize(frame.width, frame.height, limits);
  const gif = instantiate<GifCodec>(await loadCodec("gif"), { env: { push_to_stream: () => {} } });
  const decoder = gif.decoder_new(copyIn(gif, bytes), bytes.length, 0);
  const handle = decoder === 0 ? 0 : gif.decoder_frame(decoder);
  if (handle === 0 || handle === 1) throw new ImageError("its first frame can't be decoded");
  const pixels = copyOut(gif, gif.decoder_frame_buffer(handle), gif.wlen());
  return placeOnCanvas(facts, frame, pixels);
}

async function decodeWebp(bytes: Uint8Array, facts: ImageFacts, limits: DecodeLimits): Promise<Raster> {
  const frame = extractFirstWebpFrame(bytes);
  if (frame !== undefined) checkSize(frame.width, frame.height, limits);
  await initWebp(await loadCodec("webp"));
  const { width, height, data } = await decodeWebpFile(Uint8Array.from(frame?.file ?? bytes).buffer);
  const pixels = new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength);
  return placeOnCanvas(facts, { x: frame?.x ?? 0, y: frame?.y ?? 0, width, height }, pixels);
}

/** Places a frame on its canvas and clips it at the edges. */
function placeOnCanvas(facts: ImageFacts, frame: FrameRect, pixels: Uint8Array<ArrayBuffer>): Raster {
  if (pixels.length !== frame.width * frame.height * 4) {
    throw new ImageError("its frame doesn't have the size in its header");
  }
  const { widthPx: width, heightPx: height } = facts;
  if (frame.width === width && frame.height === height && frame.x === 0 && frame.y === 0) {
    return { width, height, pixels };
  }
  const canvas = new Uint8Array(width * height * 4);
  const columns = Math.max(0, Math.min(frame.width, width - frame.x));
  for (let row = 0; row < frame.height && frame.y + row < height; row++) {
    const from = row * frame.width * 4;
    canvas.set(pixels.subarray(from, from + columns * 4), ((frame.y + row) * width + frame.x) * 4);
  }
  return { width, height, pixels: canvas };
}

function instantiate<Codec>(module: WebAssembly.Module, imports: WebAssembly.Imports = {}): Codec {
  return new WebAssembly.Instance(module, imports).exports as Codec;
}

function copyIn(codec: { memory: WebAssembly.Memory; walloc(sizeBytes: number): number }, bytes: Uint8Array): number {
  const address = codec.walloc(bytes.length);
  if (address === 0) throw new ImageError("not enough memory to decode it");
  new Uint8Array(codec.memory.buffer, address, bytes.length).set(bytes);
  return address;
}

function copyOut(codec: { memory: WebAssembly.Memory }, address: number, sizeBytes: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(codec.memory.buffer, address, sizeBytes).slice();
}

/** Position and size of a frame on the canvas, in pixels. */
interface FrameRect {
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
function findFirstGifFrame(bytes: Uint8Array): FrameRect {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const flags = bytes[10]!;
  let at = 13 + (flags & 0x80 ? 3 << (flags & 7) + 1 : 0);
  while (bytes[at] === 0x21) {
    at += 2;
    while (at < bytes.length && bytes[at] !== 0) at += 1 + bytes[at]!;
    at++;
  }
  if (bytes[at] !== 0x2c || at + 10 > bytes.length) throw new ImageError("the file ends before the first frame");
  const [x, y, width, height] = [1, 3, 5, 7].map((offset) => view.getUint16(at + offset, true));
  return { x: x!, y: y!, width: width!, height: height! };
}

/** First frame of an animated WebP file. */
interface WebpFrame extends FrameRect {
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
function extractFirstWebpFrame(bytes: Uint8Array): WebpFrame | undefined {
  const isAnimated = bytes[15] === 0x58 && (bytes[20]! & 2) !== 0; // VP8X with the animation flag
  if (!isAnimated) return undefined;
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 12; at + 8 <= file.length;) {
    const end = at + 8 + file.readUInt32LE(at + 4);
    if (end > file.length) break;
    if (file.toString("latin1", at, at + 4) === "ANMF" && end - at >= 32) {
      const [x, y, width, height] = [8, 11, 14, 17].map((offset) => file.readUIntLE(at + offset, 3));
      const rect = { x: x! * 2, y: y! * 2, width: width! + 1, height: height! + 1 };
      return { ...rect, file: createStillWebp(rect, file.subarray(at + 24, end)) };
    }
    at = end + (end & 1);
  }
  throw new ImageError("the file ends before the first frame");
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
