/**
 * CHARX files: a ZIP with card.json and the pictures it names. One is judged by a Worker, which ends with its task; its
 * other files are then copied as they lie in it, piece by piece.
 */
import { AppError } from "../../errors.ts";
import { yieldIfTickUsedUp } from "../../async/yield_to_event_loop.ts";
import type { ZipEntry } from "../../storage/zip/zip_reader.ts";
import { heldEntry, type PackedEntry, writeZip, zipBytes } from "../../storage/zip/zip_writer.ts";
import type { Card } from "../card/card.ts";
import type { CardFiles } from "./card_assets.ts";
import { cardBytes, parseCardText } from "../card/card_text.ts";
import { CARD_PATH, isPlainPath, MAX_CHARX_BYTES, MAX_PICTURE_BYTES, PICTURE_PATH } from "./charx_format.ts";
import type { CharxAnswer, CharxOrder } from "./charx_worker.ts";
import { filesInPng, withoutAssetChunks } from "../png/png_assets.ts";
import { withoutCard } from "../png/png_card.ts";
import { EMBEDDED, embeddedPath, mainIconOf, OWN_PICTURE, withMainIcon } from "../card/main_icon.ts";

/** What is used of a CHARX file. */
export interface CharxContent {
  card: Card;
  /** The main picture in whatever format it has. */
  picture?: Uint8Array<ArrayBuffer>;
  /** All its other files under their paths; the main picture too where it is no PNG. */
  others: ZipEntry[];
}

/** Longest time a file may take: it is read once, and one of 200 MB takes two seconds on a disk at home. */
const TIMEOUT_MS = 30_000;
const TIMEOUT_PER_MIB_MS = 500;
const MIB = 1024 * 1024;

/** A step of packing, of a millisecond or so. */
const STEP_BYTES = 64 * 1024;

/**
 * Reads a CHARX file that lies on disk.
 *
 * @returns `undefined` for a file without the directory that every ZIP ends with.
 * @throws {AppError} `unprocessable` for what is none, `too_large` for one of more than 512 MiB or one that inflates by
 *   more than 64 MiB.
 */
export async function readCharx(path: string): Promise<CharxContent | undefined> {
  const { size } = await Deno.stat(path);
  if (size > MAX_CHARX_BYTES) {
    throw new AppError("too_large", `The CHARX file is larger than ${MAX_CHARX_BYTES} bytes`);
  }
  const answer = await inWorker(path, TIMEOUT_MS + size / MIB * TIMEOUT_PER_MIB_MS);
  if (answer.isNoZip) return undefined;
  const { card: text, picture, others = [] } = answer;
  if (text === undefined) throw new AppError("internal", "Cannot read the CHARX file: no card came back");
  const card = parseCardText(text);
  const isAlone = others.length === 0 && picture !== undefined && embeddedPath(mainIconOf(card)?.uri) !== undefined;
  return { card: isAlone ? withMainIcon(card, OWN_PICTURE) : card, picture, others };
}

/** A CHARX that is ready to be written. */
export interface MadeCharx {
  sizeBytes: number;
  /** The import refuses such a file. */
  isTooLarge: boolean;
  /** Gives it from its begin, each time the same bytes. */
  pieces(): AsyncGenerator<Uint8Array>;
}

/**
 * Makes a CHARX file.
 *
 * @param png The file of the character; absent for one without a picture.
 * @param others Its other files, which have to stay open while it is written.
 */
export async function makeCharx(card: Card, png?: Uint8Array, others?: CardFiles): Promise<MadeCharx> {
  const paths = new Set([CARD_PATH, PICTURE_PATH, ...others?.entries.map(({ path }) => path) ?? []]);
  const inside = png === undefined ? { card, entries: [] } : await filesInPng(png, card, paths);
  const taken = new Set([...others?.entries ?? [], ...inside.entries].map(({ path }) => path));
  const placed = png === undefined ? { card } : withPlace(inside.card, taken);
  const text = cardBytes(placed.card);
  const own = [await deflated(CARD_PATH, text)];
  let pictureBytes = 0;
  if (png !== undefined && placed.path !== undefined) {
    const picture = withoutAssetChunks(withoutCard(png));
    pictureBytes = picture.length;
    own.push(heldEntry(placed.path, picture));
  }
  own.push(...inside.entries);
  const sizeBytes = zipBytes([...own, ...others?.entries ?? []]);
  return {
    sizeBytes,
    isTooLarge: sizeBytes > MAX_CHARX_BYTES || pictureBytes > MAX_PICTURE_BYTES,
    pieces: () => writeZip([...own, ...others?.packed() ?? []], { isLarge: false }),
  };
}

/** Gives where the character's picture lies beside the other files, and the card that says so. */
function withPlace(card: Card, others: ReadonlySet<string>): { card: Card; path?: string } {
  const icon = mainIconOf(card);
  const named = embeddedPath(icon?.uri);
  if (named !== undefined && others.has(named)) return { card }; // the file that the picture was made of
  if (named !== undefined && isPlainPath(named) && /\.png$/i.test(named)) return { card, path: named };
  let path = PICTURE_PATH;
  for (let n = 2; others.has(path); n++) path = PICTURE_PATH.replace(".png", `-${n}.png`);
  const isOurs = icon === undefined || named !== undefined || icon.uri === OWN_PICTURE;
  return { card: isOurs ? withMainIcon(card, EMBEDDED + path) : card, path };
}

async function deflated(path: string, bytes: Uint8Array<ArrayBuffer>): Promise<PackedEntry> {
  const steps = async function* (): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    for (let at = 0; at < bytes.length; at += STEP_BYTES) {
      await yieldIfTickUsedUp();
      yield bytes.subarray(at, at + STEP_BYTES);
    }
  };
  const stream = ReadableStream.from(steps()).pipeThrough(new CompressionStream("deflate-raw"));
  return heldEntry(path, bytes, await new Response(stream).bytes());
}

function inWorker(order: CharxOrder, timeoutMs: number): Promise<CharxAnswer> {
  const worker = new Worker(new URL("./charx_worker.ts", import.meta.url), { type: "module" });
  let timer: ReturnType<typeof setTimeout> | undefined;
  return new Promise<CharxAnswer>((resolve, reject) => {
    timer = setTimeout(
      () => reject(new AppError("unprocessable", "Cannot read the CHARX file: it takes too long")),
      timeoutMs,
    );
    worker.onmessage = ({ data }: MessageEvent<CharxAnswer>) => {
      if (data.failure === undefined) resolve(data);
      else reject(new AppError(data.failure.code, data.failure.message));
    };
    worker.onerror = (event) => {
      event.preventDefault(); // else it would end the process
      reject(new AppError("internal", `Cannot work on a CHARX file: ${event.message}`));
    };
    worker.postMessage(order);
  }).finally(() => {
    clearTimeout(timer);
    worker.terminate();
  });
}
