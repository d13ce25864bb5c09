/**
 * A character card in the one form Parlor works with: a V3 object, whatever version it came as. Everything its author or
 * another program put there is kept; only what a version renames, or what is of a wrong type, is put right.
 */
import { AppError } from "../../errors.ts";
import { asNumber, asObject, findJsonFault, isJsonObject, type JsonObject } from "../../json/type_guards.ts";

/** What a card says of its character. Fields that no version knows are kept. */
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
  /** Data of programs, one key each; never touched. */
  extensions: Record<string, unknown>;
  /** The lorebook that belongs to the character. */
  character_book?: CardBook;
  /** Stands for the name in `{{char}}`. */
  nickname?: string;
  [field: string]: unknown;
}

/** A lorebook; an entry has at least these fields. */
export interface CardBook {
  entries: CardBookEntry[];
  [field: string]: unknown;
}

/** One entry of a lorebook. */
export interface CardBookEntry {
  keys: string[];
  content: string;
  enabled: boolean;
  insertion_order: number;
  extensions: Record<string, unknown>;
  [field: string]: unknown;
}

/** A whole card, as V3 says it. */
export interface Card {
  spec: string;
  /** A number as text, from `"3.0"`. */
  spec_version: string;
  data: CardData;
  [field: string]: unknown;
}

/** The six fields of V1; other programs leave copies of them beside `data`. */
const V1_FIELDS = ["name", "description", "personality", "scenario", "first_mes", "mes_example"] as const;
const TEXT_FIELDS = [
  ...V1_FIELDS,
  ...["creator_notes", "system_prompt", "post_history_instructions", "creator", "character_version"] as const,
];
const LIST_FIELDS = ["alternate_greetings", "group_only_greetings", "tags"] as const;
const DATA_FIELDS = [...TEXT_FIELDS, ...LIST_FIELDS, "extensions", "character_book"];
/** Fields that V3 brought; a V2 copy does not have them. */
const V3_FIELDS = [
  ...["group_only_greetings", "nickname", "creator_notes_multilingual", "source"],
  ...["creation_date", "modification_date", "assets"],
];
/** Names of the same things in files of Pygmalion and its editors. */
const PYGMALION_FIELDS: Record<string, string> = {
  char_name: "name",
  char_persona: "description",
  char_greeting: "first_mes",
  example_dialogue: "mes_example",
  world_scenario: "scenario",
};
/** What an editor once wrote where its user had written nothing. */
const PLACEHOLDER_NOTES = "Creator's notes go here.";

/**
 * Reads a card of any version (V1, V2, V3, Pygmalion) out of parsed JSON.
 *
 * @returns A new object; the parts that needed no change are those of `json`.
 * @throws {AppError} `unprocessable` when it is no card: no object, no usable name, nested beyond 100 levels.
 */
export function cardOf(json: unknown): Card {
  assertPlainJson(json);
  if (!isJsonObject(json)) throw unreadable("it is no object");
  const { spec } = json;
  if (typeof spec === "string" && !/^chara_card_v\d+$/.test(spec)) throw unreadable(`it is a "${spec.slice(0, 40)}"`);
  const card = isJsonObject(json.data) ? wrapped(json, json.data) : flat(json);
  if (card.data.name.trim() === "") throw unreadable("it has no name");
  return card;
}

/**
 * Gives the V2 form of a card, for programs that know no other.
 *
 * @see V3, "decorators": their lines go when a V2 copy is made.
 */
export function v2Of(card: Card): JsonObject {
  const data: JsonObject = { ...card.data };
  for (const field of V3_FIELDS) delete data[field];
  const { character_book: book } = card.data;
  if (book !== undefined) {
    const entries = book.entries.map((entry) => ({ ...entry, content: withoutDecorators(entry.content) }));
    data.character_book = { ...book, extensions: asObject(book.extensions), entries };
  }
  return { ...card, spec: "chara_card_v2", spec_version: "2.0", data };
}

/** Gives a lorebook text without the `@@decorator` lines at its head, which no model is to see. */
export function withoutDecorators(content: string): string {
  return content.replace(/^(?:\s*@@@?[A-Za-z_][^\n]*(?:\n|$))+/, "");
}

/** A card whose fields stand in `data`: V2 and V3. */
function wrapped(root: JsonObject, received: JsonObject): Card {
  const data = dataFrom(received);
  const version = Number.parseFloat(String(root.spec_version));
  const isV3 = root.spec === "chara_card_v3" && version >= 3 && version < 4;
  const card: Card = {
    ...root,
    spec: "chara_card_v3",
    spec_version: isV3 ? String(root.spec_version).padEnd(3, ".0") : "3.0",
    data,
  };
  // Copies that other programs keep at the root say the same as the card, or a reader of V1 would show an old one.
  for (const field of [...V1_FIELDS, "tags"] as const) if (field in root) card[field] = data[field];
  if ("creatorcomment" in root) card.creatorcomment = data.creator_notes;
  return card;
}

/** A card whose fields stand at the root: V1, Pygmalion, and broken exports of later versions. */
function flat(root: JsonObject): Card {
  const renamed: JsonObject = Object.hasOwn(root, "char_name")
    ? Object.fromEntries(Object.entries(root).map(([key, value]) => [PYGMALION_FIELDS[key] ?? key, value]))
    : root;
  const inData = (key: string) => DATA_FIELDS.includes(key) || key === "creatorcomment" || V3_FIELDS.includes(key);
  const entries = Object.entries(renamed);
  const found = entries.filter(([key]) => inData(key));
  if (entries.length > found.length && found.length < 2) {
    const isNamed = Object.hasOwn(renamed, "name");
    throw unreadable(`it has none of a card's fields${isNamed ? " but a name" : ""}`);
  }
  const { creatorcomment, ...fields }: JsonObject = Object.fromEntries(found);
  const data = dataFrom({ ...fields, creator_notes: creatorcomment || fields.creator_notes });
  return {
    ...Object.fromEntries(entries.filter(([key]) => !inData(key))),
    spec: "chara_card_v3",
    spec_version: "3.0",
    data,
  };
}

function dataFrom(received: JsonObject): CardData {
  const data: JsonObject = { ...received };
  for (const field of TEXT_FIELDS) data[field] = toText(data[field]);
  if (data.creator_notes === PLACEHOLDER_NOTES) data.creator_notes = "";
  for (const field of LIST_FIELDS) data[field] = toTexts(data[field], field === "tags");
  data.extensions = asObject(data.extensions);
  if ("nickname" in data) data.nickname = toText(data.nickname);
  if (isJsonObject(data.character_book)) data.character_book = bookFrom(data.character_book);
  else delete data.character_book;
  return data as CardData;
}

function bookFrom(book: JsonObject): CardBook {
  // A lorebook file of SillyTavern has an object of entries by number in place of the list.
  const entries = Array.isArray(book.entries) ? book.entries : Object.values(asObject(book.entries));
  return {
    ...book,
    entries: entries.filter(isJsonObject).map((entry) => ({
      ...entry,
      keys: toTexts(entry.keys ?? entry.key, true),
      content: toText(entry.content),
      extensions: asObject(entry.extensions),
      enabled: typeof entry.enabled === "boolean" ? entry.enabled : entry.disable !== true,
      insertion_order: asNumber(entry.insertion_order) ?? asNumber(entry.order) ?? 0,
    })),
  };
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
  if (fault !== undefined) throw unreadable(fault);
}

function unreadable(found: string): AppError {
  return new AppError("unprocessable", `Cannot read the character card: ${found}`);
}
