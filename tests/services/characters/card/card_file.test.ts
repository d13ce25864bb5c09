import { Buffer } from "node:buffer";
import { join } from "node:path";
import { strFromU8, strToU8, type Unzipped, unzipSync, type Zippable, zipSync } from "fflate";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseCard } from "../../../../services/characters/card/card.ts";
import { CardCodec, type CardFile, toReadCard } from "../../../../services/characters/card/card_codec.ts";
import { CardFiles, createCharx } from "../../../../services/characters/charx/charx.ts";
import { Sandbox } from "../../../../services/platform/sandbox/sandbox.ts";
import { writeZip } from "../../../../services/storage/zip/zip_writer.ts";
import {
  exifComment,
  jpegWithExif,
  plainPng,
  sillyTavernCard,
  sillyTavernPng,
  webpWithExif,
} from "../../../helpers/files/cards.ts";
import { fixtureImage, makeGif } from "../../../helpers/files/image_files.ts";

const bytes = (value: string | Uint8Array) => new Uint8Array(typeof value === "string" ? Buffer.from(value) : value);
const card = {
  spec: "chara_card_v3",
  spec_version: "3.0",
  data: {
    ...sillyTavernCard("Fox").data,
    assets: [
      { type: "emotion", uri: "embeded://assets/emotion/images/joy.png", name: "joy", ext: "png" },
      { type: "icon", uri: "embeded://assets/icon/images/face.png", name: "main", ext: "png" },
    ],
  },
};
const zip = (files: Zippable) => bytes(zipSync(files));
const charx = () =>
  zip({
    "evil/card.json": strToU8('{"name":"Wrong","description":""}'),
    "../../../etc/passwd": strToU8("x"),
    "card.json": strToU8(JSON.stringify(card)),
    "assets/icon/images/face.png": plainPng(3, 3),
  });
const refused = { code: "unprocessable" };

const sandbox = new Sandbox();
afterAll(() => sandbox.close());
let folder: string;
beforeAll(async () => void (folder = await Deno.makeTempDir()));
afterAll(() => Deno.remove(folder, { recursive: true }));

/** Reads a file on disk; `unpacked` returns its other files, copied in their stored form. */
async function readCardFile(content: Uint8Array): Promise<CardFile & { unpacked: () => Promise<Unzipped> }> {
  const path = join(folder, crypto.randomUUID());
  await Deno.writeFile(path, content);
  const read = await new CardCodec(sandbox).readFile(path);
  return {
    ...read,
    async unpacked() {
      using files = await CardFiles.open(path, read.others);
      return unzipSync(await joined(writeZip(files!.toPackedEntries(), { isLarge: false })));
    },
  };
}
const joined = async (pieces: AsyncIterable<Uint8Array>) => bytes(Buffer.concat(await Array.fromAsync(pieces)));

test("a file is recognized by its content: PNG, JSON, CHARX, and nothing else", async () => {
  const st = sillyTavernPng(sillyTavernCard("Fox"));
  expect(await readCardFile(st)).toMatchObject({ card: { data: { name: "Fox" } }, avatarPng: st });
  const json = await readCardFile(bytes(`\uFEFF \n${JSON.stringify(sillyTavernCard("Fox"))}`));
  expect(json.card.data.name).toBe("Fox");
  expect(json.avatarPng).toBeUndefined();
  await expect(readCardFile(bytes("RIFF1234WEBPVP8 "))).rejects.toMatchObject(refused);
  await expect(readCardFile(bytes("<html>"))).rejects.toMatchObject(refused);
  await expect(readCardFile(bytes("[1]"))).rejects.toMatchObject(refused);
  await expect(readCardFile(bytes(""))).rejects.toMatchObject(refused);
});

test("a CHARX contains its card, its main icon and its other files, but none from outside", async () => {
  const { card: read, avatarPng, unpacked } = await readCardFile(charx());
  expect(read.data.name).toBe("Fox");
  expect(avatarPng).toEqual(plainPng(3, 3));
  expect(read.data.assets).toEqual(card.data.assets);
  expect(await unpacked()).toEqual({ "evil/card.json": strToU8('{"name":"Wrong","description":""}') });
});

test("a card's only icon is its image", async () => {
  const lone = { "card.json": strToU8(JSON.stringify(card)), "assets/icon/images/face.png": plainPng(3, 3) };
  const { card: read, others } = await readCardFile(zip(lone));
  expect(others).toEqual([]);
  expect(read.data.assets).toEqual([
    card.data.assets[0],
    { type: "icon", uri: "ccdefault:", name: "main", ext: "png" },
  ]);
});

test("a CHARX after a JPEG is found from the end, and without its own icon the JPEG is its image", async () => {
  const head = new Uint8Array([0xff, 0xd8, 0xff, 0xe0, 1, 2, 3, 0xff, 0xd9]);
  const inside = zip({ "card.json": strToU8(JSON.stringify({ ...card, data: { ...card.data, assets: [] } })) });
  const { card: read, avatarImage } = await readCardFile(new Uint8Array(Buffer.concat([head, inside])));
  expect(read.data.name).toBe("Fox");
  expect(avatarImage).toEqual(head);
});

test("a broken CHARX, or one with false sizes, is rejected", async () => {
  await expect(readCardFile(zip({ "other.json": strToU8("{}") }))).rejects.toMatchObject(refused);
  await expect(readCardFile(charx().slice(0, -30))).rejects.toMatchObject(refused);
  await expect(readCardFile(zip({ "card.json": strToU8("nonsense") }))).rejects.toMatchObject(refused);
  const large = zip({ "card.json": [new Uint8Array(200 * 1024 * 1024), { level: 1 }] });
  const lying = large.slice();
  await expect(readCardFile(large)).rejects.toMatchObject({ code: "too_large" });
  // The directory says 100 bytes, the stream has 200 MB: no more than declared is ever unpacked.
  const view = new DataView(lying.buffer);
  const directory = view.getUint32(lying.length - 6, true);
  view.setUint32(directory + 24, 100, true);
  await expect(readCardFile(lying)).rejects.toMatchObject(refused);
  const crowded = zip(Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`f${i}`, new Uint8Array()])));
  await expect(readCardFile(crowded)).rejects.toMatchObject({ code: "too_large" });
});

test("a CHARX that Parlor writes contains card and image, and reads back unchanged", async () => {
  const before = parseCard({ ...card, data: { ...card.data, assets: undefined } });
  const png = plainPng(3, 3);
  const plan = await new CardCodec(sandbox).planCharx(toReadCard(before), {}, png, undefined);
  const made = await joined((await createCharx(plan, png)).stream());
  const files = unzipSync(made);
  expect(Object.keys(files)).toEqual(["card.json", "assets/icon/images/main.png"]);
  expect(JSON.parse(strFromU8(files["card.json"]!)).data.assets).toEqual([
    { type: "icon", uri: "embeded://assets/icon/images/main.png", name: "main", ext: "png" },
  ]);
  const { card: read, avatarPng } = await readCardFile(made);
  expect(avatarPng).toEqual(plainPng(3, 3));
  expect(read.data.name).toBe("Fox");
});

const jpeg = fixtureImage("quarters.jpg");
const webp = fixtureImage("quarters_lossy.webp");
const text = JSON.stringify(sillyTavernCard("Füchsin 日本"));
const digits = [...new TextEncoder().encode(text)].join(",");
const utf16 = new Uint8Array(Buffer.from(text, "utf16le"));

test.each<[string, Uint8Array]>([
  ["JSON in a WebP", webpWithExif(webp, exifComment(text))],
  ["JSON in a JPEG", jpegWithExif(jpeg, exifComment(text))],
  ["digits, as SillyTavern wrote what is not ASCII", webpWithExif(webp, exifComment(digits))],
  ["letters of 16 bits", jpegWithExif(jpeg, exifComment(utf16, "UNICODE\0"))],
  [
    "base64 and no word of what it is",
    webpWithExif(webp, exifComment(Buffer.from(text).toString("base64"), "")),
  ],
])("reads a card in the comment of an image's Exif block, with the image itself: %s", async (_, content) => {
  const { card: read, avatarImage, avatarPng, others } = await readCardFile(content);
  expect(read.data.name).toMatch(/^F.chsin/);
  expect([avatarImage, avatarPng, others]).toEqual([content, undefined, undefined]);
});

test("distinguishes a JPEG, WebP or GIF without a card from other files", async () => {
  const noCard = { code: "unprocessable", message: expect.stringContaining("the image doesn't contain one") };
  const broken = exifComment("x".repeat(50));
  new DataView(broken.buffer).setUint32(36, 0xfffffff0, true);
  for (const picture of [jpeg, webp, makeGif({ width: 2, height: 2 }, { width: 2, height: 2 })]) {
    await expect(readCardFile(picture)).rejects.toMatchObject(noCard);
  }
  await expect(readCardFile(webpWithExif(webp, broken))).rejects.toMatchObject(noCard);
  await expect(readCardFile(webpWithExif(webp, exifComment("A holiday at the sea")))).rejects.toMatchObject(refused);
  await expect(readCardFile(bytes("PK\x03\x04 cut off"))).rejects.toMatchObject({
    message: expect.stringContaining("a complete ZIP"),
  });
});
