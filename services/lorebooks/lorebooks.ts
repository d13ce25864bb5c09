/** Stored lorebooks (global, or for certain characters, personas or chats), opened together with their key matcher. */
import { Buffer } from "node:buffer";
import { type LorebookLedgerKind, removeEmptyEntries } from "./lorebook_ledger.ts";
import type { LedgerEntry } from "../json/ledger.ts";
import { createUuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import { MAX_PARSED_BYTES, type UnparsedJson } from "../json/json_body.ts";
import { writeJsonIncrementally } from "../json/incremental_write.ts";
import { asObject, asString } from "../json/type_guards.ts";
import {
  DocumentStore,
  type DocumentStoreOptions,
  type ListedDocument,
  type OpenedDocument,
} from "../storage/documents/document_store.ts";
import type { ExpectedVersion } from "../storage/preconditions.ts";
import { SandboxKeyMatcher } from "./key_matcher.ts";
import { createDocumentKind, readBodyInChild, readInChild } from "../platform/sandbox/document_job.ts";
import type { Sandbox } from "../platform/sandbox/sandbox.ts";
import { type Lorebook, type LorebookScope, toSillyTavernLorebook } from "./lorebook_document.ts";
import {
  type BookBody,
  MAX_BOOK_BYTES,
  type ParsedLorebook,
  parseLorebook,
  parseLorebookFile,
  parseReadBook,
} from "./lorebook_file.ts";
import type { ActivationBook } from "./scan_entries.ts";

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
  /** Leaves out entries without keys and text, as an import does. The editor makes such entries. */
  isImport?: boolean;
}

/** Values to store, with their book. */
export interface LorebookWithBook extends LorebookInput {
  /** Parsed JSON in any format that `parseLorebook` supports. */
  book: unknown;
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
  readonly #sandbox: Sandbox;

  constructor(store: DocumentStore<LorebookHead, Lorebook>, sandbox: Sandbox) {
    this.#store = store;
    this.#sandbox = sandbox;
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
    { book, ...input }: LorebookWithBook,
    expected?: ExpectedVersion,
  ): Promise<StoredLorebook & { isNew: boolean }> {
    return await this.putParsed(id, input, parseLorebook(book), expected);
  }

  /**
   * Creates or replaces a book with the long body of a request.
   *
   * @param check Gets the body without its book, and returns what is stored besides it.
   * @throws {AppError} like `put`, and `invalid_json`, `invalid_request`
   */
  async putBody(
    id: string,
    body: UnparsedJson,
    check: (body: unknown) => LorebookInput,
    expected?: ExpectedVersion,
  ): Promise<StoredLorebook & { isNew: boolean }> {
    const { checked, parsed } = await this.readBody(body, "saved", check);
    return await this.putParsed(id, checked, parsed!, expected);
  }

  /**
   * Reads the book in the long body of a request; `undefined` if there is none.
   *
   * @param check As in `putBody`.
   * @throws {AppError} `invalid_json`, `invalid_request`, `unprocessable`
   */
  async readBody<T>(
    body: UnparsedJson,
    order: BookBody,
    check: (body: unknown) => T,
  ): Promise<{ checked: T; parsed?: ParsedLorebook }> {
    const of = { kind: FILE_KIND, order, noun: KIND };
    const { checked, document, value } = await readBodyInChild(this.#sandbox, of, body, check);
    if (value.hasBook !== true && order === "tested") return { checked };
    return { checked, parsed: { book: await parseReadBook(document), name: asString(value.name) } };
  }

  /** As `put`, with a book that was parsed. */
  async putParsed(
    id: string,
    input: LorebookInput,
    { book: parsed, name }: ParsedLorebook,
    expected?: ExpectedVersion,
  ): Promise<StoredLorebook & { isNew: boolean }> {
    const { book, ledger = undefined } = input.isImport ? removeEmptyEntries(parsed) : { book: parsed };
    const text = await writeJsonIncrementally(book);
    if (Buffer.byteLength(text) > MAX_BOOK_BYTES) {
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
      text,
      createdAtMs: input.createdAtMs,
    }), expected);
  }

  /** Imports a file. @param name Used if the file has no name. @throws {AppError} like `put` */
  async import(bytes: Uint8Array, name?: string): Promise<StoredLorebook> {
    const parsed = await this.#read(bytes);
    return await this.putParsed(createUuidV7(), { name: parsed.name ?? name, isImport: true }, parsed);
  }

  /** Exports a book. @throws {AppError} `not_found` */
  async export(id: string, format: LorebookFormat): Promise<{ name: string; json: unknown }> {
    const { head, body } = await this.get(id);
    return { name: head.name, json: await toFormat(head.name, body, format) };
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

  async #read(bytes: Uint8Array): Promise<ParsedLorebook> {
    if (bytes.length <= MAX_PARSED_BYTES || bytes.length > MAX_BOOK_BYTES) return parseLorebookFile(bytes);
    const { document, value } = await readInChild(this.#sandbox, FILE_KIND, bytes, "lorebook");
    return { book: await parseReadBook(document), name: asString(value.name) };
  }

  async #findReadable(id: string): Promise<StoredLorebook | undefined> {
    try {
      return await this.#store.find(id);
    } catch (error) {
      if (error instanceof AppError && error.code === "internal") return undefined;
      throw error;
    }
  }
}

async function toFormat(name: string, book: Lorebook, format: LorebookFormat): Promise<unknown> {
  if (format === "character_book") return book;
  // SillyTavern names books by file. If the file contained a name, it's updated.
  const named = format === "lorebook_v3" || "name" in book ? { ...book, name } : book;
  if (format === "sillytavern") return await toSillyTavernLorebook(named);
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
const FILE_KIND = createDocumentKind(new URL("./lorebook_child.ts", import.meta.url));

/** Opens the store and the key matcher. */
export function openLorebooks(options: LorebookServicesOptions): LorebookServices {
  const store = new DocumentStore<LorebookHead, Lorebook>({
    ...options,
    kind: KIND,
    noun: KIND,
    getTitle: ({ name }) => name,
  });
  options.trash.register(KIND, store);
  return { lorebooks: new Lorebooks(store, options.sandbox), keyMatcher: new SandboxKeyMatcher(options.sandbox) };
}
