/** Card files of every kind, told apart by their content. */
import { AppError, noneOn } from "../errors.ts";
import type { Card } from "./card.ts";
import { isJsonObject, parseCardText } from "./card_text.ts";
import { hasPicture } from "./card_head.ts";
import { isCharx, readCharx } from "./charx.ts";
import { cardOfPng } from "./png_card.ts";
import { isPng } from "./png_chunks.ts";

/** Takes a card that is not there, or is none, for `undefined`. A file that cannot be read is an error all the same. */
export const NO_CARD = noneOn("not_found", "unprocessable", "too_large");

/** What a card file holds. */
export interface CardFile {
  card: Card;
  /** Its picture as a PNG; what card it holds inside is not said. */
  avatarPng?: Uint8Array;
  /** Its picture in another format, to be converted. */
  avatarImage?: Uint8Array;
  /** A ZIP of the other files of a CHARX: pictures of emotions, backgrounds, data of other programs. */
  assets?: Uint8Array<ArrayBuffer>;
}

/**
 * Reads a card file: PNG, JSON or CHARX. Neither its name nor its stated type counts.
 *
 * @param bytes Not to be used afterwards where they were a CHARX file.
 * @throws {AppError} `unprocessable` for what is no card or broken, `too_large` for what is beyond bounds.
 */
export async function readCardFile(bytes: Uint8Array<ArrayBuffer>): Promise<CardFile> {
  if (isPng(bytes)) return { card: cardOfPng(bytes), avatarPng: bytes };
  if (isJsonObject(bytes)) return { card: parseCardText(bytes) };
  if (isCharx(bytes)) {
    const { card, picture, assets } = await readCharx(bytes);
    const avatar = picture !== undefined && isPng(picture) ? { avatarPng: picture } : { avatarImage: picture };
    return { card, ...avatar, assets };
  }
  throw new AppError("unprocessable", "Cannot read the character card: it is neither PNG nor JSON nor CHARX");
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
