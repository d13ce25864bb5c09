/**
 * Reads what RisuAI writes: a local backup, the data folder of its server or its desktop form, or single files of
 * characters, personas, lorebooks, presets and chats, in any number.
 *
 * @see RisuAI, characterCards.ts, characters.ts, persona.ts, process/lorebook.svelte.ts and process/modules.ts at 460ecae
 *   (2025-12-31)
 */
import { cardIn, readCardFile } from "../characters/card_file.ts";
import type { Card } from "../characters/card.ts";
import { cardBytes } from "../characters/card_text.ts";
import { isCharx } from "../characters/charx.ts";
import { withoutEmbedded } from "../characters/main_icon.ts";
import { isPng, readPng } from "../characters/png_chunks.ts";
import { keywordOf, textOf } from "../characters/png_text.ts";
import { AppError } from "../errors.ts";
import { asObject, asText, isJsonObject, type JsonObject } from "../plain_json.ts";
import type { ImportStep } from "./import_item.ts";
import { contentHash, type ImportSource, type SourceFile, stableId } from "./import_source.ts";
import { objectIn } from "./json_object.ts";
import { MAX_PICTURE_BYTES, presetOfRisu, promptsNote, readRisuAccount } from "./risu_account.ts";
import { bookOfRisu, list } from "./risu_card.ts";
import { readRisuChat, type RisuPlace } from "./risu_chat.ts";
import { RisuFiles, risuKeyOf } from "./risu_files.ts";
import { baseOf, refused, stemOf } from "./sillytavern.ts";

/** All chats of one character are one file. */
const MAX_JSON_BYTES = 256 * 1024 * 1024;
const MAX_PERSONA_BYTES = 1024 * 1024;
/** `Fox_2025-12-31T060320123Z_chat.json`, or `Fox_all_chats_2025-12-31T06-03-20-123Z.json` */
const CHAT_FILE = /^(.*?)_(?:all_chats_)?\d{4}-\d\d-\d\dT[\dZ-]+(?:_chat)?\.json$/;
const NO_PLACE: [RegExp, string][] = [
  [/\.risum$/i, "modules are packed in a form that only RisuAI reads: export their lorebooks there, or make a backup"],
  [/\.risup(reset)?$/i, "presets are packed in a form that only RisuAI reads: export them there as JSON"],
  [/\.txt$|\.html?$/i, "a chat as text or page has neither times nor roles: export it as JSON"],
];
const CARD_FILE = /\.(png|charx|jpe?g)$/i;

/** Gives everything in it. @throws {AppError} `unprocessable` when nothing is of RisuAI, or a backup has no database */
export async function* readRisuAi(source: ImportSource): AsyncGenerator<ImportStep> {
  const files = new RisuFiles(source);
  const { database } = files;
  if (database !== undefined) return yield* readRisuAccount(source, database, files);
  if (source.files.length > 0 && source.files.every(({ path }) => isAsset(path))) {
    throw new AppError("unprocessable", "Cannot import this from RisuAI: its database is not there, or is cut off");
  }
  if (source.files.some(({ path }) => path === "card.json")) return yield* new Files(source).openCharx();
  yield* new Files(source).steps();
}

/** Single files: characters first, since files of chats name them. */
class Files {
  readonly #ids = new Set<string>();
  /** By their names as names of files have them. */
  readonly #cards = new Map<string, { id: string; card: Card }>();

  constructor(readonly source: ImportSource) {}

  async *steps(): AsyncGenerator<ImportStep> {
    const later: SourceFile[] = [];
    for (const file of this.source.files) {
      const reason = NO_PLACE.find(([ending]) => ending.test(file.path))?.[1];
      if (reason !== undefined) yield { what: "note", level: "left_out", source: file.path, reason, count: 1 };
      else if (/\.json$/i.test(file.path)) later.push(file);
      else if (CARD_FILE.test(file.path)) yield* this.#tried(file, this.#picture(file));
      else yield { what: "note", level: "left_out", source: file.path, reason: "it is no file of RisuAI", count: 1 };
    }
    const chats: [SourceFile, JsonObject][] = [];
    for (const file of later) {
      try {
        const json = objectIn(await this.source.read(file, MAX_JSON_BYTES));
        if (isChatFile(json)) chats.push([file, json]);
        else yield* this.#json(file, json);
      } catch (error) {
        yield refused(file.path, error);
      }
    }
    for (const [file, json] of chats) yield* this.#chats(file, json);
  }

  /** A CHARX is a zip, and came opened. */
  async *openCharx(): AsyncGenerator<ImportStep> {
    const { files } = this.source;
    const file = files.find(({ path }) => path === "card.json")!;
    const card = cardIn(file.path, await this.source.read(file, MAX_JSON_BYTES));
    const assets = list(card.data.assets).map(asObject).filter(({ type }) => type === "icon");
    const icon = assets.find(({ name }) => name === "main") ?? assets[0];
    const path = asText(icon?.uri).replace(/^embedd?ed:\/\//, "");
    const picture = files.find((one) => one.path === path);
    const avatar = picture && await this.source.read(picture, MAX_PICTURE_BYTES).catch(() => undefined);
    const others = files.filter((one) => one !== picture && /^assets\//.test(one.path)).length;
    if (others > 0) {
      const reason =
        "further pictures and sounds of a character are left out; the same file dropped onto Characters keeps them";
      yield { what: "note", level: "left_out", source: "assets", reason, count: others };
    }
    const bytes = cardBytes(avatar === undefined ? card : withoutEmbedded(card, true));
    yield { what: "character", id: this.#idOf(card), source: file.path, name: card.data.name, bytes, avatar };
  }

  async *#picture(file: SourceFile): AsyncGenerator<ImportStep> {
    const bytes = await this.source.read(file, MAX_PICTURE_BYTES);
    if (isPng(bytes)) {
      const persona = personaIn(bytes);
      if (persona !== undefined) return yield* this.#persona(file, persona, bytes);
    } else if (!isCharx(bytes)) throw new AppError("unprocessable", "it is neither a card nor a persona");
    // A CHARX goes to a Worker of its own, which keeps what it is given.
    const { card } = await readCardFile(bytes.slice());
    yield this.#character(file, card, bytes);
  }

  *#persona(file: SourceFile, persona: JsonObject, avatar: Uint8Array<ArrayBuffer>): Generator<ImportStep> {
    const name = asText(persona.name);
    const id = stableId("risuai", "persona file", name);
    if (asText(persona.note) !== "") {
      const reason = "its note is left out: personas here have none";
      yield { what: "note", level: "changed", source: file.path, reason };
    }
    yield { what: "persona", id, source: file.path, name, description: asText(persona.personaPrompt), avatar };
  }

  *#json(file: SourceFile, json: JsonObject): Generator<ImportStep> {
    const { path } = file;
    if (json.type === "risu" && Array.isArray(json.data)) return yield lorebook(path, asText(json.name), json.data);
    if (json.type === "risuModule") {
      yield lorebook(path, asText(json.name), json.lorebook);
      const reason = "of a module the lorebook comes in alone: its scripts and pictures do nothing outside of RisuAI";
      return yield { what: "note", level: "changed", source: path, reason };
    }
    if (json.type === "regex") {
      const reason = "scripts are left out: they do nothing outside of RisuAI";
      return yield { what: "note", level: "left_out", source: path, reason, count: 1 };
    }
    if (Array.isArray(json.promptTemplate) || "mainPrompt" in json && "maxContext" in json) {
      yield presetOfRisu(json, path);
      return yield promptsNote(path, 1);
    }
    const bytes = new TextEncoder().encode(JSON.stringify(json));
    yield this.#character(file, cardIn(path, bytes), bytes);
  }

  #character({ path }: SourceFile, card: Card, bytes: Uint8Array<ArrayBuffer>): ImportStep {
    const { name } = card.data;
    const id = this.#idOf(card);
    this.#cards.set(fileName(name), { id, card });
    return { what: "character", id, source: path, name, bytes };
  }

  *#chats({ path }: SourceFile, json: JsonObject): Generator<ImportStep> {
    const chats = (Array.isArray(json.data) ? json.data : [json.data]).filter(isJsonObject);
    const found = this.#cards.get(CHAT_FILE.exec(baseOf(path))?.[1] ?? "");
    if (found === undefined) {
      const reason = "its character is not in the file: chats come in without one and without its greeting";
      yield { what: "note", level: "changed", source: path, reason };
    }
    const folders = list(json.folders).map(asObject);
    const place: RisuPlace = {
      source: path,
      participants: found === undefined ? [] : [{ character_id: found.id }],
      speaker: found && {
        id: found.id,
        name: found.card.data.nickname || found.card.data.name,
        greetings: [found.card.data.first_mes, ...found.card.data.alternate_greetings],
      },
      userName: "User",
      folderOf: (id) => asText(folders.find((folder) => id !== "" && folder.id === id)?.name),
    };
    for (const [index, chat] of chats.entries()) {
      yield* readRisuChat(chat, { ...place, source: chats.length > 1 ? `${path}#${index}` : path });
    }
  }

  /** The name, the author and the day it was made tell a character; of two that share all of them the content does. */
  #idOf({ data }: Card): string {
    const origin = ["risuai", "card", data.name, data.creator, asText(data.creation_date)];
    const id = stableId(...origin);
    const own = this.#ids.has(id) ? stableId(...origin, contentHash(data)) : id;
    this.#ids.add(own);
    return own;
  }

  async *#tried(file: SourceFile, steps: AsyncGenerator<ImportStep>): AsyncGenerator<ImportStep> {
    try {
      yield* steps;
    } catch (error) {
      yield refused(file.path, error);
    }
  }
}

/** The persona in a picture: base64 of JSON in a text chunk of its own. */
function personaIn(png: Uint8Array): JsonObject | undefined {
  const chunk = readPng(png).chunks.find((chunk) => keywordOf(chunk) === "persona");
  if (chunk === undefined) return undefined;
  const text = new TextDecoder("latin1").decode(textOf(chunk, MAX_PERSONA_BYTES));
  try {
    return objectIn(Uint8Array.fromBase64(text));
  } catch (cause) {
    throw new AppError("unprocessable", "its persona cannot be read", { cause });
  }
}

function lorebook(path: string, ownName: string, entries: unknown): ImportStep {
  const book = bookOfRisu(entries);
  if (book === undefined) return refused(path, "its lorebook has no entries");
  const name = ownName || stemOf(path);
  const id = stableId("risuai", "lorebook file", ownName, contentHash(book));
  return { what: "lorebook", id, source: path, name, book, scope: "chat" };
}

function isChatFile({ type }: JsonObject): boolean {
  return type === "risuChat" || type === "risuAllChats";
}

function isAsset(path: string): boolean {
  return /^(assets\/)?[0-9a-f-]{32,64}\.[a-z0-9]{2,5}$/i.test(risuKeyOf(path));
}

/** As RisuAI makes names of files. */
function fileName(name: string): string {
  return name.replace(/[<>:"/\\|?*.,]/g, "");
}
