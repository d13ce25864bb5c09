/**
 * Stored lorebooks (global, or for certain characters, personas or chats), opened together with their key matcher, and
 * the parser of all supported formats.
 */
import { convertForeignBook } from "./foreign_lorebooks.ts";
import { type LorebookLedgerKind, removeEmptyEntries } from "./lorebook_ledger.ts";
import { type LedgerEntry, UNREAD } from "../json/ledger.ts";
import { createUuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import {
  asNumber,
  asObject,
  asText,
  asTexts,
  findJsonFault,
  isJsonObject,
  type JsonObject,
  parseJsonBytes,
} from "../json/type_guards.ts";
import {
  DocumentStore,
  type DocumentStoreOptions,
  type ListedDocument,
  type OpenedDocument,
} from "../storage/documents/document_store.ts";
import type { ExpectedVersion } from "../storage/preconditions.ts";
import { SandboxKeyMatcher } from "./key_matcher.ts";
import type { Sandbox } from "../platform/sandbox/sandbox.ts";
import {
  isSillyTavernLorebook,
  type Lorebook,
  type LorebookEntry,
  type LorebookScope,
  parseSillyTavernLorebook,
  toSillyTavernLorebook,
} from "./lorebook_document.ts";
import { type ActivationBook, MAX_BOOK_KEYS } from "./scan_entries.ts";

/** The part of a book that is available without opening it. */
interface LorebookHead {
  name: string;
  isEnabled: boolean;
  scope: LorebookScope;
  /** For scope `character`. */
  characterIds: string[];
  /** For scope `persona`. */
  personaIds: string[];
  entryCount: number;
  /** What its file had besides the book. Absent for a book that wasn't imported, or before there were ledgers. */
  ledger?: LedgerEntry<LorebookLedgerKind>[];
}

/** A book in a list; without a head if it can't be decrypted. */
export type ListedLorebook = ListedDocument<LorebookHead>;
/** A stored book. Shared: don't modify it. */
export type StoredLorebook = OpenedDocument<LorebookHead, Lorebook>;

/** Values to store. Omitted fields don't change; new books are global. */
export interface LorebookInput {
  name?: string;
  isEnabled?: boolean;
  scope?: LorebookScope;
  characterIds?: string[];
  personaIds?: string[];
  /** When a new book was created; the default is now. */
  createdAtMs?: number;
  /** Parsed JSON in any format that `parseLorebook` supports. */
  book: unknown;
  /** Leaves out entries without keys and text, as an import does. The editor makes such entries. */
  isImport?: boolean;
}

/** Export formats. `character_book` is the format in cards. */
export type LorebookFormat = "sillytavern" | "lorebook_v3" | "character_book";

/** The conversation whose books to find. */
export interface BookRequest {
  /** The participating characters. */
  characters?: readonly {
    id: string;
    name: string;
    /** `character_book` of the card. */
    book?: Lorebook;
    /** Name of the book linked by the card's `extensions.world`. */
    world?: string;
  }[];
  personaId?: string;
  /** `lorebook_ids` of the conversation. */
  lorebookIds?: readonly string[];
}

/** The books of a conversation. */
export interface ChosenBooks {
  books: ActivationBook[];
  /** IDs of applicable books that can't be decrypted. */
  unreadable: string[];
}

const DEFAULT_NAME = "Lorebook";

/** Stores and finds lorebooks. */
export class Lorebooks {
  readonly #store: DocumentStore<LorebookHead, Lorebook>;

  constructor(store: DocumentStore<LorebookHead, Lorebook>) {
    this.#store = store;
  }

  /** Lists all books, newest first. */
  list(): ListedLorebook[] {
    return this.#store.list();
  }

  /** @throws {AppError} `not_found`; `internal` if it can't be decrypted */
  get(id: string): Promise<StoredLorebook> {
    return this.#store.get(id);
  }

  /**
   * Creates or replaces a book.
   *
   * @throws {AppError} `unprocessable`; `too_large`; `revision_mismatch`; `conflict` for an id that differs from
   *   another only in case
   */
  async put(
    id: string,
    input: LorebookInput,
    expected?: ExpectedVersion,
  ): Promise<StoredLorebook & { isNew: boolean }> {
    const parsed = parseLorebook(input.book);
    return await this.#put(id, input, parsed, expected);
  }

  /** Imports a file. @param name Used if the file has no name. @throws {AppError} like `put` */
  async import(bytes: Uint8Array, name?: string): Promise<StoredLorebook> {
    const parsed = parseLorebookFile(bytes);
    return await this.#put(createUuidV7(), { name: parsed.name ?? name, book: undefined, isImport: true }, parsed);
  }

  /** Exports a book. @throws {AppError} `not_found` */
  async export(id: string, format: LorebookFormat): Promise<{ name: string; json: unknown }> {
    const { head, body } = await this.get(id);
    return { name: head.name, json: toFormat(head.name, body, format) };
  }

  /** Moves a book to the trash. @throws {AppError} `not_found`, `revision_mismatch` */
  remove(id: string, expected?: ExpectedVersion): Promise<void> {
    return this.#store.remove(id, expected);
  }

  /**
   * Finds the books that apply to a prompt: those of the chat, its characters (linked, and inside cards), its persona,
   * and global ones. Each book occurs once.
   */
  async findBooks({ characters = [], personaId, lorebookIds = [] }: BookRequest): Promise<ChosenBooks> {
    const found: ChosenBooks = { books: [], unreadable: [] };
    const worlds = characters.map(({ world }) => world?.trim().toLowerCase()).filter(Boolean);
    const getScope = ({ id, head }: ListedLorebook): LorebookScope | undefined => {
      if (lorebookIds.includes(id)) return "chat";
      if (head === undefined) return undefined;
      if (head.scope === "character" && characters.some((one) => head.characterIds.includes(one.id))) {
        return "character";
      }
      if (worlds.includes(head.name.toLowerCase())) return "character";
      if (head.scope === "persona" && personaId !== undefined && head.personaIds.includes(personaId)) return "persona";
      return head.scope === "global" ? "global" : undefined;
    };
    for (const listed of this.list()) {
      if (listed.head?.isEnabled === false) continue;
      const scope = getScope(listed);
      if (scope === undefined) continue;
      const book = await this.#findReadable(listed.id);
      if (book === undefined) found.unreadable.push(listed.id);
      else found.books.push({ id: book.id, name: book.head.name, scope, book: book.body });
    }
    for (const { id, name, book } of characters) {
      if (book === undefined) continue;
      found.books.push({ id: `character:${id}`, name: book.name || name, scope: "character", book });
    }
    return found;
  }

  async #findReadable(id: string): Promise<StoredLorebook | undefined> {
    try {
      return await this.#store.find(id);
    } catch (error) {
      if (error instanceof AppError && error.code === "internal") return undefined;
      throw error;
    }
  }

  async #put(
    id: string,
    input: LorebookInput,
    { book: parsed, name }: ParsedLorebook,
    expected?: ExpectedVersion,
  ): Promise<StoredLorebook & { isNew: boolean }> {
    const { book, ledger = undefined } = input.isImport ? removeEmptyEntries(parsed) : { book: parsed };
    if (new TextEncoder().encode(JSON.stringify(book)).length > MAX_BOOK_BYTES) {
      throw new AppError("too_large", `The lorebook is larger than ${MAX_BOOK_BYTES} bytes`);
    }
    return await this.#store.put(id, (before) => ({
      head: {
        name: (input.name?.trim() || before?.head.name || name || DEFAULT_NAME).slice(0, 200),
        isEnabled: input.isEnabled ?? before?.head.isEnabled ?? true,
        scope: input.scope ?? before?.head.scope ?? "global",
        characterIds: input.characterIds ?? before?.head.characterIds ?? [],
        personaIds: input.personaIds ?? before?.head.personaIds ?? [],
        entryCount: book.entries.length,
        ...((ledger ?? before?.head.ledger) !== undefined && { ledger: ledger ?? before?.head.ledger }),
      },
      body: book,
      createdAtMs: input.createdAtMs,
    }), expected);
  }
}

function toFormat(name: string, book: Lorebook, format: LorebookFormat): unknown {
  if (format === "character_book") return book;
  // SillyTavern names books by file. If the file contained a name, it's updated.
  const named = format === "lorebook_v3" || "name" in book ? { ...book, name } : book;
  if (format === "sillytavern") return toSillyTavernLorebook(named);
  const entries = book.entries.map((entry) => ({ ...entry, use_regex: entry.use_regex ?? false }));
  return { spec: "lorebook_v3", data: { ...named, extensions: asObject(book.extensions), entries } };
}

/** Dependencies of lorebooks. */
interface LorebookServicesOptions
  extends Omit<DocumentStoreOptions<LorebookHead>, "kind" | "noun" | "getTitle" | "trash"> {
  trash: DocumentStoreOptions<LorebookHead>["trash"] & { register(kind: string, handler: DocumentTrash): void };
  sandbox: Sandbox;
}

type DocumentTrash = Pick<DocumentStore<LorebookHead, Lorebook>, "restore" | "purge">;

/** The lorebook services. */
export interface LorebookServices {
  lorebooks: Lorebooks;
  /** For `activate`. */
  keyMatcher: SandboxKeyMatcher;
}

const KIND = "lorebook";

/** Opens the store and the key matcher. */
export function openLorebooks(options: LorebookServicesOptions): LorebookServices {
  const store = new DocumentStore<LorebookHead, Lorebook>({
    ...options,
    kind: KIND,
    noun: KIND,
    getTitle: ({ name }) => name,
  });
  options.trash.register(KIND, store);
  return { lorebooks: new Lorebooks(store), keyMatcher: new SandboxKeyMatcher(options.sandbox) };
}

/** A book and its name outside of Parlor. */
export interface ParsedLorebook {
  book: Lorebook;
  /** Absent for books without a name. */
  name?: string;
}

/** Maximum number of entries. Large books have a few hundred. */
const MAX_ENTRIES = 10_000;
/** Maximum JSON size of a book, in bytes. */
const MAX_BOOK_BYTES = 10 * 1024 * 1024;

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
