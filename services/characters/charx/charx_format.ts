/**
 * Limits, signatures and names of the CHARX format, and the main icon among the assets of a card. See
 * docs/protocols/cards.md.
 */
import { isJsonObject } from "../../json/type_guards.ts";

/** Maximum size. Files with many images have 30 to 200 MB, a few with sounds twice that. */
export const MAX_CHARX_BYTES = 512 * 1024 * 1024;

/** Maximum size of the main image. */
export const MAX_CHARX_IMAGE_BYTES = 20 * 1024 * 1024;

/** Reports whether a file may be a CHARX: a ZIP, or an image or program with a ZIP appended. */
export function isCharx(begin: Uint8Array): boolean {
  return isZip(begin) || startsWith(begin, [0xff, 0xd8, 0xff]) || startsWith(begin, [0x4d, 0x5a]);
}

/** Reports whether bytes start as a non-empty ZIP. */
export function isZip(begin: Uint8Array): boolean {
  return startsWith(begin, [0x50, 0x4b, 0x03, 0x04]);
}

/** Exact name of the card. */
export const CARD_PATH = "card.json";

/** Default path of the image. */
export const IMAGE_PATH = "assets/icon/images/main.png";

const MAX_PATH_CHARACTERS = 500;

/** Reports whether a path is safe to unpack on every operating system. */
export function isSafeCharxPath(name: string): boolean {
  if (name.length > MAX_PATH_CHARACTERS || /[\\:\p{Cc}]/u.test(name)) return false;
  return name.split("/").every((part) => part !== "" && part !== "." && part !== ".." && part !== "__proto__");
}

function startsWith(bytes: Uint8Array, begin: number[]): boolean {
  return begin.every((byte, index) => bytes[index] === byte);
}

/** An asset of a card. Unknown fields are kept. */
interface CardAsset {
  type: string;
  uri: string;
  name?: unknown;
  [field: string]: unknown;
}

/** A card with assets, possibly unvalidated. */
export interface AssetHolder {
  data: { assets?: unknown; [field: string]: unknown };
}

/** Refers to the image of the file itself. */
export const OWN_IMAGE = "ccdefault:";

/** Prefix of paths inside a CHARX. V3 spells it with one d. */
export const EMBEDDED_PREFIX = "embeded://";

/** Returns the icon named `main`, else the first icon. */
export function findMainIcon({ data }: AssetHolder): CardAsset | undefined {
  const assets: unknown[] = Array.isArray(data.assets) ? data.assets : [];
  const icons = assets.filter((asset): asset is CardAsset =>
    isJsonObject(asset) && asset.type === "icon" && typeof asset.uri === "string"
  );
  return icons.find(({ name }) => name === "main") ?? icons[0];
}

/** Returns the path inside a CHARX; `undefined` for other URIs. Some files spell the prefix with two d's. */
export function parseEmbeddedPath(uri: string | undefined): string | undefined {
  return /^embedd?ed:\/\/(.+)$/i.exec(uri ?? "")?.[1];
}

/** Returns a card whose main icon is a PNG at this URI. Adds an icon if there is none. */
export function withMainIcon<T extends AssetHolder>(card: T, uri: string): T {
  const assets: unknown[] = Array.isArray(card.data.assets) ? card.data.assets : [];
  const main = findMainIcon(card);
  const changed = main === undefined
    ? [...assets, { type: "icon", uri, name: "main", ext: "png" }]
    : assets.map((asset) => asset === main ? { ...main, uri, ext: "png" } : asset);
  return { ...card, data: { ...card.data, assets: changed } };
}

/**
 * Returns a card without CHARX assets, for formats that can't contain them. The main icon becomes the image of the
 * file.
 */
export function removeEmbeddedAssets<T extends AssetHolder>(card: T, hasImage: boolean): T {
  const { assets } = card.data;
  if (!Array.isArray(assets)) return card;
  const main = findMainIcon(card);
  const isOwn = hasImage && parseEmbeddedPath(main?.uri) !== undefined;
  const named = isOwn ? withMainIcon(card, OWN_IMAGE) : card;
  const left = (named.data.assets as unknown[]).filter((asset) =>
    !isJsonObject(asset) || typeof asset.uri !== "string" || parseEmbeddedPath(asset.uri) === undefined
  );
  return { ...named, data: { ...named.data, assets: left } };
}
