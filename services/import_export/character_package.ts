/** A character with the pictures and sounds that its program keeps beside it, put into one CHARX. @see V3, "assets" */
import type { Card } from "../characters/card/card.ts";
import { cardBytes } from "../characters/card/card_text.ts";
import { CARD_PATH, MAX_CHARX_BYTES, PICTURE_PATH } from "../characters/charx/charx_format.ts";
import { EMBEDDED, mainIconOf, OWN_PICTURE, withMainIcon } from "../characters/card/main_icon.ts";
import { heldEntry, type PackedEntry, writeZip } from "../storage/zip/zip_writer.ts";
import type { ImportNote } from "./import_item.ts";
import type { Scratch } from "./scratch_folder.ts";
import { refused } from "./import_notes.ts";

/** One picture or sound. */
export interface FurtherFile {
  /** `emotion`, `background`, or what its program calls it. */
  type: string;
  /** Of an emotion: which. */
  name: string;
  /** With or without its dot. */
  ext: string;
  /** Where in the import it lies. */
  source: string;
  sizeBytes: number;
  /** @throws {AppError} */
  read(): Promise<Uint8Array>;
}

/** What became of it. */
export interface PackedCharacter {
  /** Path of the CHARX. */
  file: string;
  /** How many of the further files are in it. */
  files: number;
  /** Why others are not. */
  notes: ImportNote[];
}

/** What is left of a CHARX beside its card and picture, and the directory. */
const MAX_BYTES = MAX_CHARX_BYTES - 64 * 1024 * 1024;
const MAX_FILES = 9_000;
const MAX_NAME = 100;
/** Names that Windows takes for devices. */
const RESERVED = /^(con|prn|aux|nul|com\d|lpt\d)$/i;
/** Folders of the specification, by ending. */
const FOLDERS: [RegExp, string][] = [
  [/^(png|apng|jpe?g|jfif|webp|gif|avif|bmp)$/, "images"],
  [/^(mp3|wav|ogg|flac|m4a|opus)$/, "audio"],
  [/^(mp4|webm|mov|avi|mkv)$/, "video"],
];

/**
 * Packs a character.
 *
 * @param picture As PNG without a card; absent where it is brought in beside it.
 * @throws {AppError} `storage_full`; `too_large` for a card beyond bounds
 */
export async function packCharacter(
  scratch: Scratch,
  { card, files, picture }: { card: Card; files: readonly FurtherFile[]; picture?: Uint8Array },
): Promise<PackedCharacter> {
  const notes: ImportNote[] = [];
  const assets: Record<string, string>[] = [];
  async function* entries(): AsyncGenerator<PackedEntry> {
    const taken = new Set([PICTURE_PATH]);
    let total = 0;
    for (const { type, name, ext, source, sizeBytes, read } of files) {
      if (assets.length === MAX_FILES || total + sizeBytes > MAX_BYTES) {
        notes.push(refused(source, "too_many_files"));
        continue;
      }
      let bytes: Uint8Array;
      try {
        bytes = await read();
      } catch (error) {
        notes.push(refused(source, error));
        continue;
      }
      total += bytes.length;
      const ending = /^\.?([a-z0-9]{1,8})$/i.exec(ext)?.[1]?.toLowerCase() ?? "bin";
      const path = freePath(type, name, ending, taken);
      assets.push({ type, uri: EMBEDDED + path, name, ext: ending });
      yield heldEntry(path, bytes);
    }
    if (picture !== undefined) yield heldEntry(PICTURE_PATH, picture);
    // Last, since it says what came before it.
    yield heldEntry(CARD_PATH, cardBytes(withAssets(card, assets)));
  }
  const file = await scratch.keep(writeZip(entries(), { isLarge: false }));
  return { file, files: assets.length, notes };
}

function withAssets(card: Card, assets: readonly Record<string, string>[]): Card {
  const named = mainIconOf(card) === undefined ? withMainIcon(card, OWN_PICTURE) : card;
  return { ...named, data: { ...named.data, assets: [...named.data.assets as unknown[], ...assets] } };
}

/** A name in letters that every system and program takes, unlike any other. */
function freePath(type: string, name: string, ending: string, taken: Set<string>): string {
  // Cut first: the pattern for the underscores at the end takes quadratic time.
  const plain = (text: string) => text.replace(/[^A-Za-z0-9_-]+/g, "_").slice(0, MAX_NAME).replace(/^_+|_+$/g, "");
  const folder = FOLDERS.find(([endings]) => endings.test(ending))?.[1] ?? "other";
  const stem = plain(name) || "file";
  const safe = RESERVED.test(stem) ? `_${stem}` : stem;
  const at = (n: number) => `assets/${plain(type) || "other"}/${folder}/${safe}${n === 1 ? "" : `-${n}`}.${ending}`;
  let n = 1;
  while (taken.has(at(n).toLowerCase())) n++;
  taken.add(at(n).toLowerCase());
  return at(n);
}
