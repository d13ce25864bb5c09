/** Card files for tests, put together byte by byte as other programs write them. Origin: protocols' notes on formats, no file of anybody's. */
import { Buffer } from "node:buffer";
import { crc32, deflateSync } from "node:zlib";

/** A chunk to write. */
export type RawChunk = [type: string, data: Uint8Array];

const latin1 = (text: string) => new Uint8Array(Buffer.from(text, "latin1"));
const concat = (parts: Uint8Array[]) => new Uint8Array(Buffer.concat(parts));

/** Encodes a chunk, independently of the code under test. */
export function rawChunk([type, data]: RawChunk, crc?: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(12 + data.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, data.length);
  bytes.set(latin1(type), 4);
  bytes.set(data, 8);
  view.setUint32(8 + data.length, crc ?? crc32(bytes.subarray(4, 8 + data.length)));
  return bytes;
}

/** The PNG signature. */
export const SIGNATURE = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** IHDR of an image, eight bits a channel. @param colorType 2 is RGB, 6 with alpha. */
export function header(widthPx: number, heightPx: number, colourType = 2): RawChunk {
  const data = new Uint8Array(13);
  const view = new DataView(data.buffer);
  view.setUint32(0, widthPx);
  view.setUint32(4, heightPx);
  data.set([8, colourType], 8);
  return ["IHDR", data];
}

/** IDAT of an RGB image with a gradient, so that no two columns are alike. */
export function pixels(widthPx: number, heightPx: number): RawChunk {
  const rows = new Uint8Array((widthPx * 3 + 1) * heightPx);
  for (let y = 0; y < heightPx; y++) {
    for (let x = 0; x < widthPx; x++) {
      const at = y * (widthPx * 3 + 1) + 1 + x * 3;
      rows.set([(x * 255) / widthPx, (y * 255) / heightPx, (x * 7 + y * 13) & 255], at);
    }
  }
  return ["IDAT", new Uint8Array(deflateSync(rows))];
}

export const END: RawChunk = ["IEND", new Uint8Array()];

/** A PNG of arbitrary chunks. */
export function pngOf(...chunks: RawChunk[]): Uint8Array<ArrayBuffer> {
  return concat([SIGNATURE, ...chunks.map((chunk) => rawChunk(chunk))]);
}

/** An image without a card. */
export function plainPng(widthPx = 8, heightPx = 12): Uint8Array<ArrayBuffer> {
  return pngOf(header(widthPx, heightPx), pixels(widthPx, heightPx), END);
}

/** A tEXt chunk with the value as base64 of its JSON. */
export function cardChunk(keyword: string, card: unknown): RawChunk {
  return ["tEXt", latin1(`${keyword}\0${Buffer.from(JSON.stringify(card)).toString("base64")}`)];
}

/** A zTXt chunk. */
export function deflatedChunk(keyword: string, text: string): RawChunk {
  return ["zTXt", concat([latin1(`${keyword}\0\0`), deflateSync(latin1(text))])];
}

/** An iTXt chunk, deflated or plain. */
export function internationalChunk(keyword: string, text: string, isDeflated: boolean): RawChunk {
  const bytes = Buffer.from(text);
  const flags = `${keyword}\0${isDeflated ? "\x01" : "\0"}\0en\0Karte\0`;
  return ["iTXt", concat([latin1(flags), isDeflated ? deflateSync(bytes) : bytes])];
}

/** Chunks of a PNG, read without the code under test. */
export function chunksOf(png: Uint8Array): { type: string; bytes: Uint8Array; text: string }[] {
  const view = new DataView(png.buffer, png.byteOffset, png.byteLength);
  const chunks = [];
  for (let at = 8; at < png.length;) {
    const end = at + 12 + view.getUint32(at);
    const bytes = png.subarray(at, end);
    const data = Buffer.from(bytes.subarray(8, -4));
    chunks.push({ type: Buffer.from(bytes.subarray(4, 8)).toString("latin1"), bytes, text: data.toString("latin1") });
    at = end;
  }
  return chunks;
}

/** The card under a keyword, as SillyTavern's reader finds it: the first tEXt of that name, base64 of UTF-8. */
// deno-lint-ignore no-explicit-any
export function cardUnder(png: Uint8Array, keyword: string): any {
  const chunk = chunksOf(png).find(({ type, text }) =>
    type === "tEXt" && text.slice(0, text.indexOf("\0")).toLowerCase() === keyword
  );
  if (chunk === undefined) return undefined;
  return JSON.parse(Buffer.from(chunk.text.slice(keyword.length + 1), "base64").toString("utf8"));
}

/** Reads a card like SillyTavern: `ccv3` if present, otherwise `chara`. */
// deno-lint-ignore no-explicit-any
export function sillyTavernReads(png: Uint8Array): any {
  return cardUnder(png, "ccv3") ?? cardUnder(png, "chara");
}

/** A card as SillyTavern 1.12 keeps it: data, copies of it at the root, fields of its own, a book without extensions. */
export function sillyTavernCard(name: string) {
  const data = {
    name,
    description: `{{char}} met {{user}} in 日本. é 🦊 $& "quoted"\r\n<br>`,
    personality: "kind",
    scenario: "",
    first_mes: "Hello {{user}}, I am {{char}}.",
    mes_example: "<START>\n{{user}}: Hi\n{{char}}: Hi!",
    creator_notes: "<img src=x onerror=alert(1)> notes",
    system_prompt: "",
    post_history_instructions: "",
    tags: ["Fox", "tavern"],
    creator: "somebody",
    character_version: "1.1",
    alternate_greetings: ["Good evening, {{user}}.", "Psst!"],
    extensions: {
      talkativeness: "0.5",
      fav: false,
      world: "",
      depth_prompt: { prompt: "", depth: 4, role: "system" },
      chub: { id: 12345, full_path: "somebody/fox", nested: { __odd: [1.5, null, -0.25e-3] } },
    },
    group_only_greetings: [],
    character_book: {
      entries: [{
        id: 0,
        keys: ["fox", "C++"],
        secondary_keys: [],
        comment: "Foxes",
        content: "Foxes are red.",
        constant: false,
        selective: true,
        insertion_order: 100,
        enabled: true,
        position: "after_char",
        use_regex: true,
        extensions: { position: 1, exclude_recursion: false, display_index: 0, probability: 100 },
      }],
      name: "Fox lore",
    },
    unknown_to_all: { kept: true },
  };
  const { description, personality, scenario, first_mes, mes_example, tags } = data;
  return {
    name,
    description,
    personality,
    scenario,
    first_mes,
    mes_example,
    tags,
    creatorcomment: data.creator_notes,
    avatar: "none",
    chat: "Fox - 2026-1-1@10h00m",
    talkativeness: "0.5",
    fav: false,
    spec: "chara_card_v2",
    spec_version: "2.0",
    data,
    create_date: "2026-1-1 @10h 00m 00s 000ms",
  };
}

/** A PNG as SillyTavern writes it: image, several IDAT, foreign chunks, then `chara` and `ccv3` before the end. */
export function sillyTavernPng(card: unknown, widthPx = 8, heightPx = 12): Uint8Array<ArrayBuffer> {
  const [, data] = pixels(widthPx, heightPx);
  const half = Math.ceil(data.length / 2);
  return pngOf(
    header(widthPx, heightPx),
    ["iCCP", latin1("profile\0\0not looked into")],
    ["acTL", new Uint8Array([0, 0, 0, 1, 0, 0, 0, 0])],
    ["tEXt", latin1("Software\0somebody's tool")],
    ["IDAT", data.subarray(0, half)],
    ["IDAT", data.subarray(half)],
    cardChunk("chara", card),
    cardChunk("ccv3", { ...card as object, spec: "chara_card_v3", spec_version: "3.0" }),
    END,
  );
}

/** An Exif block whose comment is this, as exiftool and SillyTavern's older library lay it out. */
export function exifComment(comment: string | Uint8Array, letters = "ASCII\0\0\0"): Uint8Array<ArrayBuffer> {
  const text = concat([latin1(letters), typeof comment === "string" ? new Uint8Array(Buffer.from(comment)) : comment]);
  const block = new DataView(new ArrayBuffer(44));
  block.setUint16(0, 0x4949);
  block.setUint16(2, 42, true);
  block.setUint32(4, 8, true);
  const directory = (at: number, tag: number, type: number, count: number, value: number) => {
    block.setUint16(at, 1, true);
    block.setUint16(at + 2, tag, true);
    block.setUint16(at + 4, type, true);
    block.setUint32(at + 6, count, true);
    block.setUint32(at + 10, value, true);
  };
  directory(8, 0x8769, 4, 1, 26);
  directory(26, 0x9286, 7, text.length, 44);
  return concat([new Uint8Array(block.buffer), text]);
}

/** A JPEG with an Exif block at its start. */
export function jpegWithExif(jpeg: Uint8Array, exif: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = new Uint8Array(4);
  new DataView(head.buffer).setUint16(0, 0xffe1);
  new DataView(head.buffer).setUint16(2, exif.length + 8);
  return concat([jpeg.subarray(0, 2), head, latin1("Exif\0\0"), exif, jpeg.subarray(2)]);
}

/** An extended WebP with an Exif block at its end. */
export function webpWithExif(webp: Uint8Array, exif: Uint8Array): Uint8Array<ArrayBuffer> {
  const chunk = new Uint8Array(8);
  chunk.set(latin1("EXIF"));
  new DataView(chunk.buffer).setUint32(4, exif.length, true);
  const whole = concat([webp, chunk, exif, new Uint8Array(exif.length % 2)]);
  new DataView(whole.buffer).setUint32(4, whole.length - 8, true);
  whole[20]! |= 0x08; // Sets the flag of the block.
  return whole;
}
