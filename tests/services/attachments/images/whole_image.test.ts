import { expect, test } from "vitest";
import type { ImageType } from "../../../../services/attachments/images/image_header.ts";
import { checkImage, ImageCheck } from "../../../../services/attachments/images/whole_image.ts";
import { plainPng } from "../../../helpers/files/cards.ts";
import { fixtureImage, makeGif, withOrientation } from "../../../helpers/files/image_files.ts";

const animatedGif = () => {
  const one = makeGif({ width: 5, height: 6 }, { width: 5, height: 6 });
  const headBytes = 13 + 6; // with its color table
  return Uint8Array.from([...one.subarray(0, -1), ...one.subarray(headBytes)]);
};
const FILES: [string, ImageType, Uint8Array][] = [
  ["PNG", "image/png", plainPng(20, 30)],
  ["JPEG", "image/jpeg", fixtureImage("quarters.jpg")],
  ["JPEG with Exif", "image/jpeg", withOrientation(fixtureImage("quarters.jpg"), 6)],
  ["GIF", "image/gif", makeGif({ width: 5, height: 6 }, { width: 5, height: 6 })],
  ["animated GIF", "image/gif", animatedGif()],
  ["lossy WebP", "image/webp", fixtureImage("quarters_lossy.webp")],
  ["lossless WebP", "image/webp", fixtureImage("quarters_lossless.webp")],
  ["extended WebP", "image/webp", fixtureImage("quarters_plain.webp")],
];

test.each(FILES)("detects a truncated %s, in one piece or byte by byte", { tags: ["P05"] }, (_, type, bytes) => {
  checkImage(bytes, type);
  const step = Math.max(1, Math.floor(bytes.length / 400));
  // The last byte of a WebP may be padding.
  const isPadded = type === "image/webp";
  for (let length = 1; length < bytes.length - (isPadded ? 2 : 0); length += step) {
    expect(() => checkImage(bytes.subarray(0, length), type), `${length}`).toThrow(
      expect.objectContaining({ code: "unprocessable" }),
    );
  }
  const check = new ImageCheck(type);
  for (const byte of bytes) check.push(Uint8Array.of(byte));
  check.end();
});

test.each(FILES)("accepts bytes after the end of a %s", (_, type, bytes) => {
  checkImage(Uint8Array.from([...bytes, 1, 2, 3]), type);
});

test("detects a flipped bit in the pixels of a PNG", { tags: ["P05"] }, () => {
  const png = plainPng(20, 30);
  png[png.length - 20]! ^= 1;
  expect(() => checkImage(png, "image/png")).toThrow("checksum");
});

test("rejects oversized chunks and segments without allocating memory", { tags: ["P05"] }, () => {
  const png = plainPng();
  new DataView(png.buffer).setUint32(33, 0xffffffff);
  expect(() => checkImage(png, "image/png")).toThrow("Can't use the image");
  const webp = fixtureImage("quarters_lossy.webp");
  new DataView(webp.buffer).setUint32(16, 0xfffffff0, true);
  expect(() => checkImage(webp, "image/webp")).toThrow("Can't use the image");
});
