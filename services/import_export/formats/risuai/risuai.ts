/**
 * Reads RisuAI data: a local backup, the data folder of its server or desktop app, or any number of exported
 * characters, personas, lorebooks, presets and chats.
 *
 * @see https://github.com/kwaroran/RisuAI characterCards.ts, characters.ts, persona.ts, process/lorebook.svelte.ts and
 *   process/modules.ts at 460ecae (2025-12-31)
 */
import { isPng, parsePng } from "../../../attachments/images/png.ts";
import type { Card } from "../../../characters/card/card.ts";
import { parseCardFile } from "../../../characters/card/card_file.ts";
import { CARD_PATH, isCharx, MAX_CHARX_BYTES } from "../../../characters/charx/charx_format.ts";
import { readCharxCard } from "../../../characters/charx/charx_reader.ts";
import { getKeyword, readTextChunk } from "../../../characters/png/png_card.ts";
import { AppError } from "../../../errors.ts";
import { asArray, asObject, asText, isJsonObject, type JsonObject, parseJsonBytes } from "../../../json/type_guards.ts";
import type { ImportedCharacter, ImportStep } from "../../import_item.ts";
import { WHOLE_IMPORT } from "../../import_files.ts";
import { createChangedNote, createLeftOutNote, createRefusedNote, ImportError } from "../../import_report.ts";
import {
  deriveStableId,
  getBaseName,
  getStem,
  hashContent,
  type ImportHost,
  type ImportSource,
  parseJsonObject,
  type SourceFile,
} from "../../import_source.ts";
import { convertRisuPreset, MAX_IMAGE_BYTES, readRisuAccount } from "./risu_account.ts";
import { convertRisuBook } from "../../../lorebooks/foreign_lorebooks.ts";
import { readRisuChat, type RisuChatContext } from "./risu_items.ts";
import { decodeMessagePack, RISU_DATABASE, unpack } from "./risu_save.ts";
import { Buffer } from "node:buffer";

/** Maximum size of a file. All chats of a character are one file. */
const MAX_JSON_BYTES = 256 * 1024 * 1024;
const MAX_PERSONA_BYTES = 1024 * 1024;
/** `Fox_2025-12-31T060320123Z_chat.json`, or `Fox_all_chats_2025-12-31T06-03-20-123Z.json` */
const CHAT_FILE = /^(.*?)_(?:all_chats_)?\d{4}-\d\d-\d\dT[\dZ-]+(?:_chat)?\.json$/;
const TEXT_CHAT = /\.txt$|\.html?$/i;
const CARD_FILE = /\.(png|charx|jpe?g)$/i;
const MODULE_FILE = /\.risum$/i;
const PRESET_FILE = /\.risup(reset)?$/i;
/** Images and sounds in a CHARX file. */
const MEDIUM = /^assets\//;

/** Yields all items. @throws {AppError} `unprocessable` if nothing is from RisuAI, or a backup has no database. */
export async function* readRisuAi(source: ImportSource, host: ImportHost): AsyncGenerator<ImportStep> {
  const files = new RisuFiles(source);
  const { database } = files;
  if (database !== undefined) return yield* readRisuAccount(source, database, files, host);
  if (source.files.length > 0 && source.files.every(({ path }) => isAsset(path))) {
    throw new AppError("unprocessable", "Can't import this from RisuAI: its database is missing or incomplete");
  }
  const single = new Files(source, host);
  const isCharx = source.isZip && source.files.some(({ path }) => path === CARD_PATH);
  yield* isCharx ? single.readCharx(WHOLE_IMPORT, CARD_PATH) : single.readSteps();
}

/** Reads single files: characters first, because chat files refer to them. */
class Files {
  readonly #ids = new Set<string>();
  /** By name, as in file names. */
  readonly #cards = new Map<string, { id: string; card: Card }>();

  constructor(readonly source: ImportSource, readonly host: ImportHost) {}

  async *readSteps(): AsyncGenerator<ImportStep> {
    const later: SourceFile[] = [];
    for (const file of this.source.files) {
      if (TEXT_CHAT.test(file.path)) yield createLeftOutNote(file.path, "risu_text_chat");
      else if (/\.json$/i.test(file.path)) later.push(file);
      else if (CARD_FILE.test(file.path)) yield* this.#tryFile(file, this.#readImage(file));
      else if (MODULE_FILE.test(file.path)) yield* this.#tryFile(file, this.#readModule(file));
      else if (PRESET_FILE.test(file.path)) yield* this.#tryFile(file, this.#readPreset(file));
      else yield createLeftOutNote(file.path, "risu_not");
    }
    const chats: [SourceFile, JsonObject][] = [];
    for (const file of later) {
      try {
        const json = parseJsonObject(await this.source.read(file, MAX_JSON_BYTES));
        if (isChatFile(json)) chats.push([file, json]);
        else yield* this.#readJson(file, json);
      } catch (error) {
        yield createRefusedNote(file.path, error);
      }
    }
    for (const [file, json] of chats) yield* this.#readChats(file, json);
  }

  /** @param id Of the file. @param source Name of the file in the report. */
  async *readCharx(id: string, source: string): AsyncGenerator<ImportStep> {
    const { card, others } = await readCharxCard(this.host.open(id));
    const files = others.filter((entry) => MEDIUM.test(entry.path)).length;
    yield { ...this.#toCharacter(source, card, id), files };
  }

  async *#readImage(file: SourceFile): AsyncGenerator<ImportStep> {
    let begin: Uint8Array = new Uint8Array();
    for await (const piece of this.source.stream(file, MAX_CHARX_BYTES)) {
      begin = piece;
      break;
    }
    if (isPng(begin)) {
      const bytes = await this.source.read(file, MAX_IMAGE_BYTES);
      const persona = findPersona(bytes);
      if (persona !== undefined) yield* this.#readPersona(file, persona, bytes);
      else yield this.#toCharacter(file.path, parseCardFile(file.path, bytes), bytes);
    } else if (isCharx(begin)) {
      yield* this.readCharx(await this.host.keep(this.source.stream(file, MAX_CHARX_BYTES)), file.path);
    } else throw new ImportError("risu_neither");
  }

  async *#readModule(file: SourceFile): AsyncGenerator<ImportStep> {
    yield* this.#listModuleSteps(file.path, readModule(await this.source.read(file, MAX_RISU_PACK_BYTES)));
  }

  async *#readPreset(file: SourceFile): AsyncGenerator<ImportStep> {
    const bytes = await this.source.read(file, MAX_RISU_PACK_BYTES);
    yield convertRisuPreset(await readPresetFile(bytes, /\.risup$/i.test(file.path)), file.path);
    yield createLeftOutNote(file.path, "risu_presets");
  }

  *#listModuleSteps(path: string, module: JsonObject): Generator<ImportStep> {
    if (asArray(module.lorebook).length === 0) return yield createLeftOutNote(path, "risu_module_empty");
    yield createLorebookStep(path, asText(module.name), module.lorebook);
    yield createChangedNote(path, "risu_module");
  }

  *#readPersona(file: SourceFile, persona: JsonObject, avatar: Uint8Array<ArrayBuffer>): Generator<ImportStep> {
    const name = asText(persona.name);
    const id = deriveStableId("risuai", "persona file", name);
    if (asText(persona.note) !== "") yield createChangedNote(file.path, "risu_note");
    yield { what: "persona", id, source: file.path, name, description: asText(persona.personaPrompt), avatar };
  }

  *#readJson(file: SourceFile, json: JsonObject): Generator<ImportStep> {
    const { path } = file;
    if (json.type === "risu" && Array.isArray(json.data)) {
      return yield createLorebookStep(path, asText(json.name), json.data);
    }
    if (json.type === "risuModule") return yield* this.#listModuleSteps(path, json);
    if (json.type === "regex") return yield createLeftOutNote(path, "risu_scripts");
    if (Array.isArray(json.promptTemplate) || "mainPrompt" in json && "maxContext" in json) {
      yield convertRisuPreset(json, path);
      return yield createLeftOutNote(path, "risu_presets");
    }
    const bytes = new TextEncoder().encode(JSON.stringify(json));
    yield this.#toCharacter(path, parseCardFile(path, bytes), bytes);
  }

  #toCharacter(source: string, card: Card, file: Uint8Array<ArrayBuffer> | string): ImportedCharacter {
    const { name } = card.data;
    const id = this.#createId(card);
    this.#cards.set(toRisuFileName(name), { id, card });
    return { what: "character", id, source, name, file };
  }

  *#readChats({ path }: SourceFile, json: JsonObject): Generator<ImportStep> {
    const chats = (Array.isArray(json.data) ? json.data : [json.data]).filter(isJsonObject);
    const found = this.#cards.get(CHAT_FILE.exec(getBaseName(path))?.[1] ?? "");
    if (found === undefined) yield createChangedNote(path, "risu_chats_without_character");
    const folders = asArray(json.folders).map(asObject);
    const context: RisuChatContext = {
      source: path,
      participants: found === undefined ? [] : [{ character_id: found.id }],
      speaker: found && {
        id: found.id,
        name: found.card.data.nickname || found.card.data.name,
        greetings: [found.card.data.first_mes, ...found.card.data.alternate_greetings],
      },
      userName: "User",
      findFolder: (id) => asText(folders.find((folder) => id !== "" && folder.id === id)?.name),
    };
    for (const [index, chat] of chats.entries()) {
      yield* readRisuChat(chat, { ...context, source: chats.length > 1 ? `${path}#${index}` : path });
    }
  }

  /**
   * Returns the ID of a character. Name, author and creation date identify it; if they aren't unique, the content does.
   */
  #createId({ data }: Card): string {
    const origin = ["risuai", "card", data.name, data.creator, asText(data.creation_date)];
    const id = deriveStableId(...origin);
    const own = this.#ids.has(id) ? deriveStableId(...origin, hashContent(data)) : id;
    this.#ids.add(own);
    return own;
  }

  async *#tryFile(file: SourceFile, steps: AsyncGenerator<ImportStep>): AsyncGenerator<ImportStep> {
    try {
      yield* steps;
    } catch (error) {
      yield createRefusedNote(file.path, error);
    }
  }
}

/** Finds the persona in a PNG file: base64-encoded JSON in a text chunk. */
function findPersona(png: Uint8Array): JsonObject | undefined {
  const chunk = parsePng(png).chunks.find((chunk) => getKeyword(chunk) === "persona");
  if (chunk === undefined) return undefined;
  const text = new TextDecoder("latin1").decode(readTextChunk(chunk, MAX_PERSONA_BYTES));
  try {
    return parseJsonObject(Uint8Array.fromBase64(text));
  } catch (cause) {
    throw new ImportError("risu_persona", { cause });
  }
}

function createLorebookStep(path: string, ownName: string, entries: unknown): ImportStep {
  const book = convertRisuBook(entries);
  if (book === undefined) return createRefusedNote(path, "risu_no_entries");
  const name = ownName || getStem(path);
  const id = deriveStableId("risuai", "lorebook file", ownName, hashContent(book));
  return { what: "lorebook", id, source: path, name, book, scope: "chat" };
}

function isChatFile({ type }: JsonObject): boolean {
  return type === "risuChat" || type === "risuAllChats";
}

function isAsset(path: string): boolean {
  return /^(assets\/)?[0-9a-f-]{32,64}\.[a-z0-9]{2,5}$/i.test(getRisuKey(path));
}

/** Creates a file name like RisuAI. */
function toRisuFileName(name: string): string {
  return name.replace(/[<>:"/\\|?*.,]/g, "");
}

/**
 * Size limit of RisuAI's module and preset files. The images of a module come after the part that is read. Every byte
 * is substituted by a fixed table. A preset is compressed MessagePack, encrypted with a key that is the same in every
 * copy of RisuAI.
 *
 * @see https://github.com/kwaroran/RisuAI rpack/README, process/modules.ts (exportModule) and
 *   storage/database.svelte.ts (downloadPreset) at 904a14a (2026-01-12)
 */
const MAX_RISU_PACK_BYTES = 256 * 1024 * 1024;
const MAX_PRESET_BYTES = 16 * 1024 * 1024;

/** Substitution table, part of the format. */
const TABLE = Uint8Array.fromBase64(
  "LPeEi8ll+7afrrMDLQFpdB/ko+zuXDQhk0oPauJiAp4inP08/HHHxq1ZZwVwbYpEEvokhl+v0XpHzv5QY91RBm8Y4FKoCZ1Wc0y4U2zDoA4Z" +
    "zz4NfgcyaEbqSPmZLqukSSBeVTU4DLzTsVgWeSgKGuHyzcQ526K6YHJ2fZXvf8jA3jeUv7UUgZIlRazn9WanKzZawRPjSzrojYMbfCewmkLr" +
    "h6rcVI54JtJXKdS3+C+PiXXwQXfCHv/YFRHlBJcX8zHQmwDXyrRPKjvZsmvaXaE/MGG9kT1O5t++TYKMHSMQmGT0hTN7kEO7qYjx1qUc9sxu" +
    "uVsLlu3V6cXLCKaAQA==",
);

/** Header of a module: magic byte, version, and length of its JSON. */
const MODULE_MARK = 111;
const MODULE_VERSION = 0;
const MODULE_HEAD_BYTES = 6;

const PRESET_PASSWORD = "risupreset";
const IV_BYTES = 12;

/** Reads a `.risum` file without its images. @throws {AppError} `unprocessable` */
function readModule(bytes: Uint8Array): JsonObject {
  const isModule = bytes.length > MODULE_HEAD_BYTES && bytes[0] === MODULE_MARK && bytes[1] === MODULE_VERSION;
  if (!isModule) throw new ImportError("risu_no_module");
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(2, true);
  const packed = bytes.subarray(MODULE_HEAD_BYTES, MODULE_HEAD_BYTES + length);
  if (packed.length < length) throw new ImportError("risu_cut_off");
  try {
    const { type, module } = asObject(parseJsonBytes(substituteBytes(packed)));
    if (type === "risuModule" && isJsonObject(module)) return module;
  } catch (cause) {
    throw new ImportError("risu_module_damaged", { cause });
  }
  throw new ImportError("risu_holds_no_module");
}

/**
 * Reads a `.risup` file, or the older `.risupreset`.
 *
 * @param isExchanged False for the older format.
 * @throws {AppError} `unprocessable`, `too_large`
 */
async function readPresetFile(bytes: Uint8Array<ArrayBuffer>, isExchanged: boolean): Promise<JsonObject> {
  const outer = asObject(decodeMessagePack(unpack(isExchanged ? substituteBytes(bytes) : bytes, MAX_PRESET_BYTES)));
  const sealed = outer.preset ?? outer.pres;
  if (outer.type !== "preset" || !(sealed instanceof Uint8Array)) {
    throw new ImportError("risu_no_preset");
  }
  const preset = decodeMessagePack(await openSealed(sealed));
  if (!isJsonObject(preset)) throw new ImportError("risu_holds_no_preset");
  return preset;
}

async function openSealed(sealed: Uint8Array): Promise<Uint8Array> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(PRESET_PASSWORD));
  const key = await crypto.subtle.importKey("raw", digest, "AES-GCM", false, ["decrypt"]);
  try {
    const parameters = { name: "AES-GCM", iv: new Uint8Array(IV_BYTES) };
    return new Uint8Array(await crypto.subtle.decrypt(parameters, key, sealed.slice()));
  } catch (cause) {
    throw new ImportError("risu_preset_damaged", { cause });
  }
}

function substituteBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(bytes, (byte) => TABLE[byte]!);
}

/** The database in a data folder. */
const FOLDER_DATABASE = "database.bin";
/** File names in the server's data folder: hex-encoded keys. */
const HEX_NAME = /^(?:[0-9a-f]{2}){6,}$/i;
const KEYS = /^(assets|database|coldstorage|remotes)\//;

/** Finds files by the last part of RisuAI's names. */
export class RisuFiles {
  readonly #byName = new Map<string, SourceFile>();

  constructor(source: ImportSource) {
    for (const file of source.files) this.#byName.set(getBaseName(getRisuKey(file.path)), file);
  }

  /** The database, if any. */
  get database(): SourceFile | undefined {
    return this.#byName.get(RISU_DATABASE) ?? this.#byName.get(FOLDER_DATABASE);
  }

  /** Finds the file for a name such as `assets/1f2e.png`. */
  find(key: string): SourceFile | undefined {
    return this.#byName.get(getBaseName(key));
  }
}

/** Returns RisuAI's name for a file. */
function getRisuKey(path: string): string {
  const name = getBaseName(path);
  const key = HEX_NAME.test(name) ? Buffer.from(name, "hex").toString() : "";
  return KEYS.test(key) ? key : path;
}
