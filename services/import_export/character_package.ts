/** Packs a character and its images and sounds into a CHARX file. @see docs/protocols/cards.md */
import { type Card, serializeCard } from "../characters/card/card.ts";
import {
  CARD_PATH,
  EMBEDDED_PREFIX,
  findMainIcon,
  IMAGE_PATH,
  MAX_CHARX_BYTES,
  OWN_IMAGE,
  withMainIcon,
} from "../characters/charx/charx_format.ts";
import { createEntry, type PackedEntry, writeZip } from "../storage/zip/zip_writer.ts";
import type { ImportNote } from "./import_item.ts";
import type { ImportHost } from "./import_source.ts";
import { createRefusedNote } from "./import_report.ts";

/** An image or sound. */
export interface FurtherFile {
  /** `emotion`, `background`, or the program's own type. */
  type: string;
  /** For an emotion: its name. */
  name: string;
  /** With or without its dot. */
  ext: string;
  /** Its path in the import. */
  source: string;
  sizeBytes: number;
  /** Reads it. @throws {AppError} */
  read(): Promise<Uint8Array>;
}

/** The result. */
export interface PackedCharacter {
  /** Path of the CHARX file. */
  file: string;
  /** Number of other files in it. */
  files: number;
  /** Files that were omitted, and why. */
  notes: ImportNote[];
}

/** Maximum size of the other files. The rest is for the card, its image and the directory. */
const MAX_BYTES = MAX_CHARX_BYTES - 64 * 1024 * 1024;
const MAX_FILES = 9_000;
const MAX_NAME = 100;
/** Windows device names. */
const RESERVED = /^(con|prn|aux|nul|com\d|lpt\d)$/i;
/** Folders from the CHARX specification by file extension. */
const FOLDERS: [RegExp, string][] = [
  [/^(png|apng|jpe?g|jfif|webp|gif|avif|bmp)$/, "images"],
  [/^(mp3|wav|ogg|flac|m4a|opus)$/, "audio"],
  [/^(mp4|webm|mov|avi|mkv)$/, "video"],
];

/**
 * Packs a character.
 *
 * @param image PNG without a card; absent if the image is imported separately.
 * @throws {AppError} `storage_full`; `too_large` if the card exceeds its limit.
 */
export async function packCharacter(
  host: ImportHost,
  { card, files, image }: { card: Card; files: readonly FurtherFile[]; image?: Uint8Array },
): Promise<PackedCharacter> {
  const notes: ImportNote[] = [];
  const assets: Record<string, string>[] = [];
  async function* listEntries(): AsyncGenerator<PackedEntry> {
    const usedPaths = new Set([IMAGE_PATH]);
    let total = 0;
    for (const { type, name, ext, source, sizeBytes, read } of files) {
      if (assets.length === MAX_FILES || total + sizeBytes > MAX_BYTES) {
        notes.push(createRefusedNote(source, "too_many_files"));
        continue;
      }
      let bytes: Uint8Array;
      try {
        bytes = await read();
      } catch (error) {
        notes.push(createRefusedNote(source, error));
        continue;
      }
      total += bytes.length;
      const ending = /^\.?([a-z0-9]{1,8})$/i.exec(ext)?.[1]?.toLowerCase() ?? "bin";
      const path = freePath(type, name, ending, usedPaths);
      assets.push({ type, uri: EMBEDDED_PREFIX + path, name, ext: ending });
      yield createEntry(path, bytes);
    }
    if (image !== undefined) yield createEntry(IMAGE_PATH, image);
    // Last, because it lists the files before it.
    yield createEntry(CARD_PATH, serializeCard(withAssets(card, assets)));
  }
  const file = await host.keep(writeZip(listEntries(), { isLarge: false }));
  return { file, files: assets.length, notes };
}

function withAssets(card: Card, assets: readonly Record<string, string>[]): Card {
  const named = findMainIcon(card) === undefined ? withMainIcon(card, OWN_IMAGE) : card;
  return { ...named, data: { ...named.data, assets: [...named.data.assets as unknown[], ...assets] } };
}

/** Creates a unique path with characters that every system accepts. */
function freePath(type: string, name: string, ending: string, used: Set<string>): string {
  // Truncate first: the pattern for trailing underscores takes quadratic time.
  const sanitize = (text: string) => text.replace(/[^A-Za-z0-9_-]+/g, "_").slice(0, MAX_NAME).replace(/^_+|_+$/g, "");
  const folder = FOLDERS.find(([endings]) => endings.test(ending))?.[1] ?? "other";
  const stem = sanitize(name) || "file";
  const safe = RESERVED.test(stem) ? `_${stem}` : stem;
  const createPath = (n: number) =>
    `assets/${sanitize(type) || "other"}/${folder}/${safe}${n === 1 ? "" : `-${n}`}.${ending}`;
  let n = 1;
  while (used.has(createPath(n).toLowerCase())) n++;
  used.add(createPath(n).toLowerCase());
  return createPath(n);
}
