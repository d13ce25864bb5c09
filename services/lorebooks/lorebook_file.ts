/** Parses lorebook files of all supported formats. */
import { yieldIfTickUsedUp } from "../async/delay.ts";
import { AppError } from "../errors.ts";
import { UNREAD } from "../json/ledger.ts";
import {
  asArray,
  asNumber,
  asObject,
  asText,
  asTexts,
  findJsonFault,
  isJsonObject,
  type JsonObject,
  parseJsonBytes,
} from "../json/type_guards.ts";
import { convertForeignBook } from "./foreign_lorebooks.ts";
import {
  isSillyTavernLorebook,
  type Lorebook,
  type LorebookEntry,
  parseSillyTavernLorebook,
} from "./lorebook_document.ts";
import { MAX_BOOK_KEYS } from "./scan_entries.ts";

/** A book and its name outside of Parlor. */
export interface ParsedLorebook {
  book: Lorebook;
  /** Absent for books without a name. */
  name?: string;
}

/** What the API checks of bodies with a book, besides the book. */
export const BOOK_BODY_FIELDS = {
  saved: ["name", "enabled", "scope", "character_ids", "persona_ids", "book"],
  tested: ["book", "lorebook_id", "conversation_id", "text", "budget_tokens"],
};
/** What a request does with the book in its body. */
export type BookBody = keyof typeof BOOK_BODY_FIELDS;

/** Maximum number of entries. Large books have a few hundred. */
const MAX_ENTRIES = 10_000;
/** Maximum JSON size of a book, in bytes. */
export const MAX_BOOK_BYTES = 10 * 1024 * 1024;

/**
 * Parses a book: SillyTavern's World Info, `lorebook_v3`, a bare V2 or V3 book, a book of NovelAI, Agnai or RisuAI, or
 * a card that contains one. Only wrong types are corrected.
 *
 * @throws {AppError} `unprocessable` for other JSON, more than 100 levels, more than 10,000 entries or too many keys
 */
export function parseLorebook(json: unknown): ParsedLorebook {
  const fault = findJsonFault(json);
  if (fault !== undefined) throw createUnreadableError(fault);
  if (!isJsonObject(json)) throw createUnreadableError("it isn't a JSON object");
  if (json.spec === "lorebook_v3" && isJsonObject(json.data)) return parseBareBook(json.data);
  if (typeof json.spec === "string" && json.spec.startsWith("chara_card") && isJsonObject(json.data)) {
    if (!isJsonObject(json.data.character_book)) throw createUnreadableError("the card has no lorebook");
    const { book, name } = parseBareBook(json.data.character_book);
    return { book, name: name ?? parseName(json.data) };
  }
  if (isSillyTavernLorebook(json)) {
    const book = { ...parseSillyTavernLorebook(json), ...keepUnread(json, Object.values(json.entries as object)) };
    return { book: checkLimits(book), name: parseName(json) };
  }
  return parseBareBook(convertForeignBook(json) ?? json);
}

/** Parses a book file. @throws {AppError} `too_large`, and like `parseLorebook` */
export function parseLorebookFile(bytes: Uint8Array): ParsedLorebook {
  if (bytes.length > MAX_BOOK_BYTES) {
    throw new AppError("too_large", `The lorebook is larger than ${MAX_BOOK_BYTES} bytes`);
  }
  let json: unknown;
  try {
    json = parseJsonBytes(bytes);
  } catch (cause) {
    throw new AppError("unprocessable", "Can't read the lorebook: the file isn't valid JSON in UTF-8", { cause });
  }
  return parseLorebook(json);
}

/** Entries that are checked at a time. */
const STEP_ENTRIES = 200;

/** Checks a book that a child of the sandbox has read. @throws {AppError} `unprocessable` */
export async function parseReadBook(json: JsonObject): Promise<Lorebook> {
  const entries: LorebookEntry[] = [];
  const sent = asArray(json.entries);
  for (let at = 0; at < sent.length; at += STEP_ENTRIES) {
    entries.push(...sent.slice(at, at + STEP_ENTRIES).filter(isJsonObject).map(parseEntry));
    await yieldIfTickUsedUp();
  }
  return checkLimits({ ...json, entries });
}

function parseBareBook(json: JsonObject): ParsedLorebook {
  if (!Array.isArray(json.entries)) throw createUnreadableError("it has no list of entries");
  const entries = json.entries.filter(isJsonObject).map(parseEntry);
  const book = { ...json, ...keepUnread(json, json.entries), entries } as Lorebook;
  return { book: checkLimits(book), name: parseName(json) };
}

/** Returns `extensions` with the entries that aren't objects, which stay there as they are. */
function keepUnread(book: JsonObject, entries: readonly unknown[]): Pick<Lorebook, "extensions"> {
  const unread = entries.filter((entry) => !isJsonObject(entry));
  return unread.length === 0 ? {} : { extensions: { ...asObject(book.extensions), [UNREAD]: { entries: unread } } };
}

function parseEntry(entry: JsonObject): LorebookEntry {
  const fixed: LorebookEntry = {
    ...entry,
    keys: asTexts(entry.keys),
    content: asText(entry.content),
    extensions: isJsonObject(entry.extensions) ? entry.extensions : {},
    enabled: typeof entry.enabled === "boolean" ? entry.enabled : true,
    insertion_order: asNumber(entry.insertion_order) ?? 0,
  };
  if ("secondary_keys" in entry) fixed.secondary_keys = asTexts(entry.secondary_keys);
  if ("priority" in entry && entry.priority !== null) fixed.priority = asNumber(entry.priority);
  return fixed;
}

function checkLimits(book: Lorebook): Lorebook {
  if (book.entries.length > MAX_ENTRIES) throw createUnreadableError(`it has more than ${MAX_ENTRIES} entries`);
  const keys = book.entries.reduce((sum, entry) => sum + entry.keys.length + (entry.secondary_keys?.length ?? 0), 0);
  if (keys > MAX_BOOK_KEYS) throw createUnreadableError(`it has more than ${MAX_BOOK_KEYS} keys`);
  return book;
}

function parseName({ name }: JsonObject): string | undefined {
  return typeof name === "string" && name.trim() !== "" ? name.trim() : undefined;
}

function createUnreadableError(found: string): AppError {
  return new AppError("unprocessable", `Can't read the lorebook: ${found}`);
}
