/** The Worker that judges CHARX files where they lie on disk, and reads what is used of them. charx.ts is its other end. */
import { isJsonObject, parseJsonBytes } from "../../json/type_guards.ts";
import { AppError } from "../../errors.ts";
import { bytesAt } from "../../storage/bytes_at.ts";
import {
  contentPieces,
  hasZipEnd,
  readZipDirectory,
  wholeContentOf,
  type ZipEntry,
} from "../../storage/zip/zip_reader.ts";
import { CARD_PATH, isPlainPath, MAX_PICTURE_BYTES, PICTURE_PATH } from "./charx_format.ts";
import { type AssetHolder, embeddedPath, mainIconOf } from "../card/main_icon.ts";
import { withoutCard } from "../png/png_card.ts";

/** What the serving thread sends: the path of a file. */
export type CharxOrder = string;

/** What it gets back. */
export interface CharxAnswer {
  /** The text of card.json. */
  card?: Uint8Array<ArrayBuffer>;
  /** The main picture in whatever format it has. */
  picture?: Uint8Array<ArrayBuffer>;
  /** All its other files. */
  others?: ZipEntry[];
  /** There is no directory of a ZIP. */
  isNoZip?: boolean;
  failure?: { code: "unprocessable" | "too_large"; message: string };
}

/** Entries of a file; emotions and backgrounds make hundreds. */
const MAX_ENTRIES = 10_000;
const MAX_CARD_BYTES = 10 * 1024 * 1024;
/** What a file may become beyond its own size: pictures are packed already. */
const MAX_INFLATED_BYTES = 64 * 1024 * 1024;
const PICTURE_ENDINGS = /\.(png|apng|jpe?g|jfif|webp|gif)$/i;

class Refused extends Error {
  constructor(readonly code: "unprocessable" | "too_large", found: string) {
    super(`Cannot read the CHARX file: ${found}`);
  }
}

async function open(path: string): Promise<CharxAnswer> {
  using file = await Deno.open(path);
  const { size } = await file.stat();
  if (!await hasZipEnd(file)) return { isNoZip: true };
  const { entries, beginsAt } = await readZipDirectory(file, MAX_ENTRIES);
  const files = judged(entries, size);
  const cardEntry = files.get(CARD_PATH);
  if (cardEntry === undefined) throw new Refused("unprocessable", "it holds no card.json");
  const card = await wholeContentOf(file, cardEntry);
  files.delete(CARD_PATH);
  const named = mainIconPath(card);
  const inside = named !== undefined && files.has(named) ? named : undefined;
  const picture = await pictureIn(file, files, inside, beginsAt);
  // The picture of the character is the same file then; any other is converted, and stays as it came.
  const own = inside ?? PICTURE_PATH;
  if (picture !== undefined && picture.path === own && isBarePng(own, picture.bytes)) files.delete(own);
  const others = [...files.values()];
  for (const entry of others) if (entry.method !== 0) await inflate(file, entry);
  return { card, picture: picture?.bytes, others };
}

async function pictureIn(
  file: Deno.FsFile,
  files: Map<string, ZipEntry>,
  inside: string | undefined,
  beginsAt: number,
): Promise<{ path?: string; bytes: Uint8Array<ArrayBuffer> } | undefined> {
  const isBehindPicture = inside === undefined && beginsAt > 0 && (await bytesAt(file, 0, 1))?.[0] === 0xff;
  if (isBehindPicture && beginsAt > MAX_PICTURE_BYTES) throw new Refused("too_large", "its main picture is too large");
  if (isBehindPicture) return { bytes: (await bytesAt(file, 0, beginsAt))! };
  const entry = files.get(inside ?? PICTURE_PATH);
  if (entry === undefined) return undefined;
  if (entry.sizeBytes > MAX_PICTURE_BYTES) throw new Refused("too_large", "its main picture is too large");
  return { path: entry.path, bytes: await wholeContentOf(file, entry) };
}

/** Gives all files by their exact names, the first of several; names that lead elsewhere are left out. Sizes are as stated. */
function judged(entries: readonly ZipEntry[], fileBytes: number): Map<string, ZipEntry> {
  const files = new Map<string, ZipEntry>();
  const maxBytes = fileBytes + MAX_INFLATED_BYTES;
  let total = 0;
  for (const entry of entries) {
    const { path, sizeBytes, packedBytes, method } = entry;
    if (!isPlainPath(path) || files.has(path)) continue;
    files.set(path, entry);
    total += sizeBytes;
    const isTooLarge = path === CARD_PATH && sizeBytes > MAX_CARD_BYTES;
    if (isTooLarge || packedBytes > fileBytes) throw new Refused("too_large", `its ${path} is too large`);
    if (total > maxBytes) throw new Refused("too_large", `its files together are larger than ${maxBytes} bytes`);
    if (method !== 0 && method !== 8) throw new Refused("unprocessable", `its ${path} is packed oddly`);
  }
  return files;
}

/** Goes through a file that is handed on as it is: what it becomes is no more than it says. */
async function inflate(file: Deno.FsFile, entry: ZipEntry): Promise<void> {
  for await (const _ of contentPieces(file, entry));
}

/** Says whether a picture comes out of the character's own file byte by byte. */
function isBarePng(path: string, picture: Uint8Array): boolean {
  if (!/\.png$/i.test(path)) return false;
  try {
    const bare = withoutCard(picture);
    return bare.length === picture.length && bare.every((byte, at) => byte === picture[at]);
  } catch {
    return false; // no PNG, whatever its name
  }
}

function mainIconPath(card: Uint8Array): string | undefined {
  const path = embeddedPath(mainIconOf(holderOf(card))?.uri);
  return path !== undefined && PICTURE_ENDINGS.test(path) ? path : undefined;
}

/** What is no card is told by whoever parses it whole. */
function holderOf(card: Uint8Array): AssetHolder {
  try {
    const json = parseJsonBytes(card);
    return isJsonObject(json) && isJsonObject(json.data) ? json as unknown as AssetHolder : { data: {} };
  } catch {
    return { data: {} };
  }
}

function failureOf(error: unknown): CharxAnswer["failure"] {
  if (error instanceof Refused) return { code: error.code, message: error.message };
  const isKnown = error instanceof AppError && (error.code === "unprocessable" || error.code === "too_large");
  if (isKnown) return { code: error.code as "unprocessable" | "too_large", message: error.message };
  return { code: "unprocessable", message: "Cannot read the CHARX file: it is damaged" };
}

// A page has a window and a Worker has not: importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  self.onmessage = async ({ data }: MessageEvent<CharxOrder>) => {
    const answer: CharxAnswer = await open(data).catch((error) => ({ failure: failureOf(error) }));
    const sent = [answer.card, answer.picture].flatMap((bytes) => bytes === undefined ? [] : [bytes.buffer]);
    self.postMessage(answer, sent);
  };
}
