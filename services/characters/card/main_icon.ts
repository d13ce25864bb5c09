/** The main icon among the assets of a card. @see docs/protocols/cards.md */
import { isJsonObject } from "../../json/type_guards.ts";

/** An asset of a card. Unknown fields are kept. */
export interface CardAsset {
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
export function removeEmbeddedAssets<T extends AssetHolder>(card: T, hasPicture: boolean): T {
  const { assets } = card.data;
  if (!Array.isArray(assets)) return card;
  const main = findMainIcon(card);
  const isOwn = hasPicture && parseEmbeddedPath(main?.uri) !== undefined;
  const named = isOwn ? withMainIcon(card, OWN_IMAGE) : card;
  const left = (named.data.assets as unknown[]).filter((asset) =>
    !isJsonObject(asset) || typeof asset.uri !== "string" || parseEmbeddedPath(asset.uri) === undefined
  );
  return { ...named, data: { ...named.data, assets: left } };
}
