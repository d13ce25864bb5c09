/** Characters as files for other programs. */
import { deflateSync } from "node:zlib";
import type { Card } from "./card.ts";
import { hasPicture } from "./card_head.ts";
import { MAX_CARD_BYTES } from "./card_text.ts";
import type { Characters } from "../characters.ts";
import { makeCharx } from "../charx/charx.ts";
import { withoutEmbedded } from "./main_icon.ts";
import { joinPng, makeChunk } from "../../attachments/images/png_chunks.ts";
import { embedCard } from "../png/png_card.ts";

/** Formats a character can be had in. */
export const CARD_FORMATS = ["png", "json", "charx"] as const;
export type CardFormat = (typeof CARD_FORMATS)[number];

/** A file to be handed out, to be disposed of when it was. */
export interface ExportedCard extends Disposable {
  /** Gives it from its begin, each time the same bytes. @throws {AppError} `unprocessable` for other files that are damaged */
  pieces(): AsyncGenerator<Uint8Array>;
  contentType: string;
  sizeBytes: number;
  /** The import of cards refuses a file of this size. */
  isTooLargeToImport: boolean;
  /** The character's name with the format's ending; as its author wrote it. */
  fileName: string;
}

const CONTENT_TYPES: Record<CardFormat, string> = {
  png: "image/png",
  json: "application/json",
  // V3 names no type; a ZIP is what it is.
  charx: "application/zip",
};

/**
 * Makes a file of a character. As PNG every character has a picture, if only an empty one. The other files of a CHARX are
 * in a CHARX alone: V3 asks new programs to put them into no PNG, and a JSON has no place for them.
 *
 * @param maxImportBytes Largest PNG or JSON that the import takes.
 * @throws {AppError} `not_found`, `unprocessable`
 */
export async function exportCard(
  characters: Characters,
  id: string,
  format: CardFormat,
  maxImportBytes = Infinity,
): Promise<ExportedCard> {
  const { stored, file, card } = await characters.open(id);
  const picture = hasPicture(stored.path) ? file.bytes : undefined;
  const facts = { contentType: CONTENT_TYPES[format], fileName: `${card.data.name}.${format}` };
  if (format === "charx") {
    const others = await characters.filesOf(stored);
    const made = await makeCharx(card, picture, others);
    return {
      ...facts,
      sizeBytes: made.sizeBytes,
      isTooLargeToImport: made.isTooLarge,
      pieces: () => made.pieces(),
      [Symbol.dispose]: () => others?.[Symbol.dispose](),
    };
  }
  const named = await characters.hasCharxFiles(stored) ? withoutEmbedded(card, picture !== undefined) : card;
  const bytes = fileOf(named, picture, format);
  return {
    ...facts,
    sizeBytes: bytes.length,
    isTooLargeToImport: bytes.length > (format === "json" ? Math.min(maxImportBytes, MAX_CARD_BYTES) : maxImportBytes),
    async *pieces() {
      yield bytes;
    },
    [Symbol.dispose]: () => {},
  };
}

function fileOf(card: Card, picture: Uint8Array | undefined, format: "png" | "json"): Uint8Array<ArrayBuffer> {
  if (format === "png") return embedCard(picture ?? emptyPicture(), card);
  const indented = new TextEncoder().encode(JSON.stringify(card, null, 4)); // as SillyTavern indents it
  return indented.length <= MAX_CARD_BYTES ? indented : new TextEncoder().encode(JSON.stringify(card));
}

const EMPTY_WIDTH_PX = 400;
const EMPTY_HEIGHT_PX = 600;

/** A plain grey portrait: programs that know cards as PNG alone need some picture. */
function emptyPicture(): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(13);
  const view = new DataView(header.buffer);
  view.setUint32(0, EMPTY_WIDTH_PX);
  view.setUint32(4, EMPTY_HEIGHT_PX);
  header[8] = 8; // bits of grey; colour type 0
  const rows = new Uint8Array((EMPTY_WIDTH_PX + 1) * EMPTY_HEIGHT_PX).fill(0x80);
  for (let y = 0; y < EMPTY_HEIGHT_PX; y++) rows[y * (EMPTY_WIDTH_PX + 1)] = 0; // no filter
  return joinPng([
    makeChunk("IHDR", header),
    makeChunk("IDAT", deflateSync(rows)),
    makeChunk("IEND", new Uint8Array()),
  ]);
}
