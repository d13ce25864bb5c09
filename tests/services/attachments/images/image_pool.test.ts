import { deflateSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { openImagePool } from "../../../../services/attachments/images/image_pool.ts";
import { Sandbox } from "../../../../services/platform/sandbox/sandbox.ts";
import { sniffImage } from "../../../../services/attachments/images/image_header.ts";
import {
  animatedWebp,
  fixtureImage,
  jpegHeader,
  makeGif,
  withOrientation,
} from "../../../helpers/files/image_files.ts";
import { listDescendants } from "../../../helpers/processes/proc.ts";
import {
  makePng,
  makeRgbaPng,
  pngChunk,
  pngFile,
  pngHeader,
  type PngLayout,
  type PngPixels,
  readPng,
} from "../../../helpers/files/png_files.ts";

const PICTURES = 1_000;

const sandbox = new Sandbox();
const pool = openImagePool(sandbox, { kind: { maxChildren: 2 } });
afterAll(() => sandbox.close());

const RGBA: PngLayout = { colourType: 6, bitDepth: 8 };

function pixelAt({ width, pixels }: PngPixels, x: number, y: number): number[] {
  return [...pixels.subarray((y * width + x) * 4, (y * width + x) * 4 + 4)];
}

function expectNear(found: number[], expected: number[], tolerance: number): void {
  found.forEach((value, index) =>
    expect(Math.abs(value - expected[index]!), `${found}`).toBeLessThanOrEqual(tolerance)
  );
}

/** Centers of the four quarters of the fixtures. */
const QUARTERS = [[12, 8, 255, 0, 0], [36, 8, 0, 255, 0], [12, 24, 0, 0, 255], [36, 24, 255, 255, 255]] as const;

describe("reading", () => {
  const layouts: PngLayout[] = [
    ...([1, 2, 4, 8, 16] as const).map((bitDepth) => ({ colourType: 0, bitDepth }) as const),
    ...([1, 2, 4, 8] as const).map((bitDepth) => ({ colourType: 3, bitDepth }) as const),
    ...([2, 4, 6] as const).flatMap((colourType) => ([8, 16] as const).map((bitDepth) => ({ colourType, bitDepth }))),
  ];
  test.each(layouts.flatMap((layout) => [layout, { ...layout, isInterlaced: true }]))(
    "a PNG of type $colourType, $bitDepth bits, interlaced $isInterlaced, keeps its pixels",
    { tags: ["P05"] },
    async (layout) => {
      const max = 2 ** layout.bitDepth - 1;
      const channels = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }[layout.colourType];
      const palette = Array.from({ length: Math.min(max + 1, 16) }, (_, i) => [i * 10, 255 - i * 9, i * 3]);
      const samplesAt = (x: number, y: number) =>
        Array.from(
          { length: channels },
          (_, channel) =>
            layout.colourType === 3
              ? (x + y) % palette.length
              : Math.floor((x * 7 + y * 13 + channel * 31) % 256 / 255 * max),
        );
      const file = makePng({
        width: 13,
        height: 11,
        samplesAt,
        ...layout,
        ...layout.colourType === 3 ? { palette } : {},
      });
      const raster = readPng(await pool.toPng(file));
      expect([raster.width, raster.height]).toEqual([13, 11]);
      for (let y = 0; y < 11; y++) {
        for (let x = 0; x < 13; x++) {
          const samples = samplesAt(x, y).map((sample) => Math.floor(sample * 255 / max));
          const [grey] = samples;
          const expected = {
            0: [grey!, grey!, grey!, 255],
            2: [...samples, 255],
            3: [...palette[samplesAt(x, y)[0]!] ?? [], 255],
            4: [grey!, grey!, grey!, samples[1]!],
            6: samples,
          }[layout.colourType];
          expectNear(pixelAt(raster, x, y), expected, 1);
        }
      }
    },
  );

  test.each(
    [
      ["quarters.jpg", 255],
      ["quarters_plain.webp", 255],
      ["quarters_lossy.webp", 0],
      ["quarters_lossless.webp", 0],
    ] as const,
  )("converts %s to PNG", async (name, lastAlpha) => {
    const raster = readPng(await pool.toPng(fixtureImage(name)));
    for (const [x, y, ...colour] of QUARTERS.slice(0, 3)) expectNear(pixelAt(raster, x, y), [...colour, 255], 12);
    expect(pixelAt(raster, 36, 24)[3]).toBe(lastAlpha);
  });

  test("takes the first frame of an animation at its position on the canvas", async () => {
    const gif = makeGif({ width: 6, height: 5 }, { x: 2, y: 1, width: 3, height: 2 });
    const webp = animatedWebp(
      fixtureImage("quarters_plain.webp"),
      { width: 60, height: 40 },
      { x: 2, y: 4, width: 48, height: 32 },
    );
    const [first, second] = await Promise.all(
      [pool.toPng(gif), pool.toPng(webp)].map(async (png) => readPng(await png)),
    );
    expect([first!.width, first!.height]).toEqual([6, 5]);
    expect(pixelAt(first!, 2, 1)).toEqual([200, 100, 50, 255]);
    expect(pixelAt(first!, 1, 1)[3]).toBe(0);
    expect(pixelAt(first!, 5, 2)[3]).toBe(0);
    expect([second!.width, second!.height]).toEqual([60, 40]);
    expectNear(pixelAt(second!, 14, 12), [255, 0, 0, 255], 12);
    expect(pixelAt(second!, 1, 3)[3]).toBe(0);
  });

  /** Which quarter is at the top left and which at the top right. Exif 2.32, tag 0x0112 */
  test.each([
    [1, 0, 1],
    [2, 1, 0],
    [3, 3, 2],
    [4, 2, 3],
    [5, 0, 2],
    [6, 2, 0],
    [7, 3, 1],
    [8, 1, 3],
  ])("applies JPEG orientation %i", async (orientation, topLeft, topRight) => {
    const raster = readPng(await pool.toPng(withOrientation(fixtureImage("quarters.jpg"), orientation)));
    const [width, height] = orientation > 4 ? [32, 48] : [48, 32];
    expect([raster.width, raster.height]).toEqual([width, height]);
    expectNear(pixelAt(raster, width / 4, height / 4), [...QUARTERS[topLeft]!.slice(2), 255], 12);
    expectNear(pixelAt(raster, width * 3 / 4, height / 4), [...QUARTERS[topRight]!.slice(2), 255], 12);
  });
});

describe("resizing", () => {
  test("averages the covered area, weighted by alpha", async () => {
    const stripes = makeRgbaPng(6, 2, (x) => x % 2 === 0 ? [200, 0, 0, 255] : [0, 100, 0, 255]);
    const mean = readPng(await pool.resizePng(stripes, { widthPx: 3 }));
    expect([mean.width, mean.height]).toEqual([3, 1]);
    expect(pixelAt(mean, 1, 0)).toEqual([100, 50, 0, 255]);
    const hidden = makeRgbaPng(2, 1, (x) => x === 0 ? [10, 20, 30, 255] : [255, 255, 255, 0]);
    expect(pixelAt(readPng(await pool.resizePng(hidden, { widthPx: 1 })), 0, 0)).toEqual([10, 20, 30, 128]);
    const thirds = makeRgbaPng(3, 1, (x) => [x * 90, 0, 0, 255]);
    const halves = readPng(await pool.resizePng(thirds, { widthPx: 2 }));
    expect([pixelAt(halves, 0, 0)[0], pixelAt(halves, 1, 0)[0]]).toEqual([30, 150]);
  });

  test.each([
    [64, 16, 16, 4],
    [64, 16, 63, 16],
    [64, 16, 64, 16],
    [64, 16, 2048, 64],
    [16, 900, 1, 56],
    [900, 1, 30, 1],
  ])("resizes %i × %i to width %i in proportion, and never enlarges", async (width, height, widthPx, expected) => {
    const file = await pool.resizePng(makeRgbaPng(width, height, () => [9, 9, 9, 255]), { widthPx });
    const facts = sniffImage(file)!;
    expect(facts.widthPx).toBe(Math.min(width, widthPx));
    if (widthPx < width) expect(facts.heightPx).toBe(expected);
    else expect(facts.heightPx).toBe(height);
  });

  test("resizes a JPEG to the exact width in any orientation", async () => {
    const wide = await pool.toJpeg(makeRgbaPng(800, 200, (x) => [x & 255, 9, 9, 255]), { maxPx: 2000 });
    expect(sniffImage(wide)).toMatchObject({ type: "image/jpeg", widthPx: 800, heightPx: 200 });
    expect(sniffImage(await pool.resizePng(wide, { widthPx: 90 }))).toMatchObject({ widthPx: 90, heightPx: 23 });
    const turned = await pool.resizePng(withOrientation(wide, 6), { widthPx: 90 });
    expect(sniffImage(turned)).toMatchObject({ widthPx: 90, heightPx: 360 });
    expect(sniffImage(await pool.toPng(wide, { maxPx: 100 }))).toMatchObject({ widthPx: 100, heightPx: 25 });
  });

  test("makes transparent pixels white in a JPEG", async () => {
    const jpeg = await pool.toJpeg(fixtureImage("quarters_lossy.webp"), { maxPx: 1568 });
    const raster = readPng(await pool.toPng(jpeg));
    for (const [x, y, ...colour] of QUARTERS) expectNear(pixelAt(raster, x, y), [...colour, 255], 12);
  });

  test("writes only pixels to the new file", async () => {
    const note = pngChunk("tEXt", new TextEncoder().encode("chara\0c2VjcmV0"));
    const png = await pool.toPng(
      makePng({ width: 2, height: 2, ...RGBA, samplesAt: () => [1, 2, 3, 255], before: [note] }),
    );
    const text = new TextDecoder("latin1").decode(png);
    expect(text).not.toContain("tEXt");
    expect(text).not.toContain("chara");
  });
});

describe("rejecting", () => {
  const pixels = pngChunk("IDAT", deflateSync(new Uint8Array(4 * 17)));
  const end = pngChunk("IEND");
  const header = (width: number, height: number, layout = RGBA) => pngChunk("IHDR", pngHeader(width, height, layout));
  const wrongSum = pixels.slice();
  wrongSum[wrongSum.length - 1]! ^= 1;
  const tooLong = pixels.slice();
  new DataView(tooLong.buffer).setUint32(0, 0x7fffffff);

  const broken: [string, Uint8Array][] = [
    ["2^31 pixels wide", pngFile(header(2 ** 31, 1), pixels, end)],
    ["2^31 - 1 by 2^31 - 1 pixels", pngFile(header(2 ** 31 - 1, 2 ** 31 - 1), pixels, end)],
    [
      "30,000 × 30,000 pixels of one colour",
      pngFile(
        header(30_000, 30_000, { colourType: 0, bitDepth: 1 }),
        pngChunk("IDAT", deflateSync(new Uint8Array(30_000 * 3751))),
        end,
      ),
    ],
    ["a chunk longer than the file", pngFile(header(4, 4), tooLong, end)],
    ["a wrong check sum", pngFile(header(4, 4), wrongSum, end)],
    ["no IEND", pngFile(header(4, 4), pixels)],
    ["no IDAT", pngFile(header(4, 4), end)],
    ["too few pixels", pngFile(header(40, 40), pixels, end)],
    ["two headers", pngFile(header(4, 4), header(4, 4), pixels, end)],
    ["no palette", pngFile(header(4, 4, { colourType: 3, bitDepth: 8 }), pixels, end)],
    [
      "a palette after its pixels",
      pngFile(header(4, 4, { colourType: 3, bitDepth: 8 }), pixels, pngChunk("PLTE", new Uint8Array(3)), end),
    ],
    [
      "a palette of a length that is none",
      pngFile(header(4, 4, { colourType: 3, bitDepth: 8 }), pngChunk("PLTE", new Uint8Array(4)), pixels, end),
    ],
    ["pixels that are no deflate stream", pngFile(header(4, 4), pngChunk("IDAT", new Uint8Array(99).fill(7)), end)],
    [
      "a row filter that is none",
      pngFile(header(4, 4), pngChunk("IDAT", deflateSync(new Uint8Array(4 * 17).fill(9))), end),
    ],
    ["a critical chunk of an unknown kind", pngFile(header(4, 4), pngChunk("ABCD"), pixels, end)],
    ["100,000 chunks", pngFile(header(4, 4), ...Array.from({ length: 100_000 }, () => pngChunk("tEXt")), pixels, end)],
    ["a JPEG's header alone", jpegHeader(600, 400)],
    ["a JPEG of 65,500 × 65,500 pixels", jpegHeader(65_500, 65_500)],
    ["a JPEG cut in the middle of its tables", fixtureImage("quarters.jpg").subarray(0, 500)],
    ["a GIF whose frame is 65,535 × 65,535 pixels", frameOf(65_535)],
    ["a GIF that ends before its frame", makeGif({ width: 4, height: 4 }, { width: 4, height: 4 }).subarray(0, 20)],
    ["a WebP cut off", fixtureImage("quarters_lossy.webp").subarray(0, 300)],
    ["a moving WebP without a frame", noFrame()],
    ["text", new TextEncoder().encode("<svg/>".padEnd(60))],
    ["nothing", new Uint8Array()],
  ];

  test.each(broken)("rejects %s, and reads the next image", { tags: ["P05"] }, async (_name, bytes) => {
    await expect(pool.toPng(bytes)).rejects.toMatchObject({ code: "unprocessable" });
    await expect(pool.toJpeg(bytes, { maxPx: 100 })).rejects.toMatchObject({ code: "unprocessable" });
    expect(sniffImage(await pool.toPng(makeRgbaPng(2, 2, () => [0, 0, 0, 255])))).toBeDefined();
  });

  test("doesn't inflate text and profile chunks", { tags: ["P05"] }, async () => {
    const bomb = deflateSync(new Uint8Array(64 * 1024 * 1024));
    const before = [pngChunk("iCCP", joinBytes("p\0\0", bomb)), pngChunk("zTXt", joinBytes("chara\0\0", bomb))];
    const file = makePng({ width: 2, height: 2, ...RGBA, samplesAt: () => [1, 2, 3, 255], before });
    expect(pixelAt(readPng(await pool.toPng(file)), 0, 0)).toEqual([1, 2, 3, 255]);
  });

  test(`memory stays flat while ${PICTURES} images of impossible sizes are rejected`, { tags: ["P05"] }, async () => {
    const before = Deno.memoryUsage().rss;
    for (let refusedCount = 0; refusedCount < PICTURES; refusedCount += 4) {
      const refused = broken.slice(0, 4).map(([, bytes]) => pool.toPng(bytes).catch(({ code }) => code));
      expect(await Promise.all(refused)).toEqual(Array(4).fill("unprocessable"));
    }
    expect(Deno.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
  });

  function frameOf(size: number): Uint8Array {
    const gif = makeGif({ width: 4, height: 4 }, { width: 4, height: 4 });
    const at = gif.indexOf(0x2c);
    new DataView(gif.buffer).setUint16(at + 5, size, true);
    new DataView(gif.buffer).setUint16(at + 7, size, true);
    return gif;
  }

  function noFrame(): Uint8Array {
    const still = fixtureImage("quarters_plain.webp");
    return animatedWebp(still, { width: 48, height: 32 }, { x: 0, y: 0, width: 48, height: 32 }).subarray(0, 60);
  }

  function joinBytes(text: string, bytes: Uint8Array): Uint8Array {
    return Uint8Array.from([...new TextEncoder().encode(text), ...bytes]);
  }
});

describe("children", () => {
  const picture = makeRgbaPng(2, 2, () => [0, 0, 0, 255]);
  /** A child that does what the options of a pool name as its maximum of pixels. */
  const url = new URL("../../../helpers/processes/image_test_child.ts", import.meta.url);

  function openPool(limits: Parameters<typeof openImagePool>[1] & object) {
    const own = new Sandbox();
    const opened = openImagePool(own, { ...limits, kind: { url, maxChildren: 1, ...limits.kind } });
    return { ...opened, close: () => own.close(), [Symbol.asyncDispose]: () => own.close() };
  }

  test("an image that takes too long fails alone", async () => {
    await using stuck = openPool({ limits: { timeoutMs: 200, maxPixels: 1_000 } });
    const first = stuck.toPng(picture);
    await expect(first).rejects.toMatchObject({ code: "unprocessable", message: /it took longer than 1 s/ });
    expect(sniffImage(await pool.toPng(picture))).toMatchObject({ widthPx: 2 });
  });

  test("a crash fails its image alone", async () => {
    await using dying = openPool({ limits: { maxPixels: 2_000 } });
    const [first, second] = await Promise.allSettled([dying.toPng(picture), dying.toPng(picture)]);
    for (const each of [first, second]) {
      expect(each).toMatchObject({ reason: { code: "unprocessable", message: expect.stringContaining("ended") } });
    }
  });

  test("limits queued images by number and size, and rejects them when the sandbox closes", async () => {
    const code = { code: "not_available" };
    const few = openPool({ limits: { maxQueued: 1, maxPixels: 3_000 } });
    const held = [few.toPng(picture), few.toPng(picture)];
    await expect(few.toPng(picture)).rejects.toMatchObject({ ...code, retryAfterSeconds: 1 });
    const ended = Promise.allSettled(held);
    await few.close();
    for (const each of await ended) expect(each).toMatchObject({ reason: code });
    await expect(few.toPng(picture)).rejects.toMatchObject(code);
    const small = openPool({ limits: { maxQueuedBytes: picture.length, maxPixels: 3_000 } });
    const kept = Promise.allSettled([small.toPng(picture), small.toPng(picture)]);
    await expect(small.toPng(picture)).rejects.toMatchObject(code);
    await small.close();
    for (const each of await kept) expect(each).toMatchObject({ reason: code });
  });

  test("an image that is refused by its header starts no child", async () => {
    await using own = new Sandbox();
    const before = listDescendants(Deno.pid);
    await expect(openImagePool(own).toPng(new Uint8Array(40))).rejects.toMatchObject({ code: "unprocessable" });
    expect(listDescendants(Deno.pid, before)).toEqual([]);
  });
});
