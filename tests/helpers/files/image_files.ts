/** Image files of other kinds than PNG, put together byte by byte, and the ones that Chromium wrote. */

const FIXTURES = new URL("../../fixtures/images/", import.meta.url);

/** An image of four quarters; see tests/fixtures/images. */
export function fixtureImage(
  name: "quarters.jpg" | "quarters_plain.webp" | "quarters_lossy.webp" | "quarters_lossless.webp",
): Uint8Array<ArrayBuffer> {
  return Deno.readFileSync(new URL(name, FIXTURES));
}

/**
 * A GIF with one frame of one color.
 *
 * @param screen Size that the header tells.
 * @param frame Size and place of the frame, which need not fit.
 */
export function makeGif(
  screen: { width: number; height: number },
  frame: { x?: number; y?: number; width: number; height: number; colour?: number[] },
): Uint8Array<ArrayBuffer> {
  const two = (value: number) => [value & 255, value >> 8];
  const { x = 0, y = 0, width, height, colour = [200, 100, 50] } = frame;
  // Codes of two colors: 0, 1, clear 4, end 5. A clear code after every two keeps all codes three bits wide.
  const codes = [4];
  for (let i = 0; i < width * height; i++) codes.push(1, ...(i % 2 === 1 ? [4] : []));
  const data = lsbBits([...codes, 5], 3);
  const blocks: number[] = [];
  for (let at = 0; at < data.length; at += 255) {
    blocks.push(Math.min(255, data.length - at), ...data.slice(at, at + 255));
  }
  return Uint8Array.from([
    ...new TextEncoder().encode("GIF89a"),
    ...two(screen.width),
    ...two(screen.height),
    ...[0x80, 0, 0, 0, 0, 0, ...colour],
    ...[0x21, 0xfe, 2, 0x68, 0x69, 0], // a comment before the frame
    ...[0x2c, ...two(x), ...two(y), ...two(width), ...two(height), 0],
    ...[2, ...blocks, 0, 0x3b],
  ]);
}

function lsbBits(codes: number[], width: number): number[] {
  const bits = codes.flatMap((code) => Array.from({ length: width }, (_, bit) => code >> bit & 1));
  const bytes = new Array<number>(Math.ceil(bits.length / 8)).fill(0);
  bits.forEach((bit, index) => bytes[index >> 3]! |= bit << (index & 7));
  return bytes;
}

/** Puts a block that tells the camera's orientation at the head of a JPEG. */
export function withOrientation(jpeg: Uint8Array, orientation: number): Uint8Array<ArrayBuffer> {
  const exif = [
    ...[0x45, 0x78, 0x69, 0x66, 0, 0],
    ...[0x4d, 0x4d, 0, 42, 0, 0, 0, 8],
    ...[0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0],
  ];
  return Uint8Array.from([0xff, 0xd8, 0xff, 0xe1, 0, exif.length + 2, ...exif, ...jpeg.subarray(2)]);
}

/** A JPEG header that claims any size, without image data. */
export function jpegHeader(width: number, height: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from([
    ...[0xff, 0xd8, 0xff, 0xfe, 0, 4, 0x68, 0x69, 0xff, 0xc0, 0, 17, 8],
    ...[height >> 8, height & 255, width >> 8, width & 255],
    ...[3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1],
  ]);
}

/** Creates a moving WebP of the chunks of a still one: one frame at that place of a canvas. */
export function animatedWebp(
  still: Uint8Array,
  canvas: { width: number; height: number },
  frame: { x: number; y: number; width: number; height: number },
): Uint8Array<ArrayBuffer> {
  const three = (value: number) => [value & 255, value >> 8 & 255, value >> 16];
  const four = (value: number) => [...three(value & 0xffffff), value >>> 24];
  const chunk = (type: string, body: number[]) => [
    ...new TextEncoder().encode(type),
    ...four(body.length),
    ...body,
    ...body.length % 2 === 1 ? [0] : [],
  ];
  const pictures: number[] = [];
  const view = new DataView(still.buffer, still.byteOffset);
  for (let at = 12; at < still.length;) {
    const type = new TextDecoder().decode(still.subarray(at, at + 4));
    const end = at + 8 + view.getUint32(at + 4, true);
    if (["VP8 ", "VP8L", "ALPH"].includes(type)) pictures.push(...chunk(type, [...still.subarray(at + 8, end)]));
    at = end + end % 2;
  }
  const place = [frame.x / 2, frame.y / 2, frame.width - 1, frame.height - 1, 100].flatMap(three);
  const body = [
    ...new TextEncoder().encode("WEBP"),
    ...chunk("VP8X", [0x12, 0, 0, 0, ...three(canvas.width - 1), ...three(canvas.height - 1)]),
    ...chunk("ANIM", [0, 0, 0, 0, 0, 0]),
    ...chunk("ANMF", [...place, 0, ...pictures]),
  ];
  return Uint8Array.from([...new TextEncoder().encode("RIFF"), ...four(body.length), ...body]);
}
