/** Serves the images of characters: avatars in full or reduced size, and expressions, the images of their moods. */
import { LRUCache } from "lru-cache";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { AppError, getErrorMessage } from "../errors.ts";
import type { Log } from "../log.ts";
import { readPlainFile, statPlainFile, TEMPORARY_ENDING } from "../storage/atomic_file.ts";
import type { Database } from "../storage/database/database.ts";
import { isPng, parsePngHeader } from "../attachments/images/png.ts";
import type { CardIndex } from "./index/card_index.ts";
import { findCardRow } from "./index/card_rows.ts";
import type { Characters, ImageTools, OpenCard } from "./characters.ts";
import { asArray, isJsonObject } from "../json/type_guards.ts";
import type { Card } from "./card/card.ts";
import { isPngPath } from "./card/card_head.ts";
import { type ImageType, sniffImage } from "../attachments/images/image_header.ts";
import { parseEmbeddedPath } from "./charx/charx_format.ts";
import { findAssetChunk, getAssetNames } from "./png/png_assets.ts";

/** Dependencies of `Avatars`. */
interface AvatarDeps {
  db: Database;
  index: Pick<CardIndex, "refresh" | "markStale">;
  images: ImageTools;
  log: Log;
  /** Cache folder. Its content can be recreated. */
  folder: string;
  /** Limits of the cache. */
  maxBytes?: number;
  maxEntries?: number;
}

/** Allowed widths in pixels, for `?w=`. */
const MIN_WIDTH_PX = 16;
const MAX_WIDTH_PX = 2048;

/** About 5,000 portraits in gallery size. */
const MAX_BYTES = 512 * 1024 * 1024;
const MAX_ENTRIES = 20_000;
/** One page of the gallery is cached in memory, since reading a file takes as long as the rest of the request. */
const MAX_BYTES_IN_MEMORY = 8 * 1024 * 1024;

/** Serves avatars in full or reduced size. Reduced images are cached on disk. */
export class Avatars {
  readonly #deps: AvatarDeps;
  readonly #maxBytes: number;
  readonly #maxEntries: number;
  /** Sizes by name, least recently used first; undefined until the folder was read. */
  #onDisk: Promise<Map<string, number>> | undefined;
  #bytesOnDisk = 0;
  /** Content by name. */
  readonly #inMemory = new LRUCache<string, Uint8Array<ArrayBuffer>>({
    maxSize: MAX_BYTES_IN_MEMORY,
    sizeCalculation: ({ length }) => length,
  });
  #resizing = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();
  #saving = new Set<Promise<void>>();

  constructor(deps: AvatarDeps) {
    this.#deps = deps;
    this.#maxBytes = deps.maxBytes ?? MAX_BYTES;
    this.#maxEntries = deps.maxEntries ?? MAX_ENTRIES;
  }

  /**
   * Returns the image of a character as PNG.
   *
   * @param widthPx Reduces the image to this width, clamped to 16–2,048. Narrower images are returned unchanged.
   * @throws {AppError} `not_found` without a character or image, `unprocessable` for a broken image
   */
  async read(id: string, widthPx?: number): Promise<Uint8Array<ArrayBuffer>> {
    await this.#deps.index.refresh();
    const stored = findCardRow(this.#deps.db, id);
    if (stored === undefined || !stored.hasAvatar) throw createNotFoundError(id);
    if (widthPx === undefined) return (await this.#readCardFile(id, stored.path)).bytes;
    const width = Math.min(Math.max(widthPx, MIN_WIDTH_PX), MAX_WIDTH_PX);
    // The index knows all changes (those of other programs with a short delay), so the file needn't be checked.
    const cached = await this.#findCached(toCacheName(stored.path, stored, width));
    return cached ?? await this.#resize(id, stored.path, width);
  }

  /** Waits for pending writes. */
  async close(): Promise<void> {
    await Promise.all(this.#saving);
  }

  async #readCardFile(id: string, path: string) {
    const file = await readPlainFile(path);
    if (file !== undefined) return file;
    this.#deps.index.markStale();
    throw createNotFoundError(id);
  }

  async #resize(id: string, path: string, widthPx: number): Promise<Uint8Array<ArrayBuffer>> {
    // Named by the file that was read, which may be newer than the requested one.
    const file = await this.#readCardFile(id, path);
    if (file.bytes.length < 33) throw new AppError("unprocessable", `The image of character "${id}" is damaged`);
    if (parsePngHeader(file.bytes.subarray(16, 29)).widthPx <= widthPx) return file.bytes;
    const name = toCacheName(path, file, widthPx);
    const same = this.#resizing.get(name);
    if (same !== undefined) return await same;
    const making = this.#deps.images.resizePng(file.bytes, { widthPx }) as Promise<Uint8Array<ArrayBuffer>>;
    this.#resizing.set(name, making);
    try {
      const png = await making;
      this.#save(name, png);
      return png;
    } finally {
      this.#resizing.delete(name);
    }
  }

  async #findCached(name: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const entries = await this.#loadEntries();
    const size = entries.get(name);
    if (size === undefined) return undefined;
    entries.delete(name); // Moves it to the end: most recently used.
    entries.set(name, size);
    const held = this.#inMemory.get(name);
    if (held !== undefined) return this.#remember(name, held);
    try {
      const bytes = await Deno.readFile(join(this.#deps.folder, name));
      if (bytes.length === size && isCompletePng(bytes)) return this.#remember(name, bytes);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
    if (entries.delete(name)) this.#bytesOnDisk -= size; // Someone emptied the folder.
    return undefined;
  }

  #remember(name: string, bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    this.#inMemory.set(name, bytes);
    return bytes;
  }

  /** Caches an image in the background. A full disk must not prevent showing it. */
  #save(name: string, png: Uint8Array): void {
    const saving = (async () => {
      const entries = await this.#loadEntries();
      if (entries.has(name)) return;
      await this.#write(name, png);
      entries.set(name, png.length);
      this.#bytesOnDisk += png.length;
      await this.#evict(entries);
    })().catch((error) => this.#deps.log("warn", "Can't cache a reduced image", { error: getErrorMessage(error) }))
      .finally(() => this.#saving.delete(saving));
    this.#saving.add(saving);
  }

  /** Without fsync: the image can be recreated, and a truncated one is detected when read. */
  async #write(name: string, png: Uint8Array): Promise<void> {
    const path = join(this.#deps.folder, name);
    const temporary = `${path}${TEMPORARY_ENDING}`;
    await Deno.writeFile(temporary, png, { mode: 0o600 });
    await Deno.rename(temporary, path);
  }

  async #evict(entries: Map<string, number>): Promise<void> {
    for (const [name, size] of entries) {
      if (this.#bytesOnDisk <= this.#maxBytes && entries.size <= this.#maxEntries) return;
      entries.delete(name);
      this.#bytesOnDisk -= size;
      await Deno.remove(join(this.#deps.folder, name)).catch(() => {});
    }
  }

  #loadEntries(): Promise<Map<string, number>> {
    return this.#onDisk ??= this.#readFolder();
  }

  async #readFolder(): Promise<Map<string, number>> {
    const { folder } = this.#deps;
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
    const found: { name: string; size: number; mtimeMs: number }[] = [];
    for await (const { name, isFile } of Deno.readDir(folder)) {
      const info = isFile ? await statPlainFile(join(folder, name)) : undefined;
      if (info === undefined) continue;
      if (name.endsWith(TEMPORARY_ENDING)) await Deno.remove(join(folder, name)).catch(() => {});
      else found.push({ name, ...info });
    }
    found.sort((a, b) => a.mtimeMs - b.mtimeMs);
    this.#bytesOnDisk = found.reduce((sum, { size }) => sum + size, 0);
    return new Map(found.map(({ name, size }) => [name, size]));
  }
}

/** Unique per file, version and width. */
function toCacheName(path: string, { mtimeMs, size }: { mtimeMs: number; size: number }, widthPx: number): string {
  return `${createHash("sha256").update(`${path}\0${mtimeMs}\0${size}\0${widthPx}`).digest("hex").slice(0, 40)}.png`;
}

/** Reports whether a file has start and end of a PNG. */
function isCompletePng(bytes: Uint8Array): boolean {
  return isPng(bytes) && String.fromCharCode(...bytes.subarray(-8, -4)) === "IEND";
}

function createNotFoundError(id: string): AppError {
  return new AppError("not_found", `Character "${id}" has no image`);
}

/** An expression: the image of a mood. */
interface Expression {
  /** Its position in the card, from 0. */
  n: number;
  /** As the card's author named it: `joy`, or with a costume `beach/joy`. */
  name: string;
}

/** Maximum number of expressions listed per card. */
const MAX_EXPRESSIONS = 2000;
const MAX_NAME = 200;
/** Maximum size. Expressions usually have 100 kB to 3 MB. */
const MAX_IMAGE_BYTES = 20 * 1024 * 1024;
/** File extensions of the supported image types. */
const IMAGE_ENDING = /\.?(png|apng|jpe?g|jfif|webp|gif)$/i;

/** Reads the expressions of characters, which are in the assets of their cards. @see docs/protocols/cards.md */
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
      throw new AppError("unprocessable", `Expression ${n} of character "${id}" isn't a PNG, JPEG, WebP or GIF`);
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

/** Finds the expressions that a card lists: V3 assets, and those of RisuAI's earlier cards. */
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
