/** The main icon among a card's assets: which one it is, and where it says its picture lies. @see V3, "assets" */
import { isJsonObject } from "../../json/type_guards.ts";

/** One of a card's assets; what else it says is kept. */
export interface CardAsset {
  type: string;
  uri: string;
  name?: unknown;
  [field: string]: unknown;
}

/** What of a card its assets are found in; it may come straight out of a file. */
export interface AssetHolder {
  data: { assets?: unknown; [field: string]: unknown };
}

/** `ccdefault:` is the picture of the file itself. */
export const OWN_PICTURE = "ccdefault:";

/** Names a path inside a CHARX; the specification's word has one d. */
export const EMBEDDED = "embeded://";

/** Gives the icon named `main`, else the first one. */
export function mainIconOf({ data }: AssetHolder): CardAsset | undefined {
  const assets: unknown[] = Array.isArray(data.assets) ? data.assets : [];
  const icons = assets.filter((asset): asset is CardAsset =>
    isJsonObject(asset) && asset.type === "icon" && typeof asset.uri === "string"
  );
  return icons.find(({ name }) => name === "main") ?? icons[0];
}

/** Gives the path inside a CHARX that an address names, `undefined` for any other address. Files with two d are met. */
export function embeddedPath(uri: string | undefined): string | undefined {
  return /^embedd?ed:\/\/(.+)$/i.exec(uri ?? "")?.[1];
}

/** Gives the card with another address of its main icon, as PNG; one without an icon gets one. */
export function withMainIcon<T extends AssetHolder>(card: T, uri: string): T {
  const assets: unknown[] = Array.isArray(card.data.assets) ? card.data.assets : [];
  const main = mainIconOf(card);
  const changed = main === undefined
    ? [...assets, { type: "icon", uri, name: "main", ext: "png" }]
    : assets.map((asset) => asset === main ? { ...main, uri, ext: "png" } : asset);
  return { ...card, data: { ...card.data, assets: changed } };
}

/** Gives the card of a CHARX for a file that cannot carry its other files: they are left out, but for the picture it has. */
export function withoutEmbedded<T extends AssetHolder>(card: T, hasPicture: boolean): T {
  const { assets } = card.data;
  if (!Array.isArray(assets)) return card;
  const main = mainIconOf(card);
  const isOwn = hasPicture && embeddedPath(main?.uri) !== undefined;
  const named = isOwn ? withMainIcon(card, OWN_PICTURE) : card;
  const left = (named.data.assets as unknown[]).filter((asset) =>
    !isJsonObject(asset) || typeof asset.uri !== "string" || embeddedPath(asset.uri) === undefined
  );
  return { ...named, data: { ...named.data, assets: left } };
}
