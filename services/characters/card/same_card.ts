/** Whether two cards say the same, so that one that is imported again isn't stored twice. */
import { isDeepStrictEqual } from "node:util";
import { Buffer } from "node:buffer";
import { isPng } from "../../attachments/images/png.ts";
import { AppError } from "../../errors.ts";
import { removeCard } from "../png/png_card.ts";
import { type Card, withoutFolder } from "./card.ts";
import type { ReadCard } from "./card_codec.ts";

/** Fields outside of `data` belong to the program that wrote the file, such as the chat that was open last. */
function toContent(card: Card): Record<string, unknown> {
  const { modification_date: _, extensions: { fav: __, ...extensions }, ...data } = withoutFolder(card).data;
  return { ...data, extensions };
}

/** Reports whether two cards say the same. Being a favorite, the folder and the time of the last change don't count. */
export function isSameCard(one: ReadCard, other: ReadCard): boolean {
  if (one.version === other.version) return true;
  // Of a large card, only a part is here.
  if (one.text !== undefined || other.text !== undefined) return false;
  return isDeepStrictEqual(toContent(one.card), toContent(other.card));
}

/** Reports whether two PNGs differ in nothing but their cards. */
export function isSameImage(one: Uint8Array, other: Uint8Array): boolean {
  if (!isPng(one) || !isPng(other)) return false;
  try {
    return Buffer.compare(removeCard(one), removeCard(other)) === 0;
  } catch (error) {
    if (error instanceof AppError) return false; // A broken one is the same as none.
    throw error;
  }
}
