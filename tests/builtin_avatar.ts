/**
 * Draws the portrait of the built-in character from shapes and writes it as services/characters/builtin_avatar.ts:
 * `deno run --allow-write=services tests/builtin_avatar.ts`. Compiled into the code, it needs no file beside the program.
 */
import { Buffer } from "node:buffer";
import { deflateSync } from "node:zlib";
import { createChunk, joinPng } from "../services/attachments/images/png.ts";

/** Size in pixels: two by three, as portraits of cards are. */
export const WIDTH_PX = 400;
export const HEIGHT_PX = 600;

type Colour = [red: number, green: number, blue: number];
/** Distance from the edge of a shape in pixels, negative inside. */
type Shape = (x: number, y: number) => number;

const ellipse = (cx: number, cy: number, rx: number, ry: number, turn = 0): Shape => {
  const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
  return (x, y) => {
    const [dx, dy] = [x - cx, y - cy];
    const [u, v] = [(dx * cos + dy * sin) / rx, (dy * cos - dx * sin) / ry];
    const length = Math.hypot(u, v);
    // First-order distance: the value over the length of its gradient.
    return length < 1e-6 ? -Math.min(rx, ry) : (length - 1) * length / Math.hypot(u / rx, v / ry);
  };
};
const box = (cx: number, cy: number, w: number, h: number, round: number): Shape => (x, y) => {
  const [qx, qy] = [Math.abs(x - cx) - w / 2 + round, Math.abs(y - cy) - h / 2 + round];
  return Math.hypot(Math.max(qx, 0), Math.max(qy, 0)) + Math.min(Math.max(qx, qy), 0) - round;
};
const triangle = (...corners: [number, number][]): Shape => (x, y) =>
  Math.max(...corners.map(([ax, ay], i) => {
    const [bx, by] = corners[(i + 1) % corners.length]!;
    return ((x - ax) * (by - ay) - (y - ay) * (bx - ax)) / -Math.hypot(bx - ax, by - ay);
  }));
const both = (a: Shape, b: Shape): Shape => (x, y) => Math.max(a(x, y), b(x, y));
const without = (a: Shape, b: Shape): Shape => (x, y) => Math.max(a(x, y), -b(x, y));
const mirrored = (shape: Shape): Shape => (x, y) => shape(x < 200 ? x : 400 - x, y);

const WALL: Colour = [38, 52, 74];
const body = ellipse(200, 408, 122, 158);
/** From the back to the front. */
const LAYERS: [Shape, Colour, number?][] = [
  [ellipse(200, 250, 210, 230), [66, 80, 104], 0.55],
  [ellipse(200, 250, 150, 170), [104, 108, 118], 0.5],
  [(x, y) => box(200, 60, 1000, 8, 0)(x, y), [30, 42, 61]],
  // the armchair
  [box(200, 460, 356, 470, 120), [122, 52, 58]],
  [box(200, 470, 300, 430, 96), [148, 66, 70]],
  [mirrored(ellipse(120, 400, 5, 5)), [122, 52, 58]],
  [mirrored(ellipse(112, 470, 5, 5)), [122, 52, 58]],
  // the owl
  [mirrored(triangle([118, 160], [122, 262], [190, 214])), [104, 76, 52]],
  [ellipse(200, 272, 112, 92), [124, 92, 62]],
  [body, [124, 92, 62]],
  [both(body, ellipse(200, 440, 84, 128)), [226, 204, 166]],
  ...[380, 420, 460, 500].flatMap((y, row) =>
    (row % 2 === 0 ? [-44, 0, 44] : [-22, 22]).map((x): [Shape, Colour] => [
      without(ellipse(200 + x, y, 14, 12), ellipse(200 + x, y - 7, 14, 12)),
      [176, 138, 96],
    ])
  ),
  [mirrored(ellipse(92, 420, 34, 118, 0.16)), [96, 70, 48]],
  [mirrored(ellipse(151, 270, 56, 56)), [240, 226, 200]],
  [mirrored(ellipse(151, 270, 40, 40)), [236, 164, 60]],
  [mirrored(ellipse(151, 270, 26, 26)), [28, 24, 28]],
  [ellipse(160, 259, 8, 8), [255, 252, 244]],
  [ellipse(258, 259, 8, 8), [255, 252, 244]],
  [triangle([182, 290], [200, 334], [218, 290]), [228, 142, 48]],
  // a bow tie, and feet on the cushion
  [mirrored(triangle([146, 336], [146, 382], [200, 359])), [70, 140, 138]],
  [ellipse(200, 359, 13, 13), [52, 112, 112]],
  [box(200, 590, 330, 90, 34), [166, 78, 80]],
  ...[-14, 0, 14].map((x): [Shape, Colour] => [mirrored(ellipse(158 + x, 552, 9, 17)), [228, 142, 48]]),
  [mirrored(box(26, 500, 84, 260, 40)), [134, 58, 63]],
  [mirrored(ellipse(30, 396, 30, 30)), [166, 78, 80]],
];

/** Returns the image's rows as RGB, without filter bytes. */
export function drawAvatar(): Uint8Array {
  const pixels = new Uint8Array(WIDTH_PX * HEIGHT_PX * 3);
  for (let y = 0; y < HEIGHT_PX; y++) {
    for (let x = 0; x < WIDTH_PX; x++) {
      let [red, green, blue] = WALL;
      for (const [shape, colour, opacity = 1] of LAYERS) {
        const cover = Math.min(1, Math.max(0, 0.5 - shape(x + 0.5, y + 0.5))) * opacity;
        if (cover === 0) continue;
        red += (colour[0] - red) * cover;
        green += (colour[1] - green) * cover;
        blue += (colour[2] - blue) * cover;
      }
      pixels.set([red, green, blue].map((value) => Math.min(252, Math.round(value / 4) * 4)), (y * WIDTH_PX + x) * 3);
    }
  }
  return pixels;
}

function pngOf(pixels: Uint8Array): Uint8Array {
  const stride = WIDTH_PX * 3;
  const rows = new Uint8Array((stride + 1) * HEIGHT_PX);
  for (let y = 0; y < HEIGHT_PX; y++) {
    rows[y * (stride + 1)] = 2; // "Up": a row is what differs from the one above it
    for (let i = 0; i < stride; i++) {
      rows[y * (stride + 1) + 1 + i] = pixels[y * stride + i]! - (y === 0 ? 0 : pixels[(y - 1) * stride + i]!);
    }
  }
  const header = new Uint8Array(13);
  new DataView(header.buffer).setUint32(0, WIDTH_PX);
  new DataView(header.buffer).setUint32(4, HEIGHT_PX);
  header.set([8, 2], 8);
  const data = deflateSync(rows, { level: 9 });
  return joinPng([createChunk("IHDR", header), createChunk("IDAT", data), createChunk("IEND", new Uint8Array())]);
}

if (import.meta.main) {
  const text = Buffer.from(pngOf(drawAvatar())).toString("base64").replace(/.{110}/g, "$&\n");
  const path = new URL("../services/characters/builtin_avatar.ts", import.meta.url);
  await Deno.writeTextFile(
    path,
    `/** The picture of the built-in character: a PNG in base64, drawn by tests/builtin_avatar.ts. */\n` +
      `export const BUILTIN_AVATAR = \`\n${text}\n\`;\n`,
  );
}
