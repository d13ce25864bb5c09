/** CHARX files: a ZIP with card.json and the pictures it names. Opened and made in a Worker, which ends with its task. */
import { AppError } from "../errors.ts";
import type { Card } from "./card.ts";
import { cardBytes, parseCardText } from "./card_text.ts";
import type { CharxAnswer, CharxOrder } from "./charx_worker.ts";

/** What is used of a CHARX file. */
export interface CharxContent {
  card: Card;
  /** The main picture in whatever format it has. */
  picture?: Uint8Array;
}

/** Longest time a file may take; one of 20 MB takes a second. */
const TIMEOUT_MS = 30_000;

/** Where the main picture lies in a file of ours. */
const PICTURE_PATH = "assets/icon/images/main.png";

/** V3: `ccdefault:` is the picture of the file itself, `embeded://` (sic) a path in the ZIP. */
const OWN_PICTURE = "ccdefault:";
const EMBEDDED = "embeded://";

/** Says whether bytes may be a CHARX file: a ZIP, or a picture or program with a ZIP behind it. */
export function isCharx(bytes: Uint8Array): boolean {
  return startsWith(bytes, [0x50, 0x4b, 0x03, 0x04]) || startsWith(bytes, [0xff, 0xd8, 0xff]) ||
    startsWith(bytes, [0x4d, 0x5a]);
}

/**
 * Reads a CHARX file.
 *
 * @param bytes Handed over to the Worker: not to be used afterwards.
 * @throws {AppError} `unprocessable` for what is none, `too_large` when it inflates beyond 64 MiB.
 */
export async function readCharx(bytes: Uint8Array<ArrayBuffer>): Promise<CharxContent> {
  const { card: text, picture } = await inWorker({ kind: "open", bytes }, [bytes.buffer]);
  if (text === undefined) throw new AppError("internal", "Cannot read the CHARX file: no card came back");
  const card = parseCardText(text);
  return { card: withOwnPicture(card), picture };
}

/** Gives the card of a CHARX for a file of another form, whose picture is the main icon. */
export function withOwnPicture(card: Card): Card {
  return withMainIcon(card, OWN_PICTURE, (uri) => uri.startsWith("embed"));
}

/** Makes a CHARX file. @param png The picture without a card inside; absent for a character without one. */
export async function makeCharx(card: Card, png?: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const written = png === undefined
    ? card
    : withMainIcon(card, EMBEDDED + PICTURE_PATH, (uri) => uri === OWN_PICTURE, true);
  const files: [string, Uint8Array<ArrayBuffer>][] = [["card.json", cardBytes(written)]];
  if (png !== undefined) files.push([PICTURE_PATH, png]);
  const { zip } = await inWorker({ kind: "make", files }, files.map(([, { buffer }]) => buffer));
  if (zip === undefined) throw new AppError("internal", "Cannot make the CHARX file: nothing came back");
  return zip;
}

/** Gives the card with another address of its main icon. @param isAdded Adds one where the card names none. */
function withMainIcon(card: Card, uri: string, isOld: (uri: string) => boolean, isAdded = false): Card {
  const { assets } = card.data;
  const icon = { type: "icon", uri, name: "main", ext: "png" };
  if (!Array.isArray(assets)) return isAdded ? { ...card, data: { ...card.data, assets: [icon] } } : card;
  const icons = assets.filter((asset) => asset?.type === "icon" && typeof asset.uri === "string" && isOld(asset.uri));
  const main = icons.find((asset) => asset.name === "main") ?? icons[0];
  if (main === undefined) return card;
  const changed = assets.map((asset) => asset === main ? { ...asset, uri, ext: "png" } : asset);
  return { ...card, data: { ...card.data, assets: changed } };
}

function inWorker(order: CharxOrder, transfer: Transferable[]): Promise<CharxAnswer> {
  const worker = new Worker(new URL("./charx_worker.ts", import.meta.url), { type: "module" });
  let timer: ReturnType<typeof setTimeout> | undefined;
  return new Promise<CharxAnswer>((resolve, reject) => {
    timer = setTimeout(() => reject(unreadable("it takes too long")), TIMEOUT_MS);
    worker.onmessage = ({ data }: MessageEvent<CharxAnswer>) => {
      if (data.failure === undefined) resolve(data);
      else reject(new AppError(data.failure.code, `Cannot read the CHARX file: ${data.failure.found}`));
    };
    worker.onerror = (event) => {
      event.preventDefault(); // else it would end the process
      reject(new AppError("internal", `Cannot work on a CHARX file: ${event.message}`));
    };
    worker.postMessage(order, transfer);
  }).finally(() => {
    clearTimeout(timer);
    worker.terminate();
  });
}

function unreadable(found: string): AppError {
  return new AppError("unprocessable", `Cannot read the CHARX file: ${found}`);
}

function startsWith(bytes: Uint8Array, begin: number[]): boolean {
  return begin.every((byte, index) => bytes[index] === byte);
}
