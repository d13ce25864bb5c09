/** Decides what a CHARX file of a character contains, and where. */
import { type Card, serializeCard } from "../card/card.ts";
import { planPngFiles, type PngFileFacts } from "../png/png_assets.ts";
import {
  CARD_PATH,
  EMBEDDED_PREFIX,
  findMainIcon,
  IMAGE_PATH,
  isSafeCharxPath,
  OWN_IMAGE,
  parseEmbeddedPath,
  withMainIcon,
} from "./charx_format.ts";

/** The content of a CHARX, besides the assets that the character already has as files. */
export interface CharxPlan {
  /** The content of card.json. */
  text: Uint8Array<ArrayBuffer>;
  /** Where the image goes; absent if it's one of the assets, or if there is none. */
  imagePath?: string;
  /** The files in the PNG of the character. */
  files: PngFileFacts[];
}

/**
 * Plans a CHARX.
 *
 * @param png The character's image, if any.
 * @param ownPaths Those of its assets.
 * @throws {AppError} `unprocessable` for a broken PNG, `too_large`
 */
export async function planCharx(
  card: Card,
  png: Uint8Array | undefined,
  ownPaths: ReadonlySet<string>,
): Promise<CharxPlan> {
  if (png === undefined) return { text: serializeCard(card), files: [] };
  const inside = await planPngFiles(png, card, new Set([CARD_PATH, IMAGE_PATH, ...ownPaths]));
  const usedPaths = new Set([...ownPaths, ...inside.files.map(({ path }) => path)]);
  const placed = chooseImagePath(inside.card, usedPaths);
  return { text: serializeCard(placed.card), imagePath: placed.path, files: inside.files };
}

/** Chooses the path of the image, and returns the card that refers to it. */
function chooseImagePath(card: Card, others: ReadonlySet<string>): { card: Card; path?: string } {
  const icon = findMainIcon(card);
  const named = parseEmbeddedPath(icon?.uri);
  if (named !== undefined && others.has(named)) return { card }; // The source of the image is still there.
  if (named !== undefined && isSafeCharxPath(named) && /\.png$/i.test(named)) return { card, path: named };
  let path = IMAGE_PATH;
  for (let n = 2; others.has(path); n++) path = IMAGE_PATH.replace(".png", `-${n}.png`);
  const isOurs = icon === undefined || named !== undefined || icon.uri === OWN_IMAGE;
  return { card: isOurs ? withMainIcon(card, EMBEDDED_PREFIX + path) : card, path };
}
