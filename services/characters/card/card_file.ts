/** Reads card files of all formats, recognized by their content. */
import { sniffImage } from "../../attachments/images/image_type.ts";
import { AppError, noneOn } from "../../errors.ts";
import { fileError } from "../../storage/atomic_file.ts";
import type { ZipEntry } from "../../storage/zip/zip_reader.ts";
import type { Card } from "./card.ts";
import { parseCardText, startsWithBrace } from "./card_text.ts";
import { isPngPath } from "./card_head.ts";
import { readCharx } from "../charx/charx.ts";
import { parseExifCard } from "./exif_card.ts";
import { isCharx, isZip } from "../charx/charx_format.ts";
import { readPlainFile } from "../../storage/plain_files.ts";
import { parsePngCard, parseWholePngCard } from "../png/png_card.ts";
import { isPng } from "../../attachments/images/png_chunks.ts";

/** Maps a missing or invalid card to `undefined`. Other errors are thrown. */
export const NO_CARD = noneOn("not_found", "unprocessable", "too_large");

/** Content of a card file. */
export interface CardFile {
  card: Card;
  /** Its image as PNG, which may contain another card. */
  avatarPng?: Uint8Array;
  /** Its image in another format, to be converted. */
  avatarImage?: Uint8Array;
  /** The other files of a CHARX: expressions, backgrounds, data of other programs. */
  others?: readonly ZipEntry[];
}

/** Enough bytes to recognize the format. */
const SIGNATURE_BYTES = 4;

/**
 * Parses a card file in memory: PNG, JSON or WebP. File name and media type are ignored.
 *
 * @throws {AppError} `unprocessable` for an invalid file, `too_large`
 */
export function parseCardBytes(bytes: Uint8Array): CardFile {
  if (isPng(bytes)) return { card: parseWholePngCard(bytes), avatarPng: bytes };
  if (startsWithBrace(bytes)) return { card: parseCardText(bytes) };
  if (sniffImage(bytes) !== undefined) return { card: parseExifCard(bytes), avatarImage: bytes };
  throw new AppError("unprocessable", "Can't read the character card: it is neither PNG nor JSON nor CHARX");
}

/**
 * Reads a card file from disk: PNG, JSON or CHARX.
 *
 * @throws {AppError} `unprocessable` for an invalid file, `too_large`, `internal`
 */
export async function readCardFile(path: string): Promise<CardFile> {
  const begin = await readSignature(path);
  const charx = isCharx(begin) ? await readCharx(path) : undefined;
  // An image may have a ZIP appended. A file that starts as a ZIP has to be one.
  if (charx === undefined && !isZip(begin)) {
    return parseCardBytes((await readPlainFile(path))?.bytes ?? new Uint8Array());
  }
  if (charx === undefined) throw new AppError("unprocessable", "Can't read the CHARX file: it is no whole ZIP");
  const { card, image, others } = charx;
  const avatar = image !== undefined && isPng(image) ? { avatarPng: image } : { avatarImage: image };
  return { card, ...avatar, others };
}

/**
 * Parses a file of a card folder.
 *
 * @param path Its extension distinguishes PNG and JSON.
 * @throws {AppError} `unprocessable`, `too_large`
 */
export function parseCardFile(path: string, bytes: Uint8Array): Card {
  return isPngPath(path) ? parsePngCard(bytes) : parseCardText(bytes);
}

async function readSignature(path: string): Promise<Uint8Array> {
  try {
    using file = await Deno.open(path);
    const begin = new Uint8Array(SIGNATURE_BYTES);
    return begin.subarray(0, await file.read(begin) ?? 0);
  } catch (cause) {
    throw fileError(`Can't read "${path}"`, cause);
  }
}
