/** Reads a SillyTavern user folder, items before the items that refer to them. */
import { readLogitBias } from "../../../presets/preset.ts";
import { SCAN_DEFAULTS } from "../../../lorebooks/scan_entries.ts";
import { createChangedNote, createLeftOutNote, createRefusedNote, importReason } from "../../import_report.ts";
import { asNumber, asObject, asText, asTexts, isJsonObject, type JsonObject } from "../../../json/type_guards.ts";
import { toDataUrl } from "../../../attachments/images/image_header.ts";
import {
  deriveStableId,
  getBaseName,
  getExtension,
  getStem,
  type ImportHost,
  type ImportSource,
  parseJsonObject,
  type SourceFile,
} from "../../import_source.ts";
import type { ImportNote, ImportStep } from "../../import_item.ts";
import {
  MAX_CHAT_BYTES,
  readTavernChat,
  readTavernParent,
  type TavernChatContext,
  type TavernParent,
} from "./tavern_chat.ts";
import { type QuickReplyFile, readQuickReplies } from "./quick_replies.ts";
import { readOwnSettings } from "./tavern_settings.ts";
import { listObjects } from "../chat_files.ts";
import type { Card } from "../../../characters/card/card.ts";
import { findSprites, openTavernFolder, type Sprite, type TavernFolder } from "./tavern_folder.ts";
import { embedCard, parsePngCard, removeCard } from "../../../characters/png/png_card.ts";
import { type FurtherFile, packCharacter } from "../../character_package.ts";

const MAX_CARD_BYTES = 20 * 1024 * 1024;
const MAX_JSON_BYTES = 32 * 1024 * 1024;
const IMAGE_ENDING = /\.(png|jpe?g|webp|gif)$/i;

/** Objects that chats refer to, by SillyTavern's names. */
interface References {
  /** Ids by card file. */
  characters: Map<string, string>;
  /** Card files by character name; absent if several characters have the same name. */
  byName: Map<string, string | undefined>;
  /** Ids by image file. */
  personas: Map<string, string>;
  /** Image files of personas by the card file that they are bound to. */
  connections: Map<string, string>;
  /** Ids by name. */
  lorebooks: Map<string, string>;
}

/** Yields all items of the folder. @throws {AppError} `unprocessable` if it isn't a user folder. */
export async function* readSillyTavern(source: ImportSource, host: ImportHost): AsyncGenerator<ImportStep> {
  const folder = openTavernFolder(source);
  yield* folder.leftOut;
  const known: References = {
    ...{ characters: new Map(), byName: new Map(), personas: new Map(), connections: new Map(), lorebooks: new Map() },
  };
  const reading = new Reading(source, folder, known, host);
  const settings = await reading.readSettings();
  yield* reading.notes.splice(0);
  yield* reading.readPersonas(settings);
  yield* reading.readLorebooks(settings);
  yield* reading.readCharacters(settings);
  yield* reading.readPresets(settings);
  yield* reading.readChats();
  yield* reading.readGroupChats();
  const { templates, notes } = readQuickReplies(settings, await reading.readQuickReplySets(), {
    characters: known.characters,
    chats: reading.quickRepliesOfChats,
  });
  yield* notes;
  yield* readOwnSettings(settings, {
    source: folder.find("settings.json")?.path ?? "settings.json",
    personas: known.personas,
    templates,
  });
}

class Reading {
  readonly notes: ImportNote[] = [];
  /** What chats say about sets of quick replies, by conversation ID. */
  readonly quickRepliesOfChats = new Map<string, unknown>();
  /** Names of the cards that limits mention, by file without `.png`. */
  readonly #cardNames = new Map<string, string>();
  /** Chats with branches, by path in the folder. */
  readonly #parents = new Map<string, TavernParent>();

  constructor(
    readonly source: ImportSource,
    readonly folder: TavernFolder,
    readonly known: References,
    readonly host: ImportHost,
  ) {}

  async readSettings(): Promise<JsonObject> {
    const file = this.folder.find("settings.json");
    if (file === undefined) return {};
    return await this.#readJson(file).catch((error) => {
      this.notes.push(createRefusedNote(file.path, error));
      return {};
    });
  }

  async *readPersonas(settings: JsonObject): AsyncGenerator<ImportStep> {
    const user = asObject(settings.power_user);
    const names = asObject(user.personas);
    const descriptions = asObject(user.persona_descriptions);
    for (const [file, name] of Object.entries(names)) {
      const id = deriveStableId("sillytavern", "persona", file);
      this.known.personas.set(file, id);
      const stored = descriptions[file];
      const description = asText(isJsonObject(stored) ? stored.description : stored);
      const characterIds: string[] = [];
      for (const { type, id: card } of listObjects(asObject(stored).connections)) {
        const cardFile = this.folder.find(`characters/${asText(card)}`);
        if (type !== "character" || cardFile === undefined || this.known.connections.has(asText(card))) continue;
        this.known.connections.set(asText(card), file);
        characterIds.push(deriveStableId("sillytavern", "character", asText(card)));
      }
      const image = this.folder.find(`User Avatars/${file}`);
      const avatar = image && await this.source.read(image, MAX_CARD_BYTES).catch(() => undefined);
      if (image !== undefined && avatar === undefined) yield createRefusedNote(image.path, "image_unreadable");
      yield {
        what: "persona",
        id,
        source: `User Avatars/${file}`,
        name: asText(name) || file,
        description,
        placement: isJsonObject(stored) ? toPlacement(stored) : undefined,
        characterIds,
        avatar,
      };
    }
    for (const { path } of this.folder.listFiles("User Avatars")) {
      if (this.known.personas.has(getBaseName(path))) continue;
      yield createLeftOutNote(path, "persona_image_unused");
    }
  }

  async *readLorebooks(settings: JsonObject): AsyncGenerator<ImportStep> {
    const info = asObject(settings.world_info_settings);
    const selected = isJsonObject(info.world_info) ? info.world_info.globalSelect : undefined;
    const global = Array.isArray(selected) ? selected.map(asText) : [];
    const ofPersonas = this.#findPersonaLorebooks(settings);
    const ofCharacters = this.#findCharacterLorebooks(info);
    for (const file of this.folder.listFiles("worlds")) {
      if (!/\.json$/i.test(file.path)) continue;
      const name = getStem(file.path);
      const id = deriveStableId("sillytavern", "lorebook", name);
      this.known.lorebooks.set(name, id);
      const book = await this.#readJson(file).catch((error) => createRefusedNote(file.path, error));
      if (isNote(book)) {
        yield book;
        continue;
      }
      await this.#addNamesToLimits(book, settings);
      applySettings(book, info);
      const personaIds = ofPersonas.get(name);
      const characterIds = ofCharacters.get(name);
      // A book that isn't selected globally still belongs to the cards that refer to it.
      const scope = global.includes(name) ? "global" : characterIds ? "character" : personaIds ? "persona" : "chat";
      yield {
        ...{ what: "lorebook", id, source: file.path, name, book, scope },
        ...(personaIds && { personaIds }),
        ...(characterIds && { characterIds }),
      };
    }
  }

  /** Adds the names that cards and tags have to limits of entries, which SillyTavern writes as card files and tag IDs. */
  async #addNamesToLimits(book: JsonObject, settings: JsonObject): Promise<void> {
    const tagNames = readTagNames(settings);
    for (const entry of Object.values(asObject(book.entries))) {
      const filter = asObject(asObject(entry).characterFilter);
      const files = asTexts(filter.names);
      const ids = asTexts(filter.tags);
      if (files.length > 0) {
        filter.names = [...new Set([...files, ...await Promise.all(files.map((file) => this.#findCardName(file)))])];
      }
      if (ids.length > 0) filter.tags = [...new Set([...ids, ...ids.flatMap((id) => tagNames.get(id) ?? [])])];
    }
  }

  /** Returns the name in a card file. @param stem Without `.png`; returned if there's no readable card. */
  async #findCardName(stem: string): Promise<string> {
    let name = this.#cardNames.get(stem);
    if (name === undefined) {
      const file = this.folder.find(`characters/${stem}.png`);
      const bytes = file && await this.source.read(file, MAX_CARD_BYTES).catch(() => undefined);
      try {
        name = bytes && parsePngCard(bytes).data.name;
      } catch {
        // Reading the characters reports it.
      }
      this.#cardNames.set(stem, name ??= stem);
    }
    return name;
  }

  async *readCharacters(settings: JsonObject): AsyncGenerator<ImportStep> {
    const tagNames = readTagNames(settings);
    const tagMap = asObject(settings.tag_map);
    const notes = new Map<string, JsonObject>();
    for (const note of listObjects(asObject(asObject(settings.extension_settings).note).chara)) {
      const file = `characters/${asText(note.name)}.png`;
      if (asText(note.prompt).trim() === "") continue;
      if (note.useChara !== false) notes.set(asText(note.name), note);
      else yield createLeftOutNote(file, "tavern_note_off");
    }
    const all = this.folder.listFiles("characters");
    const cards = all.filter(({ path }) =>
      /\.png$/i.test(path) && this.folder.find(`characters/${getBaseName(path)}`)?.path === path
    );
    const sprites = findSprites(all, this.folder);
    const overrides = new Map(
      listObjects(asObject(settings.extension_settings).expressionOverrides).map(({ name, path }) => [
        asText(name),
        asText(path) === "" ? [] : [asText(path)],
      ]),
    );
    for (const file of cards) {
      const name = getBaseName(file.path);
      const stem = getStem(name);
      try {
        let bytes = await this.source.read(file, MAX_CARD_BYTES);
        const card = parsePngCard(bytes);
        const images = sprites.take(...overrides.get(stem) ?? [], card.data.name, stem);
        const tags = asTexts(tagMap[name]).flatMap((id) => tagNames.get(id) ?? []);
        const added = tags.filter((tag) => !card.data.tags.includes(tag));
        card.data.tags = [...card.data.tags, ...new Set(added)];
        const note = notes.get(stem);
        if (note !== undefined) addAuthorNote(card, note);
        const world = asText(card.data.extensions.world);
        const isLinked = card.data.character_book !== undefined && this.known.lorebooks.has(world);
        if (isLinked) {
          delete card.data.character_book;
          yield createChangedNote(file.path, importReason("tavern_book_linked", { book: world }));
        }
        if (added.length > 0 || note !== undefined || isLinked) bytes = embedCard(bytes, card);
        const { name: cardName } = card.data;
        const id = deriveStableId("sillytavern", "character", name);
        this.known.characters.set(name, id);
        this.known.byName.set(cardName, this.known.byName.has(cardName) ? undefined : name);
        const origin = { id, source: file.path, name: cardName };
        if (images.length === 0) {
          yield { what: "character", ...origin, file: bytes };
          continue;
        }
        const files = images.map((one) => this.#toFile(one));
        const packed = await packCharacter(this.host, { card, files, image: removeCard(bytes) });
        yield* packed.notes;
        yield { what: "character", ...origin, file: packed.file, files: packed.files };
      } catch (error) {
        sprites.take(stem); // They're refused with their card.
        yield createRefusedNote(file.path, error);
      }
    }
    for (const [folder, count] of sprites.listLeft()) {
      yield createLeftOutNote(`characters/${folder}`, "expressions_only", count);
    }
  }

  #toFile({ file, name }: Sprite): FurtherFile {
    const { path: source, sizeBytes } = file;
    return {
      type: "emotion",
      name,
      ext: getExtension(source),
      source,
      sizeBytes,
      read: () => this.source.read(file, MAX_CARD_BYTES),
    };
  }

  /** Reads the sets of quick replies. */
  async readQuickReplySets(): Promise<QuickReplyFile[]> {
    const sets: QuickReplyFile[] = [];
    for (const file of this.folder.listFiles("QuickReplies")) {
      if (!/\.json$/i.test(file.path)) continue;
      const json = await this.#readJson(file).catch((error) => createRefusedNote(file.path, error));
      sets.push(isNote(json) ? { source: file.path, fault: json } : { source: file.path, json });
    }
    return sets;
  }

  async *readPresets(settings: JsonObject): AsyncGenerator<ImportStep> {
    const { bias_presets } = asObject(settings.oai_settings);
    for (const folder of ["OpenAI Settings", "TextGen Settings"]) {
      for (const file of this.folder.listFiles(folder)) {
        if (!/\.(json|settings)$/i.test(file.path)) continue;
        const name = getStem(file.path);
        const json = await this.#readJson(file).catch((error) => createRefusedNote(file.path, error));
        if (isNote(json)) yield json;
        else {
          const id = deriveStableId("sillytavern", "preset", folder, name);
          // SillyTavern's presets name their list of logit bias, which is in the settings.
          const { bias_preset_selected } = json;
          if (Array.isArray(asObject(bias_presets)[asText(bias_preset_selected)])) {
            json.logit_bias ??= readLogitBias({ bias_presets, bias_preset_selected });
          }
          yield { what: "preset", id, source: file.path, name, json };
        }
      }
    }
  }

  async *readChats(): AsyncGenerator<ImportStep> {
    for (const file of this.folder.listFiles("chats")) {
      if (!/\.jsonl$/i.test(file.path)) continue;
      const card = `${file.path.split("/").at(-2)}.png`;
      const character = this.known.characters.get(card);
      const context = this.#place(file, character === undefined ? [] : [{ character_id: character }]);
      if (character === undefined) {
        yield createChangedNote(file.path, importReason("character_missing", { card }));
      } else {
        context.findCharacter = () => character;
        context.ownPersona = this.known.connections.get(card);
      }
      yield* this.#readChat(file, context);
    }
  }

  async *readGroupChats(): AsyncGenerator<ImportStep> {
    const groups = new Map<string, JsonObject>();
    for (const file of this.folder.listFiles("groups")) {
      const group = await this.#readJson(file).catch((error) => createRefusedNote(file.path, error));
      if (isNote(group)) {
        yield group;
        continue;
      }
      const chats = Array.isArray(group.chats) ? group.chats.map(asText) : [];
      for (const chat of [asText(group.chat_id), ...chats]) groups.set(chat, group);
    }
    for (const file of this.folder.listFiles("group chats")) {
      if (!/\.jsonl$/i.test(file.path)) continue;
      const group = groups.get(getStem(file.path));
      const members = Array.isArray(group?.members) ? group.members.map(asText) : [];
      const muted = Array.isArray(group?.disabled_members) ? group.disabled_members.map(asText) : [];
      const participants = members.flatMap((card) => {
        const id = this.known.characters.get(card);
        return id === undefined ? [] : [{ character_id: id, ...(muted.includes(card) && { muted: true }) }];
      });
      const missing = members.filter((card) => !this.known.characters.has(card));
      if (group === undefined || missing.length > 0) {
        const members = importReason("members_missing", { cards: missing.join(", ") });
        yield createChangedNote(file.path, group === undefined ? "group_missing" : members);
      }
      yield* this.#readChat(file, {
        ...this.#place(file, participants),
        title: asText(group?.name) || getStem(file.path),
      });
    }
  }

  #place(file: SourceFile, participants: TavernChatContext["participants"]): TavernChatContext {
    const { characters, byName, personas, lorebooks } = this.known;
    return {
      source: file.path,
      key: getChatKey(file),
      title: getStem(file.path),
      participants,
      findCharacter: (avatar, name) => characters.get(avatar ?? "") ?? characters.get(byName.get(name) ?? ""),
      findPersona: (avatar) => personas.get(avatar),
      findLorebook: (name) => lorebooks.get(name),
      findImage: (url) => this.#readImage(url),
      findParent: (name) => this.#findParent(file, name),
    };
  }

  async *#readChat(file: SourceFile, context: TavernChatContext): AsyncGenerator<ImportStep> {
    try {
      const bytes = await this.source.read(file, MAX_CHAT_BYTES);
      const { conversation, quickReplies, notes } = await readTavernChat(bytes, context);
      yield* notes;
      if (conversation === undefined) return;
      if (quickReplies !== undefined) this.quickRepliesOfChats.set(conversation.id, quickReplies);
      yield conversation;
    } catch (error) {
      yield createRefusedNote(file.path, error);
    }
  }

  /** Returns the chat that a branch was made of; `undefined` if it isn't in the folder. */
  async #findParent(branch: SourceFile, name: string): Promise<TavernParent | undefined> {
    const path = `${this.folder.getPath(branch).split("/").slice(0, -1).join("/")}/${name}.jsonl`;
    const file = this.folder.find(path);
    if (file === undefined || file === branch) return undefined;
    let parent = this.#parents.get(path);
    if (parent === undefined) {
      const bytes = await this.source.read(file, MAX_CHAT_BYTES).catch(() => undefined);
      parent = bytes && readTavernParent(bytes, getChatKey(file));
      if (parent === undefined) return undefined;
      this.#parents.set(path, parent);
    }
    return parent;
  }

  async #readImage(url: string): Promise<string | undefined> {
    const path = url.replace(/^\//, "");
    const file = IMAGE_ENDING.test(path) ? this.folder.find(path) ?? this.folder.find(decodeText(path)) : undefined;
    if (file === undefined) return undefined;
    return toDataUrl(await this.source.read(file, MAX_CARD_BYTES));
  }

  async #readJson(file: SourceFile): Promise<JsonObject> {
    return parseJsonObject(await this.source.read(file, MAX_JSON_BYTES));
  }

  /** Returns the characters of further books (`charLore`), which names card files without `.png`. */
  #findCharacterLorebooks(info: JsonObject): Map<string, string[]> {
    const found = new Map<string, string[]>();
    for (const { name, extraBooks } of listObjects(asObject(info.world_info).charLore)) {
      const card = `${asText(name)}.png`;
      if (this.folder.find(`characters/${card}`) === undefined) continue;
      const id = deriveStableId("sillytavern", "character", card);
      for (const book of asTexts(extraBooks)) found.set(book, [...found.get(book) ?? [], id]);
    }
    return found;
  }

  #findPersonaLorebooks(settings: JsonObject): Map<string, string[]> {
    const user = asObject(settings.power_user);
    const found = new Map<string, string[]>();
    if (!isJsonObject(user.persona_descriptions)) return found;
    for (const [file, persona] of Object.entries(user.persona_descriptions)) {
      const id = this.known.personas.get(file);
      const book = isJsonObject(persona) ? asText(persona.lorebook) : "";
      if (book !== "" && id !== undefined) found.set(book, [...found.get(book) ?? [], id]);
    }
    return found;
  }
}

/** Positions of a persona's description, by SillyTavern's numbers. Others are in the prompt. */
const PERSONA_POSITIONS: Record<number, string> = { 2: "note_top", 3: "note_bottom", 4: "at_depth", 9: "none" };

function toPlacement({ position, depth, role }: JsonObject): JsonObject | undefined {
  const name = PERSONA_POSITIONS[asNumber(position) ?? 0];
  return name === undefined ? undefined : { position: name, depth, role: NOTE_ROLES[asNumber(role) ?? 0] };
}

/** Identifies a chat within its import. */
function getChatKey({ path }: SourceFile): string {
  return path.split("/").slice(-3).join("/");
}

/**
 * Writes the user's World Info settings into the entries of a book that don't have their own: in Parlor, each book has
 * its settings. Those equal to Parlor's default aren't written.
 */
function applySettings(book: JsonObject, info: JsonObject): void {
  const depth = asNumber(info.world_info_depth);
  const own = {
    ...(info.world_info_match_whole_words === true && { matchWholeWords: true }),
    ...(info.world_info_case_sensitive === true && { caseSensitive: true }),
    ...(info.world_info_use_group_scoring === true && { useGroupScoring: true }),
  };
  for (const entry of Object.values(asObject(book.entries)).filter(isJsonObject)) {
    for (const [field, value] of Object.entries(own)) entry[field] ??= value;
  }
  if (depth !== undefined && depth !== SCAN_DEFAULTS.scanDepth) book.scan_depth ??= depth;
  if (info.world_info_recursive === false) book.recursive_scanning ??= false;
}

/** SillyTavern's names of roles, by number. */
const NOTE_ROLES = ["system", "user", "assistant"];

/** Places of a character's author's note relative to the chat's, by SillyTavern's numbers. */
const NOTE_PLACES = ["replace", "before", "after"];

/** Adds the author's note of a character to its card. */
function addAuthorNote({ data }: Card, { prompt, position }: JsonObject): void {
  const note = { text: asText(prompt), place: NOTE_PLACES[asNumber(position) ?? 0] ?? NOTE_PLACES[0]! };
  data.extensions = { ...data.extensions, parlor: { ...asObject(data.extensions.parlor), note } };
}

/** Reads the names of SillyTavern's tags by ID. They're assigned to card files in `tag_map`. */
function readTagNames({ tags }: JsonObject): Map<string, string> {
  return new Map((Array.isArray(tags) ? tags : []).flatMap((tag): [string, string][] => {
    const { id, name } = asObject(tag);
    return typeof id === "string" && typeof name === "string" && name.trim() !== "" ? [[id, name.trim()]] : [];
  }));
}

function isNote(value: JsonObject | ImportNote): value is ImportNote {
  return value.what === "note" && "reason" in value;
}

function decodeText(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
