/** Reads lorebooks out of parsed JSON, whatever program wrote them, into the one form Parlor keeps. */
import { AppError } from "../errors.ts";
import {
  asNumber,
  asText,
  asTexts,
  findJsonFault,
  isJsonObject,
  type JsonObject,
  parseJsonBytes,
} from "../json/type_guards.ts";
import type { Lorebook, LorebookEntry } from "./lorebook_document.ts";
import { MAX_BOOK_KEYS } from "./scan_entries.ts";
import { fromSillyTavern, isSillyTavernBook } from "./sillytavern.ts";

/** A book and the name it has outside of itself. */
export interface ParsedLorebook {
  book: Lorebook;
  /** Absent where it says none. */
  name?: string;
}

/** Entries of a book. Large worlds have some hundred. */
export const MAX_ENTRIES = 10_000;
/** Longest JSON text of a book, in bytes. */
export const MAX_BOOK_BYTES = 10 * 1024 * 1024;

/**
 * Reads a book: SillyTavern's world info, `lorebook_v3`, a bare V2 or V3 book, or a card that carries one. Only what is of
 * a wrong type is put right; everything else stays as it is.
 *
 * @throws {AppError} `unprocessable` when it is none of them, nested beyond 100 levels or of more than 10,000 entries.
 */
export function parseLorebook(json: unknown): ParsedLorebook {
  const fault = findJsonFault(json);
  if (fault !== undefined) throw unreadable(fault);
  if (!isJsonObject(json)) throw unreadable("it is no object");
  if (json.spec === "lorebook_v3" && isJsonObject(json.data)) return bare(json.data);
  if (typeof json.spec === "string" && json.spec.startsWith("chara_card") && isJsonObject(json.data)) {
    if (!isJsonObject(json.data.character_book)) throw unreadable("the card carries none");
    const { book, name } = bare(json.data.character_book);
    return { book, name: name ?? nameIn(json.data) };
  }
  if (isSillyTavernBook(json)) {
    return { book: limited(fromSillyTavern(json)), name: nameIn(json) };
  }
  return bare(json);
}

/** Reads a book out of the bytes of a file. @throws {AppError} `too_large`, and as `parseLorebook`. */
export function parseLorebookFile(bytes: Uint8Array): ParsedLorebook {
  if (bytes.length > MAX_BOOK_BYTES) {
    throw new AppError("too_large", `The lorebook is longer than ${MAX_BOOK_BYTES} bytes`);
  }
  let json: unknown;
  try {
    json = parseJsonBytes(bytes);
  } catch (cause) {
    throw new AppError("unprocessable", "Cannot read the lorebook: the file is no JSON in UTF-8", { cause });
  }
  return parseLorebook(json);
}

function bare(json: JsonObject): ParsedLorebook {
  if (!Array.isArray(json.entries)) throw unreadable("it has no list of entries");
  const entries = json.entries.filter(isJsonObject).map(entryFrom);
  return { book: limited({ ...json, entries } as Lorebook), name: nameIn(json) };
}

function entryFrom(entry: JsonObject): LorebookEntry {
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

function limited(book: Lorebook): Lorebook {
  if (book.entries.length > MAX_ENTRIES) throw unreadable(`it has more than ${MAX_ENTRIES} entries`);
  const keys = book.entries.reduce((sum, entry) => sum + entry.keys.length + (entry.secondary_keys?.length ?? 0), 0);
  if (keys > MAX_BOOK_KEYS) throw unreadable(`it has more than ${MAX_BOOK_KEYS} keys`);
  return book;
}

function nameIn({ name }: JsonObject): string | undefined {
  return typeof name === "string" && name.trim() !== "" ? name.trim() : undefined;
}

function unreadable(found: string): AppError {
  return new AppError("unprocessable", `Cannot read the lorebook: ${found}`);
}
