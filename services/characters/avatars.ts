/** Pictures of characters, as they are and reduced. Reduced ones are kept on disk, within bounds. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { AppError, messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { TEMPORARY_ENDING } from "../storage/atomic_file.ts";
import type { Database } from "../storage/database/database.ts";
import type { CardIndex } from "./index/card_index.ts";
import { findCard } from "./index/card_rows.ts";
import type { PictureTools } from "./characters.ts";
import { readPlainFile, statPlainFile } from "../storage/plain_files.ts";
import { isPng, readHeader } from "../attachments/images/png_chunks.ts";

/** What the pictures stand on. */
export interface AvatarParts {
  db: Database;
  index: Pick<CardIndex, "fresh" | "distrust">;
  pictures: PictureTools;
  log: Log;
  /** Folder of reduced pictures; what lies in it can be made again. */
  folder: string;
  /** Bounds of that folder. */
  maxBytes?: number;
  maxEntries?: number;
}

/** Widths a picture can be asked for in, in pixels. Issue: `?w=`, 16 to 2,048. */
const MIN_WIDTH_PX = 16;
const MAX_WIDTH_PX = 2048;

/** Some 5,000 portraits at the size of a gallery. */
const MAX_BYTES = 512 * 1024 * 1024;
const MAX_ENTRIES = 20_000;
/** What a page of a gallery shows is held in memory: a read of a file takes as long as all the rest of the answer. */
const MAX_HELD_BYTES = 8 * 1024 * 1024;

/** Gives pictures of characters. */
export class Avatars {
  readonly #parts: AvatarParts;
  readonly #maxBytes: number;
  readonly #maxEntries: number;
  /** Sizes by name, the one that was longest not asked for first; undefined until the folder was read. */
  #kept: Promise<Map<string, number>> | undefined;
  #keptBytes = 0;
  /** Bytes by name, the one that was longest not asked for first. */
  #held = new Map<string, Uint8Array<ArrayBuffer>>();
  #heldBytes = 0;
  #making = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();
  #saving = new Set<Promise<void>>();

  constructor(parts: AvatarParts) {
    this.#parts = parts;
    this.#maxBytes = parts.maxBytes ?? MAX_BYTES;
    this.#maxEntries = parts.maxEntries ?? MAX_ENTRIES;
  }

  /**
   * Gives the picture of a character as PNG.
   *
   * @param widthPx Reduces it to that width, brought into 16 to 2,048; one that is no wider comes as it is.
   * @throws {AppError} `not_found` when there is no character or no picture of it, `unprocessable` for a broken one
   */
  async read(id: string, widthPx?: number): Promise<Uint8Array<ArrayBuffer>> {
    await this.#parts.index.fresh();
    const stored = findCard(this.#parts.db, id);
    if (stored === undefined || !stored.hasAvatar) throw noPicture(id);
    if (widthPx === undefined) return (await this.#file(id, stored.path)).bytes;
    const width = Math.min(Math.max(widthPx, MIN_WIDTH_PX), MAX_WIDTH_PX);
    // The index knows of every change of ours, and of others' a moment later: the file itself need not be looked at.
    const kept = await this.#find(nameOf(stored.path, stored, width));
    return kept ?? await this.#reduce(id, stored.path, width);
  }

  /** Waits for what is being kept. */
  async close(): Promise<void> {
    await Promise.all(this.#saving);
  }

  async #file(id: string, path: string) {
    const file = await readPlainFile(path);
    if (file !== undefined) return file;
    this.#parts.index.distrust();
    throw noPicture(id);
  }

  async #reduce(id: string, path: string, widthPx: number): Promise<Uint8Array<ArrayBuffer>> {
    // Named after the file that was read, which may be a newer one than was asked for.
    const file = await this.#file(id, path);
    if (file.bytes.length < 33) throw new AppError("unprocessable", `The picture of character "${id}" is broken`);
    if (readHeader(file.bytes.subarray(16, 29)).widthPx <= widthPx) return file.bytes;
    const name = nameOf(path, file, widthPx);
    const same = this.#making.get(name);
    if (same !== undefined) return await same;
    const making = this.#parts.pictures.resizePng(file.bytes, { widthPx }) as Promise<Uint8Array<ArrayBuffer>>;
    this.#making.set(name, making);
    try {
      const png = await making;
      this.#save(name, png);
      return png;
    } finally {
      this.#making.delete(name);
    }
  }

  async #find(name: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const kept = await this.#entries();
    const size = kept.get(name);
    if (size === undefined) return undefined;
    kept.delete(name); // to the end: it was asked for last
    kept.set(name, size);
    const held = this.#held.get(name);
    if (held !== undefined) return this.#hold(name, held);
    try {
      const bytes = await Deno.readFile(join(this.#parts.folder, name));
      if (bytes.length === size && isWhole(bytes)) return this.#hold(name, bytes);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
    if (kept.delete(name)) this.#keptBytes -= size; // somebody emptied the folder
    return undefined;
  }

  #hold(name: string, bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    if (this.#held.delete(name)) this.#heldBytes -= bytes.length;
    this.#held.set(name, bytes);
    this.#heldBytes += bytes.length;
    for (const [oldest, { length }] of this.#held) {
      if (this.#heldBytes <= MAX_HELD_BYTES) break;
      this.#held.delete(oldest);
      this.#heldBytes -= length;
    }
    return bytes;
  }

  /** Keeps a picture beside the answer: a full disk is no reason not to show it. */
  #save(name: string, png: Uint8Array): void {
    const saving = (async () => {
      const kept = await this.#entries();
      if (kept.has(name)) return;
      await this.#write(name, png);
      kept.set(name, png.length);
      this.#keptBytes += png.length;
      await this.#shrink(kept);
    })().catch((error) => this.#parts.log("warn", "Cannot keep a reduced picture", { error: messageOf(error) }))
      .finally(() => this.#saving.delete(saving));
    this.#saving.add(saving);
  }

  /** Not synced: a power cut may cost what can be made again, and a picture cut short is seen when it is read. */
  async #write(name: string, png: Uint8Array): Promise<void> {
    const path = join(this.#parts.folder, name);
    const temporary = `${path}${TEMPORARY_ENDING}`;
    await Deno.writeFile(temporary, png, { mode: 0o600 });
    await Deno.rename(temporary, path);
  }

  async #shrink(kept: Map<string, number>): Promise<void> {
    for (const [name, size] of kept) {
      if (this.#keptBytes <= this.#maxBytes && kept.size <= this.#maxEntries) return;
      kept.delete(name);
      this.#keptBytes -= size;
      await Deno.remove(join(this.#parts.folder, name)).catch(() => {});
    }
  }

  #entries(): Promise<Map<string, number>> {
    return this.#kept ??= this.#readFolder();
  }

  async #readFolder(): Promise<Map<string, number>> {
    const { folder } = this.#parts;
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
    const found: { name: string; size: number; mtimeMs: number }[] = [];
    for await (const { name, isFile } of Deno.readDir(folder)) {
      const info = isFile ? await statPlainFile(join(folder, name)) : undefined;
      if (info === undefined) continue;
      if (name.endsWith(TEMPORARY_ENDING)) await Deno.remove(join(folder, name)).catch(() => {});
      else found.push({ name, ...info });
    }
    found.sort((a, b) => a.mtimeMs - b.mtimeMs);
    this.#keptBytes = found.reduce((sum, { size }) => sum + size, 0);
    return new Map(found.map(({ name, size }) => [name, size]));
  }
}

/** The same for one version of one file in one width, and nothing else. */
function nameOf(path: string, { mtimeMs, size }: { mtimeMs: number; size: number }, widthPx: number): string {
  return `${createHash("sha256").update(`${path}\0${mtimeMs}\0${size}\0${widthPx}`).digest("hex").slice(0, 40)}.png`;
}

/** Says whether a file has both ends of a PNG. */
function isWhole(bytes: Uint8Array): boolean {
  return isPng(bytes) && String.fromCharCode(...bytes.subarray(-8, -4)) === "IEND";
}

function noPicture(id: string): AppError {
  return new AppError("not_found", `There is no picture of a character "${id}"`);
}
