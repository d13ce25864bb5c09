/** Card files of every kind, told apart by their content. */
import { sniffImage } from "../../attachments/images/image_type.ts";
import { AppError, noneOn } from "../../errors.ts";
import { fileError } from "../../storage/atomic_file.ts";
import type { ZipEntry } from "../../storage/zip/zip_reader.ts";
import type { Card } from "./card.ts";
import { isJsonObject, parseCardText } from "./card_text.ts";
import { hasPicture } from "./card_head.ts";
import { readCharx } from "../charx/charx.ts";
import { cardOfExif } from "./exif_card.ts";
import { isCharx, isZip } from "../charx/charx_format.ts";
import { readPlainFile } from "../../storage/plain_files.ts";
import { cardOfPng, wholeCardOfPng } from "../png/png_card.ts";
import { isPng } from "../../attachments/images/png_chunks.ts";

/** Takes a card that is not there, or is none, for `undefined`. A file that cannot be read is an error all the same. */
export const NO_CARD = noneOn("not_found", "unprocessable", "too_large");

/** What a card file holds. */
export interface CardFile {
  card: Card;
  /** Its picture as a PNG; what card it holds inside is not said. */
  avatarPng?: Uint8Array;
  /** Its picture in another format, to be converted. */
  avatarImage?: Uint8Array;
  /** The other files of a CHARX: pictures of emotions, backgrounds, data of other programs. */
  others?: readonly ZipEntry[];
}

/** Begin of a file that tells its kind. */
const SIGNATURE_BYTES = 4;

/**
 * Reads a card file that is held in memory: PNG, JSON or WebP. Neither its name nor its stated type counts.
 *
 * @throws {AppError} `unprocessable` for what is no such card or broken, `too_large` for what is beyond bounds.
 */
export function readCardBytes(bytes: Uint8Array): CardFile {
  if (isPng(bytes)) return { card: wholeCardOfPng(bytes), avatarPng: bytes };
  if (isJsonObject(bytes)) return { card: parseCardText(bytes) };
  if (sniffImage(bytes) !== undefined) return { card: cardOfExif(bytes), avatarImage: bytes };
  throw new AppError("unprocessable", "Cannot read the character card: it is neither PNG nor JSON nor CHARX");
}

/**
 * Reads a card file that lies on disk: PNG, JSON or CHARX.
 *
 * @throws {AppError} `unprocessable` for what is no card or broken, `too_large` for what is beyond bounds, `internal`
 */
export async function readCardFile(path: string): Promise<CardFile> {
  const begin = await beginOf(path);
  const charx = isCharx(begin) ? await readCharx(path) : undefined;
  // A picture may have a ZIP behind it; what begins as one has to be one.
  if (charx === undefined && !isZip(begin)) {
    return readCardBytes((await readPlainFile(path))?.bytes ?? new Uint8Array());
  }
  if (charx === undefined) throw new AppError("unprocessable", "Cannot read the CHARX file: it is no whole ZIP");
  const { card, picture, others } = charx;
  const avatar = picture !== undefined && isPng(picture) ? { avatarPng: picture } : { avatarImage: picture };
  return { card, ...avatar, others };
}

/**
 * Reads the card of a file that lies in a card folder.
 *
 * @param path Its ending tells PNG from JSON.
 * @throws {AppError} `unprocessable`, `too_large`
 */
export function cardIn(path: string, bytes: Uint8Array): Card {
  return hasPicture(path) ? cardOfPng(bytes) : parseCardText(bytes);
}

async function beginOf(path: string): Promise<Uint8Array> {
  try {
    using file = await Deno.open(path);
    const begin = new Uint8Array(SIGNATURE_BYTES);
    return begin.subarray(0, await file.read(begin) ?? 0);
  } catch (cause) {
    throw fileError(`Cannot read "${path}"`, cause);
  }
}
