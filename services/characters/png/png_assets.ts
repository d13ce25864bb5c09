/**
 * Files that programs keep inside a PNG card: RisuAI writes each as a text chunk `chara-ext-asset_:N` and names it
 * `__asset:N` in the card; the V3 specification describes `chara-ext-asset_:{path}`, named `embeded://{path}`.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { sniffImage } from "../../attachments/images/image_type.ts";
import { AppError } from "../../errors.ts";
import { yieldIfTickUsedUp } from "../../async/yield_to_event_loop.ts";
import { isJsonObject } from "../../json/type_guards.ts";
import type { PackedEntry } from "../../storage/zip/zip_writer.ts";
import type { Card } from "../card/card.ts";
import { isPlainPath } from "../charx/charx_format.ts";
import { EMBEDDED } from "../card/main_icon.ts";
import { joinPng, type PngChunk, readPng } from "../../attachments/images/png_chunks.ts";
import { cardKeyword } from "./png_card.ts";
import { keywordOf, textOf } from "./png_text.ts";

const ASSET_KEYWORD = /^chara-ext-asset_:?(.+)$/is;
/** RisuAI's address of an asset. */
const RISU_ADDRESS = "__asset:";
/** More than any PNG that is stored. */
const MAX_TEXT_BYTES = 64 * 1024 * 1024;

/** Text that describes the picture of a PNG, not the character. @see PNG, third edition, section 11.3.3.2; XMP, ImageMagick, image generators */
const PICTURE_KEYWORDS =
  /^(title|author|description|copyright|creation time|software|disclaimer|warning|source|comment|collection|xml:com\.adobe\.xmp|raw profile type .*|parameters|prompt|workflow|dream|sd-metadata|date:.*)$/i;
/** Registered chunks that are safe to copy by their names but describe the picture. */
const PICTURE_CHUNKS = ["pHYs", "eXIf"];

/** Says whether a PNG card holds files besides its picture. @throws {AppError} `unprocessable` */
export function hasAssetChunks(png: Uint8Array): boolean {
  return readPng(png).chunks.some((chunk) => assetPath(chunk) !== undefined);
}

/** Returns the PNG without the files in it. @throws {AppError} `unprocessable` */
export function withoutAssetChunks(png: Uint8Array): Uint8Array<ArrayBuffer> {
  return joinPng(readPng(png).chunks.filter((chunk) => assetPath(chunk) === undefined));
}

/**
 * Gives a card another picture: the new pixels with everything that the old PNG holds besides its own.
 *
 * The files in the old one stay, and so do text chunks and private chunks that PNG calls safe to copy. What belongs to the
 * old pixels (color profile, resolution, animation) doesn't.
 *
 * @param old Absent for a character without a picture.
 * @param png The new picture. Another card in it, and that card's files, are left out.
 * @see https://www.w3.org/TR/png-3/#14Ordering
 * @throws {AppError} `unprocessable`
 */
export function withPicture(old: Uint8Array | undefined, png: Uint8Array): Uint8Array<ArrayBuffer> {
  const isOfCard = (chunk: PngChunk) => assetPath(chunk) !== undefined || cardKeyword(chunk) !== undefined;
  const [header, ...chunks] = readPng(png).chunks.filter((chunk) => !isOfCard(chunk));
  const own = new Set(chunks.map(keywordOf));
  const carried = (old === undefined ? [] : readPng(old).chunks).filter((chunk) =>
    isCarried(chunk) && !own.has(keywordOf(chunk) ?? "")
  );
  return joinPng([header!, ...carried, ...chunks]);
}

/** A file of a PNG card on its way into a CHARX. */
export interface CardFilesInPng {
  /** The card, which names them by their paths in the CHARX. */
  card: Card;
  entries: PackedEntry[];
}

/**
 * Turns the files in a PNG card into files of a CHARX.
 *
 * @param taken Paths that the CHARX has already.
 * @throws {AppError} `unprocessable`
 */
export async function filesInPng(png: Uint8Array, card: Card, taken: ReadonlySet<string>): Promise<CardFilesInPng> {
  const used = new Set(taken);
  const addresses = new Map<string, string>();
  const entries: PackedEntry[] = [];
  for (const chunk of readPng(png).chunks) {
    const name = assetPath(chunk);
    if (name === undefined || addresses.has(name)) continue;
    await yieldIfTickUsedUp();
    const bytes = contentOf(chunk);
    const path = freePath(name, card, bytes, used);
    used.add(path);
    addresses.set(name, EMBEDDED + path);
    entries.push({
      ...{ path, isDeflated: false, crc: crc32(bytes), sizeBytes: bytes.length, packedBytes: bytes.length },
      // Decoded again when it is written, so that only one is held at a time.
      content: {
        *[Symbol.iterator]() {
          yield contentOf(chunk);
        },
      },
    });
  }
  return { card: entries.length === 0 ? card : { ...card, data: readdressed(card.data, addresses) }, entries };
}

/** Returns the name after the keyword, `undefined` for any other chunk. */
function assetPath(chunk: PngChunk): string | undefined {
  return ASSET_KEYWORD.exec(keywordOf(chunk) ?? "")?.[1];
}

function isCarried(chunk: PngChunk): boolean {
  const { type } = chunk;
  const isSafeToCopy = type[0] !== type[0]!.toUpperCase() && type[3] !== type[3]!.toUpperCase();
  if (!isSafeToCopy || PICTURE_CHUNKS.includes(type)) return false;
  const keyword = keywordOf(chunk);
  return keyword === undefined || !PICTURE_KEYWORDS.test(keyword);
}

/** Decodes base64; what can't be decoded is passed on as it is. */
function contentOf(chunk: PngChunk): Uint8Array<ArrayBuffer> {
  let text: Uint8Array;
  try {
    text = textOf(chunk, MAX_TEXT_BYTES);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return Uint8Array.from(chunk.data);
  }
  const letters = Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString("latin1");
  return /^[A-Za-z0-9+/_\s-]*={0,2}\s*$/.test(letters)
    ? Uint8Array.from(Buffer.from(letters, "base64"))
    : Uint8Array.from(text);
}

function freePath(name: string, card: Card, bytes: Uint8Array, used: ReadonlySet<string>): string {
  const isNumber = /^\d+$/.test(name);
  const wanted = !isNumber && isPlainPath(name) ? name : risuPath(name, card, bytes);
  let path = wanted;
  for (let n = 2; used.has(path); n++) path = wanted.replace(/(\.[^./]*)?$/, `-${n}$1`);
  return path;
}

/** Where CHARX files of RisuAI have such an asset. @see V3, "CHARX" */
function risuPath(name: string, card: Card, bytes: Uint8Array): string {
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

/** Programs name an asset in `assets` and in their own extensions. */
function readdressed<T>(value: T, addresses: ReadonlyMap<string, string>): T {
  if (typeof value === "string") {
    const name = value.startsWith(RISU_ADDRESS) ? value.slice(RISU_ADDRESS.length) : undefined;
    return (name === undefined ? value : addresses.get(name) ?? value) as T;
  }
  if (Array.isArray(value)) return value.map((one) => readdressed(one, addresses)) as T;
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, readdressed(one, addresses)])) as T;
}
