/** Exports characters as card files. */
import { deflateSync } from "node:zlib";
import { createChunk, joinPng } from "../../attachments/images/png.ts";
import type { Characters } from "../characters.ts";
import { createCharx } from "../charx/charx.ts";
import { MAX_CARD_BYTES } from "./card.ts";
import { removeImageMetadata } from "../png/image_metadata.ts";
import { isPngPath } from "./card_head.ts";
import type { CardEdits } from "./card_work.ts";

/** Export formats. */
export const CARD_FORMATS = ["png", "json", "charx"] as const;
export type CardFormat = (typeof CARD_FORMATS)[number];

/** An exported file. Dispose it after use. */
export interface ExportedCard extends Disposable {
  /**
   * Yields the file from the start, always with the same bytes. @throws {AppError} `unprocessable` for damaged assets
   */
  stream(): AsyncGenerator<Uint8Array>;
  contentType: string;
  sizeBytes: number;
  /** True if the import would reject a file of this size. */
  isTooLargeToImport: boolean;
  /** The character's name, as written by the author, with the extension of the format. */
  fileName: string;
}

const CONTENT_TYPES: Record<CardFormat, string> = {
  png: "image/png",
  json: "application/json",
  // V3 doesn't define a media type.
  charx: "application/zip",
};

/**
 * Exports a character. PNG exports without an image get a blank one. CHARX assets are only included in CHARX exports:
 * V3 discourages them in PNG, and JSON has no place for them.
 *
 * @param options.maxImportBytes Import limit for PNG and JSON.
 * @param options.keepsFolder Whether the card includes its folder; false for cards to share.
 * @param options.keepsImageMetadata Whether the image keeps what it says about its place and how it was generated.
 * @throws {AppError} `not_found`, `unprocessable`
 */
export async function exportCard(
  characters: Characters,
  id: string,
  format: CardFormat,
  { maxImportBytes = Infinity, keepsFolder = false, keepsImageMetadata = false } = {},
): Promise<ExportedCard> {
  const { codec } = characters;
  const { stored, file, ...card } = await characters.open(id);
  const edits: CardEdits = { dropsFolder: !keepsFolder };
  const image = !isPngPath(stored.path) ? undefined : keepsImageMetadata ? file.bytes : removeImageMetadata(file.bytes);
  const facts = { contentType: CONTENT_TYPES[format], fileName: `${card.card.data.name}.${format}` };
  if (format === "charx") {
    const others = await characters.openCharxFiles(stored);
    const charx = await createCharx(await codec.planCharx(card, edits, image, others), image, others);
    return {
      ...facts,
      sizeBytes: charx.sizeBytes,
      isTooLargeToImport: charx.isTooLarge,
      stream: () => charx.stream(),
      [Symbol.dispose]: () => others?.[Symbol.dispose](),
    };
  }
  if (await characters.hasCharxFiles(stored)) edits.dropsAssets = { hasImage: image !== undefined };
  const bytes = format === "png"
    ? await codec.write(card, { kind: "png" }, { png: image ?? createBlankImage(), edits })
    : await codec.write(card, { kind: "shared_json" }, { edits });
  return {
    ...facts,
    sizeBytes: bytes.length,
    isTooLargeToImport: bytes.length > (format === "json" ? Math.min(maxImportBytes, MAX_CARD_BYTES) : maxImportBytes),
    async *stream() {
      yield bytes;
    },
    [Symbol.dispose]: () => {},
  };
}

const EMPTY_WIDTH_PX = 400;
const EMPTY_HEIGHT_PX = 600;

/** Creates a plain gray portrait, for programs that only read cards in PNG files. */
function createBlankImage(): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(13);
  const view = new DataView(header.buffer);
  view.setUint32(0, EMPTY_WIDTH_PX);
  view.setUint32(4, EMPTY_HEIGHT_PX);
  header[8] = 8; // Bit depth. Color type 0 is gray.
  const rows = new Uint8Array((EMPTY_WIDTH_PX + 1) * EMPTY_HEIGHT_PX).fill(0x80);
  for (let y = 0; y < EMPTY_HEIGHT_PX; y++) rows[y * (EMPTY_WIDTH_PX + 1)] = 0; // No filter
  return joinPng([
    createChunk("IHDR", header),
    createChunk("IDAT", deflateSync(rows)),
    createChunk("IEND", new Uint8Array()),
  ]);
}
