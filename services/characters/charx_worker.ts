/** The Worker that opens and makes CHARX files. Nothing is written under a name out of a file. charx.ts is its other end. */
import { strFromU8, strToU8, unzipSync, zipSync } from "fflate";
import { type AssetHolder, EMBEDDED, embeddedPath, mainIconOf, OWN_PICTURE, withMainIcon } from "./main_icon.ts";
import { withoutCard } from "./png_card.ts";

/** What the serving thread sends. */
export type CharxOrder =
  | { kind: "open"; bytes: Uint8Array<ArrayBuffer> }
  | {
    kind: "make";
    /** The text of card.json. */
    card: Uint8Array<ArrayBuffer>;
    /** The character's picture without a card inside. */
    png?: Uint8Array<ArrayBuffer>;
    /** `assets` of an answer. */
    assets?: Uint8Array<ArrayBuffer>;
  }
  | { kind: "leave_out"; assets: Uint8Array<ArrayBuffer>; path: string };

/** What it gets back. */
export interface CharxAnswer {
  /** The text of card.json. */
  card?: Uint8Array;
  picture?: Uint8Array;
  /** A ZIP of all other files under their paths; absent where there are none. */
  assets?: Uint8Array<ArrayBuffer>;
  zip?: Uint8Array<ArrayBuffer>;
  failure?: { code: "unprocessable" | "too_large"; found: string };
}

type Files = Record<string, Uint8Array>;

/** Entries of a file; emotions and backgrounds make hundreds. */
const MAX_ENTRIES = 10_000;
const MAX_CARD_BYTES = 10 * 1024 * 1024;
const MAX_PICTURE_BYTES = 20 * 1024 * 1024;
/** What a file may become beyond its own size: pictures are packed already. */
const MAX_INFLATED_BYTES = 64 * 1024 * 1024;
const MAX_PATH_CHARACTERS = 500;

const CARD_PATH = "card.json";
/** Where the picture lies in a file of ours, unless its card says another place. */
const PICTURE_PATH = "assets/icon/images/main.png";

/** The record behind which a ZIP ends. @see PKWARE APPNOTE, section 4.3.16 */
const END_BYTES = 22;
const END_MARK = 0x06054b50;
const MAX_COMMENT_BYTES = 65_535;

const PICTURE_ENDINGS = /\.(png|apng|jpe?g|jfif|webp|gif)$/i;

class Refused extends Error {
  constructor(readonly code: "unprocessable" | "too_large", found: string) {
    super(found);
  }
}

function open(bytes: Uint8Array): CharxAnswer {
  const { zip, behind } = zipPart(bytes);
  const files = filesIn(zip, bytes.length + MAX_INFLATED_BYTES);
  const { [CARD_PATH]: card, ...others } = files;
  if (card === undefined) throw new Refused("unprocessable", "it holds no card.json");
  const path = mainIconPath(card);
  const inside = path === undefined ? undefined : others[path];
  const picture = inside ?? (behind[0] === 0xff ? behind.slice() : others[PICTURE_PATH]);
  if (picture !== undefined && picture.length > MAX_PICTURE_BYTES) {
    throw new Refused("too_large", "its main picture is too large");
  }
  // The picture of the character is the same file then; any other is converted, and stays as it came.
  const own = inside === undefined ? PICTURE_PATH : path!;
  if (others[own] === picture && picture !== undefined && isBarePng(own, picture)) delete others[own];
  return { card, picture: picture?.slice(), assets: packed(others) };
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

function packed(files: Files): Uint8Array<ArrayBuffer> | undefined {
  return Object.keys(files).length === 0 ? undefined : zipOf(files);
}

function zipOf(files: Files): Uint8Array<ArrayBuffer> {
  // A picture is compressed already.
  const tree = Object.entries(files).map(([path, content]) =>
    [path, [content, { level: path.endsWith(".json") ? 6 : 0 }]] as const
  );
  return zipSync(Object.fromEntries(tree) as Parameters<typeof zipSync>[0]) as Uint8Array<ArrayBuffer>;
}

/** The ZIP, which may stand behind a picture: its directory is found from the end, its entries from its own begin. */
function zipPart(bytes: Uint8Array): { zip: Uint8Array; behind: Uint8Array } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const lowest = Math.max(0, bytes.length - END_BYTES - MAX_COMMENT_BYTES);
  for (let at = bytes.length - END_BYTES; at >= lowest; at--) {
    if (view.getUint32(at, true) !== END_MARK) continue;
    const [entries, size, offset] = [
      view.getUint16(at + 10, true),
      view.getUint32(at + 12, true),
      view.getUint32(at + 16, true),
    ];
    if (entries > MAX_ENTRIES) throw new Refused("too_large", `it has more than ${MAX_ENTRIES} entries`);
    const begin = at - size - offset;
    if (begin < 0) throw new Refused("unprocessable", "its directory is out of place");
    // Where the offsets count from the picture's begin, the first entry tells where the picture ends.
    const first = begin === 0 && size >= 46 ? view.getUint32(offset + 42, true) : 0;
    return { zip: bytes.subarray(begin), behind: bytes.subarray(0, begin || first) };
  }
  throw new Refused("unprocessable", "it is no ZIP");
}

/**
 * Gives all files, each by its exact name, the first of several; names that lead elsewhere are left out. Sizes are checked
 * as stated, and no more than stated is inflated.
 */
function filesIn(zip: Uint8Array, maxBytes: number): Files {
  const taken = new Set<string>();
  let total = 0;
  return unzipSync(zip, {
    filter({ name, size, originalSize, compression }) {
      if (!isPlainPath(name) || taken.has(name)) return false;
      taken.add(name);
      total += originalSize;
      const isTooLarge = name === CARD_PATH && originalSize > MAX_CARD_BYTES;
      if (isTooLarge || size > zip.length) throw new Refused("too_large", `its ${name} is too large`);
      if (total > maxBytes) throw new Refused("too_large", `its files together are larger than ${maxBytes} bytes`);
      if (compression !== 0 && compression !== 8) throw new Refused("unprocessable", `its ${name} is packed oddly`);
      return true;
    },
  });
}

/** Says whether a name leads to a file below, on every system that may once unpack it. */
function isPlainPath(name: string): boolean {
  if (name.length > MAX_PATH_CHARACTERS || /[\\:\p{Cc}]/u.test(name)) return false;
  return name.split("/").every((part) => part !== "" && part !== "." && part !== ".." && part !== "__proto__");
}

function mainIconPath(card: Uint8Array): string | undefined {
  const path = embeddedPath(mainIconOf(holderOf(card))?.uri);
  return path !== undefined && PICTURE_ENDINGS.test(path) ? path : undefined;
}

function holderOf(card: Uint8Array): AssetHolder {
  const json = JSON.parse(strFromU8(card).replace(/^\uFEFF/, ""));
  return typeof json?.data === "object" && json.data !== null ? json : { data: {} };
}

function make({ card, png, assets }: Extract<CharxOrder, { kind: "make" }>): CharxAnswer {
  const others: Files = assets === undefined ? {} : unzipSync(assets);
  if (png === undefined) return { zip: zipOf({ [CARD_PATH]: card, ...others }) };
  const placed = withPlace(holderOf(card), others);
  const picture = placed.path === undefined ? {} : { [placed.path]: png };
  return { zip: zipOf({ [CARD_PATH]: strToU8(JSON.stringify(placed.card)), ...picture, ...others }) };
}

/** Gives where the character's picture lies beside the other files, and the card that says so. */
function withPlace(card: AssetHolder, others: Files): { card: AssetHolder; path?: string } {
  const icon = mainIconOf(card);
  const named = embeddedPath(icon?.uri);
  if (named !== undefined && Object.hasOwn(others, named)) return { card }; // the file that the picture was made of
  if (named !== undefined && isPlainPath(named) && /\.png$/i.test(named)) return { card, path: named };
  let path = PICTURE_PATH;
  for (let n = 2; Object.hasOwn(others, path); n++) path = PICTURE_PATH.replace(".png", `-${n}.png`);
  const isOurs = icon === undefined || named !== undefined || icon.uri === OWN_PICTURE;
  return { card: isOurs ? withMainIcon(card, EMBEDDED + path) : card, path };
}

function leaveOut({ assets, path }: Extract<CharxOrder, { kind: "leave_out" }>): CharxAnswer {
  const { [path]: _, ...others } = unzipSync(assets);
  return { assets: packed(others) };
}

function answerTo(order: CharxOrder): CharxAnswer {
  try {
    if (order.kind === "open") return open(order.bytes);
    return order.kind === "make" ? make(order) : leaveOut(order);
  } catch (error) {
    if (error instanceof Refused) return { failure: { code: error.code, found: error.message } };
    return { failure: { code: "unprocessable", found: "it is damaged" } };
  }
}

// A page has a window and a Worker has not: importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  self.onmessage = ({ data }: MessageEvent<CharxOrder>) => {
    const answer = answerTo(data);
    const sent = [answer.assets, answer.zip].flatMap((bytes) => bytes === undefined ? [] : [bytes.buffer]);
    self.postMessage(answer, sent);
  };
}
