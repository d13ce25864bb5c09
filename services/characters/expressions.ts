/** Expressions: the images of a character's moods, in the assets of its card. @see docs/protocols/cards.md */
import { AppError } from "../errors.ts";
import { asArray, isJsonObject } from "../json/type_guards.ts";
import type { Card } from "./card/card.ts";
import { isPngPath } from "./card/card_head.ts";
import { type ImageType, sniffImage } from "../attachments/images/image_header.ts";
import { parseEmbeddedPath } from "./card/main_icon.ts";
import { findAssetChunk, getAssetNames } from "./png/png_assets.ts";
import type { Characters, OpenCard } from "./characters.ts";

/** One expression. */
export interface Expression {
  /** Its position in the card, from 0. */
  n: number;
  /** As the card's author named it: `joy`, or with a costume `beach/joy`. */
  name: string;
}

/** Most expressions of a card that are listed. */
const MAX_EXPRESSIONS = 2000;
const MAX_NAME = 200;
/** Expressions have 100 kB to 3 MB. */
const MAX_IMAGE_BYTES = 20 * 1024 * 1024;
/** Endings of the image types that are served. */
const IMAGE_ENDING = /\.?(png|apng|jpe?g|jfif|webp|gif)$/i;

/** Reads the expressions of characters. */
export class Expressions {
  readonly #characters: Characters;

  constructor(characters: Characters) {
    this.#characters = characters;
  }

  /** Lists the expressions whose images are in the card's file. @throws {AppError} `not_found`, `unprocessable` */
  async list(id: string): Promise<Expression[]> {
    const opened = await this.#characters.open(id);
    const named = findExpressions(opened.card);
    if (named.length === 0) return [];
    const inPng = isPngPath(opened.stored.path) ? getAssetNames(opened.file.bytes) : new Set<string>();
    using files = await this.#characters.openCharxFiles(opened.stored);
    const inZip = new Set(files?.entries.map(({ path }) => path));
    return named.flatMap(({ n, name, uri }) =>
      inZip.has(parseEmbeddedPath(uri) ?? "") || inPng.has(toChunkName(uri)) ? [{ n, name }] : []
    );
  }

  /**
   * Returns the image of an expression.
   *
   * @throws {AppError} `not_found`; `unprocessable` if it isn't an image, `too_large`
   */
  async read(id: string, n: number): Promise<{ bytes: Uint8Array<ArrayBuffer>; type: ImageType }> {
    const opened = await this.#characters.open(id);
    const found = findExpressions(opened.card).find((one) => one.n === n);
    const bytes = found && await this.#readBytes(opened, found.uri);
    if (bytes === undefined) throw new AppError("not_found", `Character "${id}" has no expression ${n}`);
    const type = sniffImage(bytes)?.type;
    if (type === undefined) {
      throw new AppError("unprocessable", `Expression ${n} of character "${id}" is not a PNG, JPEG, WebP or GIF`);
    }
    return { bytes, type };
  }

  async #readBytes({ stored, file }: OpenCard, uri: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    using files = await this.#characters.openCharxFiles(stored);
    const path = parseEmbeddedPath(uri);
    const entry = files?.entries.find((one) => one.path === path);
    if (files && entry) return await files.read(entry, MAX_IMAGE_BYTES);
    return isPngPath(stored.path) ? findAssetChunk(file.bytes, toChunkName(uri)) : undefined;
  }
}

/** Finds the expressions that a card names: V3 assets, and those of RisuAI's earlier cards. */
function findExpressions({ data }: Card): (Expression & { uri: string })[] {
  const assets = asArray(data.assets).map((asset) =>
    isJsonObject(asset) && asset.type === "emotion" && IMAGE_ENDING.test(String(asset.ext ?? asset.uri))
      ? [asset.name, asset.uri]
      : []
  );
  const { risuai } = isJsonObject(data.extensions) ? data.extensions : {};
  const older = isJsonObject(risuai) ? asArray(risuai.emotions).map(asArray) : [];
  return [...assets, ...older].slice(0, MAX_EXPRESSIONS).flatMap(([name, uri], n) =>
    typeof name === "string" && name !== "" && typeof uri === "string" && uri !== ""
      ? [{ n, name: name.slice(0, MAX_NAME), uri }]
      : []
  );
}

/** Returns the name that an asset has in a PNG. */
function toChunkName(uri: string): string {
  return /^__asset:(.+)$/i.exec(uri)?.[1] ?? parseEmbeddedPath(uri) ?? "";
}
