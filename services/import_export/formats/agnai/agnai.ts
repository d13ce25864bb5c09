/**
 * Reads Agnai (agnaistic) data: the data folder of a self-hosted server, or any number of exported characters, chats
 * and memory books. Its PNG cards are Tavern cards.
 *
 * @see https://github.com/agnaistic/agnai srv/api/json/index.ts, web/pages/Character/DownloadModal.tsx and
 *   web/pages/Memory/Memory.tsx at 2421510 (2024-10-16)
 */
import { convertAgnaiBook, isAgnaiBook } from "../../../lorebooks/foreign_lorebooks.ts";
import {
  createChangedNote,
  createLeftOutNote,
  createRefusedNote,
  ImportError,
  type ImportReasonCode,
} from "../../import_report.ts";
import { parsePngCard } from "../../../characters/png/png_card.ts";
import { parseCardFile } from "../../../characters/card/card_file.ts";
import { serializeCard } from "../../../characters/card/card.ts";
import { AppError } from "../../../errors.ts";
import {
  asObject,
  asText,
  findJsonFault,
  getOwn,
  isJsonObject,
  type JsonObject,
  parseJsonBytes,
} from "../../../json/type_guards.ts";
import { isAgnaiExport, readAgnaiChat, readAgnaiExport } from "./agnai_items.ts";
import { convertAgnaiCard, isAgnaiCharacter } from "../../../characters/card/foreign_cards.ts";
import { type ImportStep, mapSampler } from "../../import_item.ts";
import {
  deriveStableId,
  getBaseName,
  getStem,
  hashContent,
  type ImportSource,
  parseJsonObject,
  type SourceFile,
} from "../../import_source.ts";
import { MAX_CHAT_BYTES, readTavernChat } from "../sillytavern/tavern_chat.ts";

/** Maximum size of a file in the folder. Embedded images make them large. */
const MAX_JSON_BYTES = 256 * 1024 * 1024;
const MAX_IMAGE_BYTES = 20 * 1024 * 1024;
const SAMPLERS = {
  temperature: "temp",
  top_p: "topP",
  top_k: "topK",
  top_a: "topA",
  min_p: "minP",
  typical_p: "typicalP",
  tfs_z: "tailFreeSampling",
  frequency_penalty: "frequencyPenalty",
  presence_penalty: "presencePenalty",
  repetition_penalty: "repetitionPenalty",
  repeat_last_n: "repetitionPenaltyRange",
  max_tokens: "maxTokens",
  context_size: "maxContextLength",
};
/** Files of the folder that aren't imported. */
const REASONS: Record<string, ImportReasonCode> = {
  "user.json": "keys_left_out",
  "scenario.json": "agnai_scenarios",
  "templates.json": "agnai_templates",
  "trees.json": "agnai_trees",
};
const IMPORTED_FILES = ["profile.json", "presets.json", "books.json", "characters.json", "chats.json"];
/** Name of a profile without a name. */
const NAMELESS = "You";

/** Yields all items. @throws {AppError} `unprocessable` if nothing is from Agnai. */
export async function* readAgnai(source: ImportSource): AsyncGenerator<ImportStep> {
  const folder = new Folder(source);
  yield* folder.hasData ? folder.readSteps() : readSingleFiles(source);
}

async function* readSingleFiles(source: ImportSource): AsyncGenerator<ImportStep> {
  for (const file of source.files) {
    const { path } = file;
    try {
      if (/\.json$/i.test(path)) yield* convertJson(path, await source.read(file, MAX_CHAT_BYTES));
      else if (/\.png$/i.test(path)) {
        const bytes = await source.read(file, MAX_IMAGE_BYTES);
        const { data } = parsePngCard(bytes);
        const id = deriveStableId("agnai", "card", data.name, data.creator, hashContent(data.description));
        yield { what: "character", id, source: path, name: data.name, file: bytes };
      } else if (/\.jsonl$/i.test(path)) {
        const title = getStem(path);
        const context = { source: path, key: title, title, participants: [] };
        const { conversation, notes } = await readTavernChat(await source.read(file, MAX_CHAT_BYTES), context);
        yield* notes;
        if (conversation !== undefined) yield conversation;
      } else yield createLeftOutNote(path, "agnai_not");
    } catch (error) {
      yield createRefusedNote(path, error);
    }
  }
}

function* convertJson(path: string, bytes: Uint8Array<ArrayBuffer>): Generator<ImportStep> {
  const json = parseJsonObject(bytes);
  if (isAgnaiCharacter(json)) return yield* convertCharacter(json, path);
  if (isAgnaiBook(json)) return yield* convertBook(json, path);
  if (isAgnaiExport(json)) {
    yield createChangedNote(path, "chat_without_character");
    return yield* readAgnaiExport(json, { source: path, title: getStem(path) });
  }
  if (json.kind === "scenario") return yield createLeftOutNote(path, "agnai_scenarios");
  const { data } = parseCardFile(path, bytes);
  const id = deriveStableId("agnai", "card", data.name, data.creator, hashContent(data.description));
  yield { what: "character", id, source: path, name: data.name, file: bytes };
}

function* convertCharacter(
  character: JsonObject,
  source: string,
  avatar = findImage(character.avatar),
): Generator<ImportStep> {
  const name = asText(character.name);
  if (isJsonObject(character.sprite)) yield createChangedNote(source, "agnai_body");
  if (avatar === undefined && asText(character.avatar) !== "") yield createChangedNote(source, "avatar_not_in_file");
  try {
    const bytes = serializeCard(convertAgnaiCard(character));
    yield { what: "character", id: getCharacterId(character), source, name, file: bytes, avatar };
  } catch (error) {
    yield createRefusedNote(source, error); // Too long, or nested too deeply to be written as JSON.
  }
}

function* convertBook(book: JsonObject, source: string): Generator<ImportStep> {
  const name = asText(book.name) || getStem(source);
  yield { what: "lorebook", id: getBookId(book, name), source, name, book: convertAgnaiBook(book), scope: "chat" };
}

/** Exported characters have no id. The creation time identifies them in folders and files. */
function getCharacterId(character: JsonObject): string {
  const createdAt = asText(character.createdAt) || hashContent(character.persona);
  return deriveStableId("agnai", "character", asText(character.name), createdAt);
}

/** Returns the ID of a book. Exported books have no ID and nothing else that is stable. */
function getBookId(book: JsonObject, name: string): string {
  return deriveStableId("agnai", "memory", asText(book._id) || `${name} ${hashContent(book.entries)}`);
}

function findImage(value: unknown): Uint8Array<ArrayBuffer> | undefined {
  const base64 = /^data:image\/[a-z0-9.+-]+;base64,([A-Za-z0-9+/=\s]+)$/.exec(asText(value))?.[1];
  try {
    return base64 === undefined ? undefined : Uint8Array.fromBase64(base64);
  } catch {
    return undefined;
  }
}

/** The data folder of a server: one file for each type of item, and one for the messages of each chat. */
class Folder {
  readonly #root: string;
  readonly #byPath = new Map<string, SourceFile>();

  constructor(readonly source: ImportSource) {
    const sign = source.files.find(({ path }) =>
      getBaseName(path) === "chats.json" || getBaseName(path) === "characters.json"
    );
    this.#root = sign === undefined ? "" : sign.path.slice(0, -getBaseName(sign.path).length);
    this.hasData = sign !== undefined;
    for (const file of source.files) {
      if (file.path.startsWith(this.#root)) this.#byPath.set(file.path.slice(this.#root.length), file);
    }
  }

  readonly hasData: boolean;

  async *readSteps(): AsyncGenerator<ImportStep> {
    yield* this.#listLeftOut();
    const profile = asObject(await this.#readJson("profile.json"));
    const handle = asText(profile.handle);
    const personaId = handle === "" || handle === NAMELESS ? undefined : deriveStableId("agnai", "persona", handle);
    if (personaId !== undefined) {
      const avatar = await this.#readImage(profile.avatar);
      yield {
        what: "persona",
        id: personaId,
        source: this.#resolvePath("profile.json"),
        name: handle,
        description: "",
        avatar,
      };
    }
    const books = new Map<string, string>();
    for (const book of await this.#list("books.json")) {
      books.set(asText(book._id), getBookId(book, asText(book.name) || getStem("books.json")));
      yield* convertBook(book, this.#resolvePath("books.json"));
    }
    yield* this.#readPresets();
    const characters = new Map<string, string>();
    const chats = await this.#list("chats.json");
    const guests = chats.flatMap(({ tempCharacters }) => Object.values(asObject(tempCharacters)).filter(isJsonObject));
    for (const character of [...await this.#list("characters.json"), ...guests]) {
      if (characters.has(asText(character._id))) continue;
      characters.set(asText(character._id), getCharacterId(character));
      yield* convertCharacter(character, this.#resolvePath("characters.json"), await this.#readImage(character.avatar));
    }
    for (const chat of chats) yield* this.#readChat(chat, { characters, books, personaId });
  }

  async *#readPresets(): AsyncGenerator<ImportStep> {
    const presets = await this.#list("presets.json");
    const source = this.#resolvePath("presets.json");
    for (const preset of presets) {
      const name = asText(preset.name) || "Agnai";
      const sampler = mapSampler(preset, SAMPLERS);
      const id = deriveStableId("agnai", "preset", asText(preset._id) || name);
      yield { what: "preset", id, source, name, json: { sampler }, isOurs: true };
    }
    if (presets.length === 0) return;
    yield createLeftOutNote(source, "agnai_presets", presets.length);
  }

  async *#readChat(
    chat: JsonObject,
    { characters, books, personaId }: {
      characters: Map<string, string>;
      books: Map<string, string>;
      personaId: string | undefined;
    },
  ): AsyncGenerator<ImportStep> {
    const path = `messages-${asText(chat._id)}.json`;
    const source = this.#resolvePath(path);
    try {
      const messages = await this.#readJson(path);
      if (!Array.isArray(messages)) throw new ImportError("messages_missing");
      const main = asText(chat.characterId);
      const others = Object.entries(asObject(chat.characters)).flatMap(([id, isIn]) => isIn === true ? [id] : []);
      const participants = [...new Set([main, ...others])].flatMap((id) => characters.get(id) ?? []);
      const book = books.get(asText(chat.memoryId));
      yield* readAgnaiChat(chat, messages, {
        source,
        participants,
        personaId,
        title: asText(chat.name),
        findCharacter: (id) => characters.get(id),
        lorebookIds: book === undefined ? [] : [book],
      });
    } catch (error) {
      yield createRefusedNote(source, error);
    }
  }

  *#listLeftOut(): Generator<ImportStep> {
    for (const [path] of this.#byPath) {
      if (IMPORTED_FILES.includes(path) || /^messages-.*\.json$/.test(path)) continue;
      const reason = getOwn(REASONS, path);
      if (reason !== undefined) yield createLeftOutNote(this.#resolvePath(path), reason);
    }
  }

  async #list(path: string): Promise<JsonObject[]> {
    const json = await this.#readJson(path);
    return Array.isArray(json) ? json.filter(isJsonObject) : [];
  }

  /** Parses a file that everything else refers to. @throws {AppError} `unprocessable` */
  async #readJson(path: string): Promise<unknown> {
    const file = this.#byPath.get(path);
    if (file === undefined) return undefined;
    const bytes = await this.source.read(file, MAX_JSON_BYTES);
    let json: unknown;
    try {
      json = parseJsonBytes(bytes);
    } catch (cause) {
      throw new AppError("unprocessable", `Can't import "${file.path}": not valid JSON in UTF-8`, { cause });
    }
    const fault = findJsonFault(json);
    if (fault !== undefined) throw new AppError("unprocessable", `Can't import "${file.path}": ${fault}`);
    return json;
  }

  /** Reads the image of a character, which is embedded in it or in a file. */
  async #readImage(value: unknown): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const name = getBaseName(asText(value).split("?")[0]!);
    const file = name === "" ? undefined : this.source.files.find(({ path }) => getBaseName(path) === name);
    if (file === undefined) return findImage(value);
    return await this.source.read(file, MAX_IMAGE_BYTES).catch(() => undefined);
  }

  #resolvePath(path: string): string {
    return this.#root + path;
  }
}
