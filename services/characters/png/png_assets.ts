/**
 * Files inside PNG cards: RisuAI writes text chunks `chara-ext-asset_:N`, referred to as `__asset:N`; V3 describes
 * `chara-ext-asset_:{path}`, referred to as `embeded://{path}`.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { sniffImage } from "../../attachments/images/image_header.ts";
import { AppError } from "../../errors.ts";
import { yieldIfTickUsedUp } from "../../async/delay.ts";
import { isJsonObject } from "../../json/type_guards.ts";
import type { PackedEntry } from "../../storage/zip/zip_writer.ts";
import type { Card } from "../card/card.ts";
import { EMBEDDED_PREFIX, isSafeCharxPath } from "../charx/charx_format.ts";
import { joinPng, parsePng, type PngChunk } from "../../attachments/images/png.ts";
import { getCardKeyword, getKeyword, readTextChunk } from "./png_card.ts";

const ASSET_KEYWORD = /^chara-ext-asset_:?(.+)$/is;
/** RisuAI's prefix of asset URIs. */
const RISU_ADDRESS = "__asset:";
/** Larger than any stored PNG. */
const MAX_TEXT_BYTES = 64 * 1024 * 1024;

/**
 * Text about the image, not the character. @see https://www.w3.org/TR/png-3/#11keywords; also XMP, ImageMagick and
 * image generators
 */
const IMAGE_KEYWORDS =
  /^(title|author|description|copyright|creation time|software|disclaimer|warning|source|comment|collection|xml:com\.adobe\.xmp|raw profile type .*|parameters|prompt|workflow|dream|sd-metadata|date:.*)$/i;
/** Registered chunks that are safe to copy by name but describe the image. */
const IMAGE_CHUNKS = ["pHYs", "eXIf"];

/** Reports whether a PNG card contains other files. @throws {AppError} `unprocessable` */
export function hasAssetChunks(png: Uint8Array): boolean {
  return parsePng(png).chunks.some((chunk) => getAssetName(chunk) !== undefined);
}

/** Returns the names of the files inside a PNG card. @throws {AppError} `unprocessable` */
export function getAssetNames(png: Uint8Array): Set<string> {
  return new Set(parsePng(png).chunks.flatMap((chunk) => getAssetName(chunk) ?? []));
}

/** Returns a file inside a PNG card; `undefined` if there is none of this name. @throws {AppError} `unprocessable` */
export function findAssetChunk(png: Uint8Array, name: string): Uint8Array<ArrayBuffer> | undefined {
  const chunk = parsePng(png).chunks.find((one) => getAssetName(one) === name);
  return chunk && decodeAsset(chunk);
}

/** Removes the files inside a PNG card. @throws {AppError} `unprocessable` */
export function removeAssetChunks(png: Uint8Array): Uint8Array<ArrayBuffer> {
  return joinPng(parsePng(png).chunks.filter((chunk) => getAssetName(chunk) === undefined));
}

/**
 * Replaces the image of a card.
 *
 * Keeps the files of the old PNG, its text chunks, and private chunks that are safe to copy. Chunks that depend on the
 * old pixels (color profile, resolution, animation) are dropped.
 *
 * @param old Absent for a character without image.
 * @param png The new image. A card in it, and that card's files, are dropped.
 * @see https://www.w3.org/TR/png-3/#14Ordering
 * @throws {AppError} `unprocessable`
 */
export function replaceImage(old: Uint8Array | undefined, png: Uint8Array): Uint8Array<ArrayBuffer> {
  const isOfCard = (chunk: PngChunk) => getAssetName(chunk) !== undefined || getCardKeyword(chunk) !== undefined;
  const [header, ...chunks] = parsePng(png).chunks.filter((chunk) => !isOfCard(chunk));
  const own = new Set(chunks.map(getKeyword));
  const carried = (old === undefined ? [] : parsePng(old).chunks).filter((chunk) =>
    isCopiedToNewImage(chunk) && !own.has(getKeyword(chunk) ?? "")
  );
  return joinPng([header!, ...carried, ...chunks]);
}

/** A file in a PNG card, and its place in a CHARX. */
export interface PngFileFacts {
  /** Of its chunk. */
  name: string;
  path: string;
  sizeBytes: number;
  crc: number;
}

/**
 * Plans the files in a PNG card as entries of a CHARX.
 *
 * @param usedPaths Paths already used in the CHARX.
 * @returns Also the card, with references to the paths in the CHARX.
 * @throws {AppError} `unprocessable`
 */
export async function planPngFiles(
  png: Uint8Array,
  card: Card,
  usedPaths: ReadonlySet<string>,
): Promise<{ card: Card; files: PngFileFacts[] }> {
  const used = new Set(usedPaths);
  const addresses = new Map<string, string>();
  const files: PngFileFacts[] = [];
  for (const chunk of parsePng(png).chunks) {
    const name = getAssetName(chunk);
    if (name === undefined || addresses.has(name)) continue;
    await yieldIfTickUsedUp();
    const bytes = decodeAsset(chunk);
    const path = chooseFreePath(name, card, bytes, used);
    used.add(path);
    addresses.set(name, EMBEDDED_PREFIX + path);
    files.push({ name, path, sizeBytes: bytes.length, crc: crc32(bytes) });
  }
  return { card: files.length === 0 ? card : { ...card, data: replaceAddresses(card.data, addresses) }, files };
}

/** Returns planned files as entries. They are decoded when written, so that only one is in memory at a time. */
export function openPngFiles(png: Uint8Array, files: readonly PngFileFacts[]): PackedEntry[] {
  const chunks = new Map<string, PngChunk>();
  for (const chunk of parsePng(png).chunks) {
    const name = getAssetName(chunk);
    if (name !== undefined && !chunks.has(name)) chunks.set(name, chunk);
  }
  return files.flatMap(({ name, path, sizeBytes, crc }) => {
    const chunk = chunks.get(name);
    if (chunk === undefined) return [];
    const content = {
      *[Symbol.iterator]() {
        yield decodeAsset(chunk);
      },
    };
    return [{ path, isDeflated: false, crc, sizeBytes, packedBytes: sizeBytes, content }];
  });
}

/** Returns the asset name from the keyword; `undefined` for other chunks. */
function getAssetName(chunk: PngChunk): string | undefined {
  return ASSET_KEYWORD.exec(getKeyword(chunk) ?? "")?.[1];
}

function isCopiedToNewImage(chunk: PngChunk): boolean {
  const { type } = chunk;
  const isSafeToCopy = type[0] !== type[0]!.toUpperCase() && type[3] !== type[3]!.toUpperCase();
  if (!isSafeToCopy || IMAGE_CHUNKS.includes(type)) return false;
  const keyword = getKeyword(chunk);
  return keyword === undefined || !IMAGE_KEYWORDS.test(keyword);
}

/** Decodes base64. Undecodable data is returned as it is. */
function decodeAsset(chunk: PngChunk): Uint8Array<ArrayBuffer> {
  let text: Uint8Array;
  try {
    text = readTextChunk(chunk, MAX_TEXT_BYTES);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return Uint8Array.from(chunk.data);
  }
  const letters = Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString("latin1");
  return /^[A-Za-z0-9+/_\s-]*={0,2}\s*$/.test(letters)
    ? Uint8Array.from(Buffer.from(letters, "base64"))
    : Uint8Array.from(text);
}

function chooseFreePath(name: string, card: Card, bytes: Uint8Array, used: ReadonlySet<string>): string {
  const isNumber = /^\d+$/.test(name);
  const preferred = !isNumber && isSafeCharxPath(name) ? name : toRisuPath(name, card, bytes);
  let path = preferred;
  for (let n = 2; used.has(path); n++) path = preferred.replace(/(\.[^./]*)?$/, `-${n}$1`);
  return path;
}

/** Returns the path that RisuAI uses in CHARX files. @see docs/protocols/cards.md */
function toRisuPath(name: string, card: Card, bytes: Uint8Array): string {
  const assets: unknown[] = Array.isArray(card.data.assets) ? card.data.assets : [];
  const asset = assets.find((one) => isJsonObject(one) && one.uri === RISU_ADDRESS + name);
  const { type, ext } = (asset ?? {}) as { type?: unknown; ext?: unknown };
  const image = sniffImage(bytes)?.type.split("/")[1];
  const folder = typeof type === "string" && /^[a-z0-9_]{1,40}$/i.test(type) ? type : "other";
  const ending = typeof ext === "string" && /^[a-z0-9]{1,8}$/i.test(ext) ? ext : image ?? "bin";
  return `assets/${folder}/${image === undefined ? "other" : "images"}/${
    name.replace(/[^A-Za-z0-9_-]+/g, "_")
  }.${ending}`;
}

/** Programs refer to assets in `assets` and in their own extensions. */
function replaceAddresses<T>(value: T, addresses: ReadonlyMap<string, string>): T {
  if (typeof value === "string") {
    const name = value.startsWith(RISU_ADDRESS) ? value.slice(RISU_ADDRESS.length) : undefined;
    return (name === undefined ? value : addresses.get(name) ?? value) as T;
  }
  if (Array.isArray(value)) return value.map((one) => replaceAddresses(one, addresses)) as T;
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, replaceAddresses(one, addresses)])) as T;
}
