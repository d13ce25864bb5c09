/** CHARX files: a ZIP with card.json and the pictures it names. Opened and made in a Worker, which ends with its task. */
import { AppError } from "../errors.ts";
import type { Card } from "./card.ts";
import { cardBytes, parseCardText } from "./card_text.ts";
import type { CharxAnswer, CharxOrder } from "./charx_worker.ts";
import { embeddedPath, mainIconOf, OWN_PICTURE, withMainIcon } from "./main_icon.ts";

/** What is used of a CHARX file. */
export interface CharxContent {
  card: Card;
  /** The main picture in whatever format it has. */
  picture?: Uint8Array;
  /** A ZIP of all its other files under their paths; the main picture too where it is no PNG. */
  assets?: Uint8Array<ArrayBuffer>;
}

/** Longest time a file may take; one of 20 MB takes a second. */
const TIMEOUT_MS = 30_000;

/** Says whether bytes may be a CHARX file: a ZIP, or a picture or program with a ZIP behind it. */
export function isCharx(bytes: Uint8Array): boolean {
  return startsWith(bytes, [0x50, 0x4b, 0x03, 0x04]) || startsWith(bytes, [0xff, 0xd8, 0xff]) ||
    startsWith(bytes, [0x4d, 0x5a]);
}

/**
 * Reads a CHARX file.
 *
 * @param bytes Handed over to the Worker: not to be used afterwards.
 * @throws {AppError} `unprocessable` for what is none, `too_large` when it inflates by more than 64 MiB.
 */
export async function readCharx(bytes: Uint8Array<ArrayBuffer>): Promise<CharxContent> {
  const { card: text, picture, assets } = await inWorker({ kind: "open", bytes }, [bytes.buffer]);
  if (text === undefined) throw new AppError("internal", "Cannot read the CHARX file: no card came back");
  const card = parseCardText(text);
  const isAlone = assets === undefined && picture !== undefined && embeddedPath(mainIconOf(card)?.uri) !== undefined;
  return { card: isAlone ? withMainIcon(card, OWN_PICTURE) : card, picture, assets };
}

/**
 * Makes a CHARX file.
 *
 * @param png The picture without a card inside; absent for a character without one. Not to be used afterwards.
 * @param assets What `readCharx` gave of other files. Not to be used afterwards.
 */
export async function makeCharx(
  card: Card,
  png?: Uint8Array<ArrayBuffer>,
  assets?: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer>> {
  const sent = [png, assets].flatMap((bytes) => bytes === undefined ? [] : [bytes.buffer]);
  const { zip } = await inWorker({ kind: "make", card: cardBytes(card), png, assets }, sent);
  if (zip === undefined) throw new AppError("internal", "Cannot make the CHARX file: nothing came back");
  return zip;
}

/** Gives the other files of a CHARX without one of them; `undefined` when none is left. @param assets Not to be used afterwards. */
export async function withoutAsset(
  assets: Uint8Array<ArrayBuffer>,
  path: string,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  return (await inWorker({ kind: "leave_out", assets, path }, [assets.buffer])).assets;
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
