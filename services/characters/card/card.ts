/**
 * Parses character cards of any version into V3, and reads and writes their text in files, plain or base64. Unknown
 * fields are preserved; only renamed fields and wrong types are corrected.
 */
import { AppError } from "../../errors.ts";
import { convertForeignCard } from "./foreign_cards.ts";
import { UNREAD } from "../../json/ledger.ts";
import {
  asNumber,
  asObject,
  findJsonFault,
  getOwn,
  isFilled,
  isJsonObject,
  type JsonObject,
} from "../../json/type_guards.ts";
import { Buffer } from "node:buffer";

/** The data of a card. Unknown fields are preserved. */
export interface CardData {
  name: string;
  description: string;
  personality: string;
  scenario: string;
  first_mes: string;
  mes_example: string;
  creator_notes: string;
  system_prompt: string;
  post_history_instructions: string;
  alternate_greetings: string[];
  group_only_greetings: string[];
  tags: string[];
  creator: string;
  character_version: string;
  /** Data of programs, one key each. Never modified. */
  extensions: Record<string, unknown>;
  /** The character's lorebook. */
  character_book?: CardBook;
  /** Replaces the name in `{{char}}`. */
  nickname?: string;
  [field: string]: unknown;
}

/** A lorebook. */
interface CardBook {
  entries: CardBookEntry[];
  [field: string]: unknown;
}

/** One entry of a lorebook. */
interface CardBookEntry {
  keys: string[];
  content: string;
  enabled: boolean;
  insertion_order: number;
  extensions: Record<string, unknown>;
  [field: string]: unknown;
}

/** A V3 card. */
export interface Card {
  spec: string;
  /** A version number from `"3.0"`. */
  spec_version: string;
  data: CardData;
  [field: string]: unknown;
}

/** The six V1 fields. Other programs write copies of them at the root. */
const V1_FIELDS = ["name", "description", "personality", "scenario", "first_mes", "mes_example"] as const;
const TEXT_FIELDS = [
  ...V1_FIELDS,
  ...["creator_notes", "system_prompt", "post_history_instructions", "creator", "character_version"] as const,
];
const LIST_FIELDS = ["alternate_greetings", "group_only_greetings", "tags"] as const;
const DATA_FIELDS = [...TEXT_FIELDS, ...LIST_FIELDS, "extensions", "character_book"];
/** V3 fields, which are removed from V2 copies. */
const V3_FIELDS = [
  ...["group_only_greetings", "nickname", "creator_notes_multilingual", "source"],
  ...["creation_date", "modification_date", "assets"],
];
/** Fields that Parlor uses, shows or keeps up to date. */
export const KNOWN_DATA_FIELDS: readonly string[] = [...DATA_FIELDS, ...V3_FIELDS];
/** The same of the root, where other programs write copies. */
export const KNOWN_ROOT_FIELDS: readonly string[] = [
  ...["spec", "spec_version", "data", "tags", "creatorcomment", ...V1_FIELDS],
  ...["avatar", "chat", "create_date", "talkativeness", "fav"],
];
/** Field names of Pygmalion and its editors. */
const PYGMALION_FIELDS: Record<string, string> = {
  char_name: "name",
  char_persona: "description",
  char_greeting: "first_mes",
  example_dialogue: "mes_example",
  world_scenario: "scenario",
};
/** Written by an old editor for an empty field. */
const PLACEHOLDER_NOTES = "Creator's notes go here.";

/**
 * Parses a card of any version: V1, V2, V3 or Pygmalion, or a character in the own format of Agnai or RisuAI.
 *
 * @returns A new object, which shares unchanged parts with `json`.
 * @throws {AppError} `unprocessable` if it isn't an object, has no usable name, or is nested deeper than 100 levels
 */
export function parseCard(json: unknown): Card {
  assertPlainJson(json);
  if (!isJsonObject(json)) throw createUnreadableError("it isn't a JSON object");
  return parseNative(convertForeignCard(json) ?? json);
}

/**
 * Returns the card in a body that may contain it as `card`, alone or among a character's fields as the API sends them.
 */
export function unwrapCard(body: unknown): unknown {
  const { card, spec, data } = asObject(body);
  const isWrapped = typeof card === "object" && card !== null && spec === undefined && data === undefined;
  return isWrapped ? card : body;
}

function parseNative(json: JsonObject): Card {
  const { spec } = json;
  if (typeof spec === "string" && !/^chara_card_v\d+$/.test(spec)) {
    throw createUnreadableError(`its "spec" is "${spec.slice(0, 40)}"`);
  }
  const card = isJsonObject(json.data) ? parseWrapped(json, json.data) : parseFlat(json);
  if (card.data.name.trim() === "") throw createUnreadableError("it has no name");
  return card;
}

/**
 * Converts a card to V2, for programs without V3 support.
 *
 * V3 requires that decorator lines are removed from V2 copies.
 *
 * @see docs/protocols/cards.md
 */
export function toV2(card: Card): JsonObject {
  const data: JsonObject = { ...card.data };
  for (const field of V3_FIELDS) delete data[field];
  const { character_book: book } = card.data;
  if (book !== undefined) {
    const entries = book.entries.map((entry) => ({ ...entry, content: removeDecorators(entry.content) }));
    data.character_book = { ...book, extensions: asObject(book.extensions), entries };
  }
  return { ...card, spec: "chara_card_v2", spec_version: "2.0", data };
}

/** Maximum length of a folder name in characters. Longer names are truncated. */
export const MAX_FOLDER_LENGTH = 200;

/**
 * Returns the folder of a character, which is stored in its card as `extensions.parlor.folder`, so that it moves with
 * the card.
 */
export function getFolder({ data }: Card): string | null {
  const { folder } = asObject(data.extensions.parlor);
  return typeof folder === "string" && folder.trim() !== "" ? folder.trim().slice(0, MAX_FOLDER_LENGTH) : null;
}

/** Returns a card to share, without the folder: that shows how its owner sorts characters. */
export function withoutFolder(card: Card): Card {
  const { parlor, ...others } = card.data.extensions;
  if (getFolder(card) === null) return card;
  const { folder: _, ...rest } = asObject(parlor);
  const extensions = Object.keys(rest).length === 0 ? others : { ...others, parlor: rest };
  return { ...card, data: { ...card.data, extensions } };
}

/** Removes the `@@decorator` lines at the start of lorebook content. */
export function removeDecorators(content: string): string {
  return content.replace(/^(?:\s*@@@?[A-Za-z_][^\n]*(?:\n|$))+/, "");
}

/** Parses a card with its fields in `data`: V2 and V3. */
function parseWrapped(root: JsonObject, received: JsonObject): Card {
  const data = parseData(received);
  const version = Number.parseFloat(String(root.spec_version));
  const isV3 = root.spec === "chara_card_v3" && version >= 3 && version < 4;
  const card: Card = {
    ...root,
    spec: "chara_card_v3",
    spec_version: isV3 ? String(root.spec_version).padEnd(3, ".0") : "3.0",
    data,
  };
  // Copies at the root are updated, or V1 readers would show old values.
  for (const field of [...V1_FIELDS, "tags"] as const) if (field in root) card[field] = data[field];
  if ("creatorcomment" in root) card.creatorcomment = data.creator_notes;
  return card;
}

/** Parses a card with its fields at the root: V1, Pygmalion, and broken exports of later versions. */
function parseFlat(root: JsonObject): Card {
  const renamed: JsonObject = Object.hasOwn(root, "char_name")
    ? Object.fromEntries(Object.entries(root).map(([key, value]) => [getOwn(PYGMALION_FIELDS, key) ?? key, value]))
    : root;
  const inData = (key: string) => DATA_FIELDS.includes(key) || key === "creatorcomment" || V3_FIELDS.includes(key);
  const entries = Object.entries(renamed);
  const found = entries.filter(([key]) => inData(key));
  if (entries.length > found.length && found.length < 2) {
    const isNamed = Object.hasOwn(renamed, "name");
    throw createUnreadableError(`it has no card fields${isNamed ? " except a name" : ""}`);
  }
  const { creatorcomment, ...fields }: JsonObject = Object.fromEntries(found);
  const data = parseData({ ...fields, creator_notes: creatorcomment || fields.creator_notes });
  return {
    ...Object.fromEntries(entries.filter(([key]) => !inData(key))),
    spec: "chara_card_v3",
    spec_version: "3.0",
    data,
  };
}

function parseData(received: JsonObject): CardData {
  const data: JsonObject = { ...received };
  for (const field of TEXT_FIELDS) data[field] = toText(data[field]);
  if (data.creator_notes === PLACEHOLDER_NOTES) data.creator_notes = "";
  for (const field of LIST_FIELDS) data[field] = toTexts(data[field], field === "tags");
  data.extensions = asObject(data.extensions);
  if ("nickname" in data) data.nickname = toText(data.nickname);
  if (isJsonObject(data.character_book)) data.character_book = parseBook(data.character_book);
  else {
    if (isFilled(data.character_book)) {
      data.extensions = keepUnread(data.extensions, { character_book: data.character_book });
    }
    delete data.character_book;
  }
  return data as CardData;
}

function parseBook(book: JsonObject): CardBook {
  // SillyTavern's lorebook files contain an object of entries by number.
  const entries = Array.isArray(book.entries) ? book.entries : Object.values(asObject(book.entries));
  const unread = entries.filter((entry) => !isJsonObject(entry));
  return {
    ...book,
    ...(unread.length > 0 && { extensions: keepUnread(book.extensions, { entries: unread }) }),
    entries: parseBookEntries(entries),
  };
}

/** Parses the entries of a lorebook. */
export function parseBookEntries(entries: readonly unknown[]): CardBookEntry[] {
  return entries.filter(isJsonObject).map((entry) => ({
    ...entry,
    keys: toTexts(entry.keys ?? entry.key, true),
    content: toText(entry.content),
    extensions: asObject(entry.extensions),
    enabled: typeof entry.enabled === "boolean" ? entry.enabled : entry.disable !== true,
    insertion_order: asNumber(entry.insertion_order) ?? asNumber(entry.order) ?? 0,
  }));
}

/** Adds parts that can't be read to `extensions`, where they stay as they are. */
function keepUnread(extensions: unknown, parts: JsonObject): JsonObject {
  return { ...asObject(extensions), [UNREAD]: { ...asObject(asObject(extensions)[UNREAD]), ...parts } };
}

function toText(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function toTexts(value: unknown, isCommaList: boolean): string[] {
  if (Array.isArray(value)) {
    if (value.every((item) => typeof item === "string")) return value;
    return value.filter((item) => item !== null).map(toText);
  }
  if (typeof value !== "string" || value === "") return [];
  return isCommaList ? value.split(",").map((item) => item.trim()).filter((item) => item !== "") : [value];
}

function assertPlainJson(json: unknown): void {
  const fault = findJsonFault(json);
  if (fault !== undefined) throw createUnreadableError(fault);
}

function createUnreadableError(found: string): AppError {
  return new AppError("unprocessable", `Can't read the character card: ${found}`);
}

/** Maximum JSON size of a card, in bytes. A long novel has one million. */
export const MAX_CARD_BYTES = 10 * 1024 * 1024;

// Both remove a byte order mark. Without `fatal`, decoding is several times faster and replaces invalid UTF-8 with
// U+FFFD.
const utf8 = new TextDecoder();
const strictUtf8 = new TextDecoder("utf-8", { fatal: true });
const latin1 = new TextDecoder("latin1");

/**
 * Parses a card from JSON text.
 *
 * @throws {AppError} `too_large`; `unprocessable` for invalid UTF-8, JSON or cards
 */
export function parseCardText(bytes: Uint8Array): Card {
  return parseWith(bytes, decodeUtf8);
}

function parseWith(bytes: Uint8Array, decoded: (bytes: Uint8Array) => string): Card {
  assertLength(bytes);
  let json: unknown;
  try {
    json = JSON.parse(decoded(bytes));
  } catch (cause) {
    throw new AppError("unprocessable", "Can't read the character card: its text isn't valid JSON in UTF-8", { cause });
  }
  return parseCard(json);
}

/**
 * Parses a card from the text of a PNG chunk: base64, or plain JSON as some programs write it.
 *
 * @throws {AppError} like `parseCardText`, and `unprocessable` for other text
 */
export function parseChunkText(bytes: Uint8Array): Card {
  if (startsWithBrace(bytes)) return parseWith(bytes, decodeChunk);
  let text: Uint8Array;
  try {
    // Tolerates white space and missing padding. Base64url also occurs.
    text = Uint8Array.fromBase64(utf8.decode(bytes).replaceAll("-", "+").replaceAll("_", "/"));
  } catch (cause) {
    throw new AppError("unprocessable", "Can't read the character card: its text is neither base64 nor JSON", {
      cause,
    });
  }
  return parseCardText(text);
}

/** Decodes UTF-8. @throws {TypeError} if it's invalid */
function decodeUtf8(bytes: Uint8Array): string {
  const text = utf8.decode(bytes);
  return text.includes("\ufffd") ? strictUtf8.decode(bytes) : text;
}

/** PNG requires Latin-1, but most programs write UTF-8. */
function decodeChunk(bytes: Uint8Array): string {
  try {
    return decodeUtf8(bytes);
  } catch {
    return latin1.decode(bytes);
  }
}

/** Reports whether text starts with a brace, after white space. */
export function startsWithBrace(bytes: Uint8Array): boolean {
  const begin = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  for (let at = begin; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d) return byte === 0x7b;
  }
  return false;
}

/**
 * Serializes a card.
 *
 * @param indent Spaces per level.
 * @throws {AppError} `too_large` if it couldn't be read again
 */
export function serializeCard(card: unknown, indent = 0): Uint8Array<ArrayBuffer> {
  const bytes = new TextEncoder().encode(JSON.stringify(card, null, indent));
  assertLength(bytes);
  return bytes;
}

/** Encodes a card for a PNG chunk. @throws {AppError} `too_large` */
export function encodeChunkText(card: unknown): string {
  const { buffer, byteOffset, byteLength } = serializeCard(card);
  return Buffer.from(buffer, byteOffset, byteLength).toString("base64");
}

function assertLength(bytes: Uint8Array): void {
  if (bytes.length <= MAX_CARD_BYTES) return;
  throw new AppError("too_large", `The character card is larger than ${MAX_CARD_BYTES} bytes`);
}
