/** Serves character images in full or reduced size. Reduced images are cached on disk. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { AppError, messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { readPlainFile, statPlainFile, TEMPORARY_ENDING } from "../storage/atomic_file.ts";
import type { Database } from "../storage/database/database.ts";
import { isPng, parsePngHeader } from "../attachments/images/png.ts";
import type { CardIndex } from "./index/card_index.ts";
import { findCardRow } from "./index/card_rows.ts";
import type { ImageTools } from "./characters.ts";

/** Dependencies of `Avatars`. */
export interface AvatarDeps {
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

/** Serves character images. */
export class Avatars {
  readonly #deps: AvatarDeps;
  readonly #maxBytes: number;
  readonly #maxEntries: number;
  /** Sizes by name, least recently used first; undefined until the folder was read. */
  #onDisk: Promise<Map<string, number>> | undefined;
  #bytesOnDisk = 0;
  /** Content by name, least recently used first. */
  #inMemory = new Map<string, Uint8Array<ArrayBuffer>>();
  #bytesInMemory = 0;
  #resizing = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();
  #saving = new Set<Promise<void>>();

  constructor(parts: AvatarDeps) {
    this.#deps = parts;
    this.#maxBytes = parts.maxBytes ?? MAX_BYTES;
    this.#maxEntries = parts.maxEntries ?? MAX_ENTRIES;
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
    if (stored === undefined || !stored.hasAvatar) throw avatarNotFound(id);
    if (widthPx === undefined) return (await this.#readCardFile(id, stored.path)).bytes;
    const width = Math.min(Math.max(widthPx, MIN_WIDTH_PX), MAX_WIDTH_PX);
    // The index knows all changes (those of other programs with a short delay), so the file needn't be checked.
    const kept = await this.#findCached(toCacheName(stored.path, stored, width));
    return kept ?? await this.#resize(id, stored.path, width);
  }

  /** Waits for pending writes. */
  async close(): Promise<void> {
    await Promise.all(this.#saving);
  }

  async #readCardFile(id: string, path: string) {
    const file = await readPlainFile(path);
    if (file !== undefined) return file;
    this.#deps.index.markStale();
    throw avatarNotFound(id);
  }

  async #resize(id: string, path: string, widthPx: number): Promise<Uint8Array<ArrayBuffer>> {
    // Named by the file that was read, which may be newer than the requested one.
    const file = await this.#readCardFile(id, path);
    if (file.bytes.length < 33) throw new AppError("unprocessable", `The picture of character "${id}" is broken`);
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
    const kept = await this.#loadEntries();
    const size = kept.get(name);
    if (size === undefined) return undefined;
    kept.delete(name); // moves it to the end: most recently used
    kept.set(name, size);
    const held = this.#inMemory.get(name);
    if (held !== undefined) return this.#remember(name, held);
    try {
      const bytes = await Deno.readFile(join(this.#deps.folder, name));
      if (bytes.length === size && isCompletePng(bytes)) return this.#remember(name, bytes);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
    if (kept.delete(name)) this.#bytesOnDisk -= size; // someone emptied the folder
    return undefined;
  }

  #remember(name: string, bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    if (this.#inMemory.delete(name)) this.#bytesInMemory -= bytes.length;
    this.#inMemory.set(name, bytes);
    this.#bytesInMemory += bytes.length;
    for (const [oldest, { length }] of this.#inMemory) {
      if (this.#bytesInMemory <= MAX_BYTES_IN_MEMORY) break;
      this.#inMemory.delete(oldest);
      this.#bytesInMemory -= length;
    }
    return bytes;
  }

  /** Caches an image in the background. A full disk must not prevent showing it. */
  #save(name: string, png: Uint8Array): void {
    const saving = (async () => {
      const kept = await this.#loadEntries();
      if (kept.has(name)) return;
      await this.#write(name, png);
      kept.set(name, png.length);
      this.#bytesOnDisk += png.length;
      await this.#evict(kept);
    })().catch((error) => this.#deps.log("warn", "Can't keep a reduced picture", { error: messageOf(error) }))
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

  async #evict(kept: Map<string, number>): Promise<void> {
    for (const [name, size] of kept) {
      if (this.#bytesOnDisk <= this.#maxBytes && kept.size <= this.#maxEntries) return;
      kept.delete(name);
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

function avatarNotFound(id: string): AppError {
  return new AppError("not_found", `There is no portrait of a character "${id}"`);
}
