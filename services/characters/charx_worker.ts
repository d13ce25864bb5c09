/** The Worker that opens and makes CHARX files. Nothing is written under a name out of a file. charx.ts is its other end. */
import { strFromU8, unzipSync, zipSync } from "fflate";

/** What the serving thread sends. */
export type CharxOrder =
  | { kind: "open"; bytes: Uint8Array<ArrayBuffer> }
  | { kind: "make"; files: [path: string, content: Uint8Array<ArrayBuffer>][] };

/** What it gets back. */
export interface CharxAnswer {
  /** The text of card.json. */
  card?: Uint8Array;
  picture?: Uint8Array;
  zip?: Uint8Array<ArrayBuffer>;
  failure?: { code: "unprocessable" | "too_large"; found: string };
}

/** Entries of a file; emotions and backgrounds make hundreds. */
const MAX_ENTRIES = 10_000;
const MAX_CARD_BYTES = 10 * 1024 * 1024;
const MAX_PICTURE_BYTES = 20 * 1024 * 1024;

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
  const card = entry(zip, "card.json", MAX_CARD_BYTES);
  if (card === undefined) throw new Refused("unprocessable", "it holds no card.json");
  const path = mainIconPath(card);
  const inside = path === undefined ? undefined : entry(zip, path, MAX_PICTURE_BYTES);
  const picture = inside ?? (behind[0] === 0xff ? behind.slice() : undefined);
  return { card, picture };
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

/** Gives one entry by its exact name, or `undefined`. Sizes are checked as stated, and no more than stated is inflated. */
function entry(zip: Uint8Array, path: string, maxBytes: number): Uint8Array | undefined {
  let isTaken = false;
  const found = unzipSync(zip, {
    filter({ name, size, originalSize, compression }) {
      if (name !== path || isTaken) return false;
      isTaken = true;
      if (originalSize > maxBytes || size > maxBytes) throw new Refused("too_large", `its ${path} is too large`);
      if (compression !== 0 && compression !== 8) throw new Refused("unprocessable", `its ${path} is packed oddly`);
      return true;
    },
  });
  return found[path];
}

function mainIconPath(card: Uint8Array): string | undefined {
  const assets = JSON.parse(strFromU8(card).replace(/^\uFEFF/, ""))?.data?.assets;
  const icons: { uri: string; name?: unknown }[] = Array.isArray(assets)
    ? assets.filter((asset) => asset?.type === "icon" && typeof asset.uri === "string")
    : [];
  const main = icons.find(({ name }) => name === "main") ?? icons[0];
  // The specification's word has one d; files with two are met.
  const path = /^embedd?ed:\/\/(.+)$/i.exec(main?.uri ?? "")?.[1];
  return path !== undefined && PICTURE_ENDINGS.test(path) ? path : undefined;
}

function make(files: [string, Uint8Array][]): CharxAnswer {
  const tree = files.map(([path, content]) =>
    // A picture is compressed already.
    [path, [content, { level: path.endsWith(".json") ? 6 : 0 }]] as const
  );
  return { zip: zipSync(Object.fromEntries(tree) as Parameters<typeof zipSync>[0]) as Uint8Array<ArrayBuffer> };
}

function answerTo(order: CharxOrder): CharxAnswer {
  try {
    return order.kind === "open" ? open(order.bytes) : make(order.files);
  } catch (error) {
    if (error instanceof Refused) return { failure: { code: error.code, found: error.message } };
    return { failure: { code: "unprocessable", found: "it is damaged" } };
  }
}

// A page has a window and a Worker has not: importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  self.onmessage = ({ data }: MessageEvent<CharxOrder>) => self.postMessage(answerTo(data));
}
