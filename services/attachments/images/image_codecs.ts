/**
 * Bytes to pixels and back, by WebAssembly alone: imagescript's decoders and JPEG encoder, @jsquash/webp for WebP.
 * Each call has an instance of its own, whose memory goes with it. Only the image Worker calls these: they block.
 */
import decodeWebpFile, { init as initWebp } from "@jsquash/webp/decode.js";
import { orientationOf } from "./exif.ts";
import { firstGifFrame, firstWebpFrame, type FramePlace } from "./first_frame.ts";
import type { ImageFacts } from "./image_type.ts";
import { pictureOf } from "./png_file.ts";
import { ImageFault, type Raster, sizeWithin, turn } from "./raster.ts";

/** Where the code of each codec lies; literal, so that build.ts finds what the executable has to carry. */
const CODEC_FILES = {
  png: () => import.meta.resolve("imagescript/wasm/any/png.wasm"),
  jpeg: () => import.meta.resolve("imagescript/wasm/any/jpeg.wasm"),
  gif: () => import.meta.resolve("imagescript/wasm/any/gif.wasm"),
  webp: () => import.meta.resolve("@jsquash/webp/codec/dec/webp_dec.wasm"),
};

const compiled = new Map<string, Promise<WebAssembly.Module>>();

function codec(name: keyof typeof CODEC_FILES): Promise<WebAssembly.Module> {
  let module = compiled.get(name);
  if (module === undefined) {
    module = Deno.readFile(new URL(CODEC_FILES[name]())).then((code) => WebAssembly.compile(code));
    compiled.set(name, module);
  }
  return module;
}

/** What may be decoded. */
export interface DecodeLimits {
  /** Most pixels of a picture, or of a moving picture's first frame, once decoded. */
  maxPixels: number;
}

/**
 * Reads a picture; of a moving one the first frame.
 *
 * @param facts From `sniffImage` over the same bytes.
 * @param wantedPx Pixels that the longer side has to have in the end: a JPEG is then decoded at a half, quarter or eighth.
 * @throws {ImageFault} when the file is broken or too large; whatever a codec throws.
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
    throw new ImageFault(`${width} × ${height} pixels, more than ${maxPixels / 1e6} million`);
  }
}

interface PngCodec {
  memory: WebAssembly.Memory;
  walloc(sizeBytes: number): number;
  /** Gives the address of the pixels, or a negative error. */
  decode(address: number, sizeBytes: number): number;
  width(): number;
  height(): number;
}

async function decodePng(bytes: Uint8Array): Promise<Raster> {
  const picture = pictureOf(bytes);
  const env = { emscripten_notify_memory_growth: () => {} };
  const png = exportsOf<PngCodec>(await codec("png"), { env });
  const address = place(png, picture);
  const pixels = png.decode(address, picture.length);
  if (pixels < 0) throw new ImageFault(`its pixels cannot be read (${pixels})`);
  const [width, height] = [png.width(), png.height()];
  return { width, height, pixels: copyOf(png, pixels, width * height * 4) };
}

interface JpegCodec {
  memory: WebAssembly.Memory;
  walloc(sizeBytes: number): number;
  /** Bytes of the result last given. */
  wlen(): number;
  /** Gives a handle, or 0 or 1 for errors; the sizes say how small it may be decoded. */
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
  const wanted = sizeWithin(widthPx, heightPx, wantedPx);
  const halvings = Math.min(3, Math.floor(Math.log2(widthPx / wanted.width)));
  checkSize(Math.ceil(widthPx / 2 ** halvings), Math.ceil(heightPx / 2 ** halvings), limits);
  const jpeg = exportsOf<JpegCodec>(await codec("jpeg"));
  const handle = jpeg.decode(place(jpeg, bytes), bytes.length, wanted.width, wanted.height);
  if (handle === 0 || handle === 1) throw new ImageFault("its pixels cannot be read");
  const [width, height] = [jpeg.decode_width(handle), jpeg.decode_height(handle)];
  const samples = copyOf(jpeg, jpeg.decode_buffer(handle), jpeg.wlen());
  const pixels = fromJpegSamples(samples, jpeg.decode_format(handle), width * height);
  return turn({ width, height, pixels }, orientationOf(bytes));
}

/** Formats are 0 for grey, 1 for RGB, 2 for CMYK, all of eight bits. */
function fromJpegSamples(samples: Uint8Array, format: number, count: number): Uint8Array<ArrayBuffer> {
  const channels = [1, 3, 4][format];
  if (channels === undefined || samples.length !== count * channels) {
    throw new ImageFault("its colours are of a kind that cannot be read");
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
 * Writes a picture as JPEG.
 *
 * @param raster Without anything transparent.
 * @param quality 1 to 100.
 */
export async function encodeJpeg({ width, height, pixels }: Raster, quality: number): Promise<Uint8Array<ArrayBuffer>> {
  const jpeg = exportsOf<JpegCodec>(await codec("jpeg"));
  const file = jpeg.encode(place(jpeg, pixels), width, height, quality);
  return copyOf(jpeg, file, jpeg.wlen());
}

interface GifCodec {
  memory: WebAssembly.Memory;
  walloc(sizeBytes: number): number;
  wlen(): number;
  /** Gives a handle, or 0 for an error. */
  decoder_new(address: number, sizeBytes: number, limit: number): number;
  /** Gives a handle, 0 for an error, or 1 after the last frame. */
  decoder_frame(decoder: number): number;
  decoder_frame_buffer(frame: number): number;
}

async function decodeGif(bytes: Uint8Array, facts: ImageFacts, limits: DecodeLimits): Promise<Raster> {
  const frame = firstGifFrame(bytes);
  checkSize(frame.width, frame.height, limits);
  const gif = exportsOf<GifCodec>(await codec("gif"), { env: { push_to_stream: () => {} } });
  const decoder = gif.decoder_new(place(gif, bytes), bytes.length, 0);
  const handle = decoder === 0 ? 0 : gif.decoder_frame(decoder);
  if (handle === 0 || handle === 1) throw new ImageFault("its first frame cannot be read");
  const pixels = copyOf(gif, gif.decoder_frame_buffer(handle), gif.wlen());
  return onCanvas(facts, frame, pixels);
}

async function decodeWebp(bytes: Uint8Array, facts: ImageFacts, limits: DecodeLimits): Promise<Raster> {
  const frame = firstWebpFrame(bytes);
  if (frame !== undefined) checkSize(frame.width, frame.height, limits);
  await initWebp(await codec("webp"));
  const { width, height, data } = await decodeWebpFile(Uint8Array.from(frame?.file ?? bytes).buffer);
  const pixels = new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength);
  return onCanvas(facts, { x: frame?.x ?? 0, y: frame?.y ?? 0, width, height }, pixels);
}

/** Puts a frame where it stands on its canvas; what lies beyond the edge is cut off. */
function onCanvas(facts: ImageFacts, frame: FramePlace, pixels: Uint8Array<ArrayBuffer>): Raster {
  if (pixels.length !== frame.width * frame.height * 4) throw new ImageFault("its frame is not of the size it tells");
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

function exportsOf<Codec>(module: WebAssembly.Module, imports: WebAssembly.Imports = {}): Codec {
  return new WebAssembly.Instance(module, imports).exports as Codec;
}

function place(codec: { memory: WebAssembly.Memory; walloc(sizeBytes: number): number }, bytes: Uint8Array): number {
  const address = codec.walloc(bytes.length);
  if (address === 0) throw new ImageFault("no memory is left for it");
  new Uint8Array(codec.memory.buffer, address, bytes.length).set(bytes);
  return address;
}

function copyOf(codec: { memory: WebAssembly.Memory }, address: number, sizeBytes: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(codec.memory.buffer, address, sizeBytes).slice();
}
