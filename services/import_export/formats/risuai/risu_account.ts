/**
 * Reads RisuAI's database: personas, lorebooks, characters, presets and chats, items before the items that refer to
 * them.
 *
 * @see https://github.com/kwaroran/RisuAI storage/database.svelte.ts and process/modules.ts at 460ecae (2025-12-31)
 */
import { convertRisuCard } from "../../../characters/card/foreign_cards.ts";
import { convertRisuBook } from "../../../lorebooks/foreign_lorebooks.ts";
import { createChangedNote, createLeftOutNote, createRefusedNote, importReason } from "../../import_report.ts";
import { parseCard, serializeCard } from "../../../characters/card/card.ts";
import {
  asArray,
  asNumber,
  asObject,
  asText,
  isJsonObject,
  type JsonObject,
  parseJsonBytes,
} from "../../../json/type_guards.ts";
import { type FurtherFile, packCharacter } from "../../character_package.ts";
import { deriveStableId, type ImportHost, type ImportSource, type SourceFile } from "../../import_source.ts";
import { type ImportedPreset, type ImportNote, type ImportStep, mapSampler } from "../../import_item.ts";
import { findColdKey, findLosses, findMedia, readRisuChat, type RisuChatContext } from "./risu_items.ts";
import type { RisuFiles } from "./risuai.ts";
import { MAX_SAVE_BYTES, openRisuSave, unpack } from "./risu_save.ts";

/** Maximum size of an image, the same as for uploads. */
export const MAX_IMAGE_BYTES = 20 * 1024 * 1024;
/** Maximum size of a chat's messages. */
const MAX_COLD_BYTES = 64 * 1024 * 1024;
const SAMPLERS = {
  temperature: "temperature",
  top_p: "top_p",
  top_k: "top_k",
  top_a: "top_a",
  min_p: "min_p",
  frequency_penalty: "frequencyPenalty",
  presence_penalty: "PresensePenalty", // RisuAI's spelling
  ...{ repetition_penalty: "repetition_penalty", max_tokens: "maxResponse", context_size: "maxContext" },
};
/** Samplers that are stored in hundredths. */
const HUNDREDTHS = ["temperature", "frequency_penalty", "presence_penalty"];
const SWITCHED_OFF = -1000;
const NAMELESS_USER = "User";

/** Yields all items. @throws {AppError} If the database can't be opened */
export async function* readRisuAccount(
  source: ImportSource,
  file: SourceFile,
  files: RisuFiles,
  host: ImportHost,
): AsyncGenerator<ImportStep> {
  const bytes = await source.read(file, MAX_SAVE_BYTES);
  const { database, missing } = await openRisuSave(
    bytes,
    async (name) => {
      const found = files.find(`remotes/${name}.local.bin`);
      return found && await source.read(found, MAX_SAVE_BYTES);
    },
  );
  for (const name of missing) yield createRefusedNote(name, "risu_character_missing");
  yield createLeftOutNote(file.path, "keys_left_out");
  yield* new Account(database, file.path, source, files, host).readSteps();
}

/** Converts a preset without its prompts. */
export function convertRisuPreset(preset: JsonObject, source: string): ImportedPreset {
  const name = asText(preset.name) || "RisuAI";
  const sampler = mapSampler(preset, SAMPLERS, (value, ours) => {
    if (value === SWITCHED_OFF) return undefined;
    return HUNDREDTHS.includes(ours) ? value / 100 : value;
  });
  return {
    what: "preset",
    id: deriveStableId("risuai", "preset", name),
    source,
    name,
    json: { sampler },
    isOurs: true,
  };
}

class Account {
  readonly #characters: JsonObject[];
  /** Number of characters in RisuAI's trash. */
  readonly #removed: number;
  readonly #modules: JsonObject[];
  readonly #personas: { id: string; risuId: string; name: string }[] = [];
  readonly #userName: string;

  constructor(
    readonly database: JsonObject,
    readonly path: string,
    readonly source: ImportSource,
    readonly files: RisuFiles,
    readonly host: ImportHost,
  ) {
    const characters = asArray(database.characters).filter(isJsonObject);
    this.#characters = characters.filter(({ trashTime }) => trashTime === undefined || trashTime === null);
    this.#removed = characters.length - this.#characters.length;
    this.#modules = asArray(database.modules).filter(isJsonObject);
    this.#userName = asText(database.username) || NAMELESS_USER;
  }

  async *readSteps(): AsyncGenerator<ImportStep> {
    yield* this.#readPersonas();
    yield* this.#readLorebooks();
    yield* this.#readGroupLorebooks();
    if (this.#removed > 0) yield createLeftOutNote(this.#resolvePath("characters"), "risu_trash", this.#removed);
    for (const character of this.#characters) if (character.type !== "group") yield* this.#readCharacter(character);
    const presets = asArray(this.database.botPresets).filter(isJsonObject);
    for (const preset of presets) yield convertRisuPreset(preset, this.#resolvePath("presets", preset.name));
    if (presets.length > 0) yield createLeftOutNote(this.#resolvePath("presets"), "risu_presets", presets.length);
    let empty = 0;
    for (const character of this.#characters) {
      for (const chat of asArray(character.chats).filter(isJsonObject)) {
        if (asArray(chat.message).length === 0) empty++;
        else yield* this.#readChat(chat, character);
      }
    }
    if (empty > 0) yield createLeftOutNote(this.#resolvePath("chats"), "empty_chats", empty);
  }

  async *#readPersonas(): AsyncGenerator<ImportStep> {
    for (const [index, persona] of asArray(this.database.personas).entries()) {
      if (!isJsonObject(persona)) continue;
      // The persona being edited is saved to the list only when another is selected.
      const isChosen = index === (asNumber(this.database.selectedPersona) ?? 0) &&
        asText(this.database.username) !== "";
      const name = asText(isChosen ? this.database.username : persona.name);
      const description = asText(isChosen ? this.database.personaPrompt : persona.personaPrompt);
      const risuId = asText(persona.id);
      const id = deriveStableId("risuai", "persona", risuId || name);
      const source = this.#resolvePath("personas", name);
      if (name === "" || this.#personas.some((other) => other.id === id)) continue;
      this.#personas.push({ id, risuId, name });
      const { avatar, note } = await this.#readImage(isChosen ? this.database.userIcon : persona.icon, source);
      if (note !== undefined) yield note;
      if (asText(persona.note) !== "") yield createChangedNote(source, "risu_note");
      yield { what: "persona", id, source, name, description, avatar };
    }
  }

  *#readLorebooks(): Generator<ImportStep> {
    const isOn = (ids: unknown, { id, namespace }: JsonObject) =>
      asArray(ids).some((one) => one === id || namespace !== undefined && one === namespace);
    const everywhere = [
      ...asArray(this.database.enabledModules),
      ...asText(this.database.moduleIntergration).split(",").map((name) => name.trim()).filter((name) => name !== ""),
    ];
    for (const module of this.#modules) {
      const name = asText(module.name) || "Module";
      const source = this.#resolvePath("modules", name);
      const more = ["regex", "trigger", "assets"].filter((part) => asArray(module[part]).length > 0);
      if (more.length > 0) yield createLeftOutNote(source, "risu_module_rest");
      const book = convertRisuBook(module.lorebook);
      if (book === undefined) continue;
      const of = this.#characters.filter((character) => isOn(character.modules, module)).map(getId);
      const scope = isOn(everywhere, module) ? "global" : of.length > 0 ? "character" : "chat";
      yield { what: "lorebook", id: getModuleId(module), source, name, book, scope, characterIds: of };
    }
    for (const [index, page] of asArray(this.database.loreBook).entries()) {
      const book = convertRisuBook(asObject(page).data);
      if (book === undefined) continue;
      const name = asText(asObject(page).name) || "Lorebook";
      const id = deriveStableId("risuai", "lorebook", String(index), name);
      const isChosen = index === (asNumber(this.database.loreBookPage) ?? 0);
      yield {
        what: "lorebook",
        id,
        source: this.#resolvePath("lorebooks", name),
        name,
        book,
        scope: isChosen ? "global" : "chat",
      };
    }
  }

  /** The lorebook of a group belongs to each of its chats. */
  *#readGroupLorebooks(): Generator<ImportStep> {
    for (const group of this.#characters) {
      const book = group.type === "group" ? convertRisuBook(group.globalLore, group) : undefined;
      if (book === undefined) continue;
      const name = asText(group.name) || "Group";
      yield {
        what: "lorebook",
        id: deriveGroupLorebookId(group),
        source: this.#resolvePath("groups", name),
        name,
        book,
        scope: "chat",
      };
    }
  }

  async *#readCharacter(character: JsonObject): AsyncGenerator<ImportStep> {
    const name = asText(character.name);
    const source = this.#resolvePath("characters", name);
    for (const reason of findLosses(character)) yield createChangedNote(source, reason);
    const { avatar, note } = await this.#readImage(character.image, source);
    if (note !== undefined) yield note;
    try {
      const card = convertRisuCard(character);
      const { files, missing } = this.#listFurther(character, source);
      if (missing > 0) yield createChangedNote(source, importReason("risu_media", { count: missing }));
      const origin = { id: getId(character), source, name };
      if (files.length === 0) {
        yield { what: "character", ...origin, file: serializeCard(card), avatar };
        return;
      }
      const packed = await packCharacter(this.host, { card: parseCard(card), files });
      yield* packed.notes;
      yield { what: "character", ...origin, file: packed.file, files: packed.files, avatar };
    } catch (error) {
      yield createRefusedNote(source, error); // Too long, or nested too deeply to be written as JSON.
    }
  }

  #listFurther(character: JsonObject, source: string): { files: FurtherFile[]; missing: number } {
    const media = [...findMedia(character)].filter(({ key }) => key !== "");
    const files = media.flatMap(({ key, ...medium }) => {
      const file = this.files.find(key);
      const read = () => this.source.read(file!, MAX_IMAGE_BYTES);
      return file === undefined
        ? []
        : [{ ...medium, source: `${source}/${medium.name}`, sizeBytes: file.sizeBytes, read }];
    });
    return { files, missing: media.length - files.length };
  }

  async *#readChat(chat: JsonObject, character: JsonObject): AsyncGenerator<ImportStep> {
    const source = this.#resolvePath("chats", `${asText(character.name)}/${asText(chat.name)}`);
    try {
      const cold = findColdKey(chat);
      const whole = cold === undefined ? chat : await this.#warm(chat, cold);
      const fmIndex = whole.fmIndex ?? character.firstMsgIndex;
      yield* readRisuChat({ ...whole, fmIndex }, this.#place(chat, character, source));
    } catch (error) {
      yield createRefusedNote(source, error);
    }
  }

  /** Loads an old chat. It's in a separate file, in older versions only with its messages. */
  async #warm(chat: JsonObject, key: string): Promise<JsonObject> {
    const bytes = await this.#read(`coldstorage/${key}`, MAX_COLD_BYTES) ??
      await this.#read(`coldstorage/${key}.json`, MAX_COLD_BYTES);
    if (bytes === undefined) return chat;
    const json = parseJsonBytes(unpack(bytes, MAX_COLD_BYTES));
    return { ...chat, ...(Array.isArray(json) ? { message: json } : asObject(json)) };
  }

  #place(chat: JsonObject, character: JsonObject, source: string): RisuChatContext {
    const isGroup = character.type === "group";
    const known = new Map(this.#characters.map((one) => [asText(one.chaId), one]));
    const members = isGroup ? asArray(character.characters).map(asText) : [asText(character.chaId)];
    const persona = this.#personas.find(({ risuId }) => risuId !== "" && risuId === chat.bindedPersona);
    const folders = asArray(character.chatFolders).map(asObject);
    const modules = this.#modules.filter(({ id, namespace, lorebook }) =>
      asArray(lorebook).length > 0 && asArray(chat.modules).some((one) => one === id || namespace && one === namespace)
    );
    return {
      source,
      participants: members.flatMap((risuId, index) => {
        const member = known.get(risuId);
        if (member === undefined) return [];
        const talkativeness = isGroup ? asNumber(asArray(character.characterTalks)[index]) : undefined;
        const isMuted = isGroup && asArray(character.characterActive)[index] === false;
        return [{
          character_id: getId(member),
          ...(isMuted && { muted: true }),
          ...(talkativeness !== undefined && { talkativeness: Math.min(1, Math.max(0, talkativeness)) }),
        }];
      }),
      speaker: isGroup ? undefined : {
        id: getId(character),
        name: asText(character.nickname) || asText(character.name),
        greetings: [asText(character.firstMessage), ...asArray(character.alternateGreetings).map(asText)],
      },
      userName: persona?.name ?? this.#userName,
      findCharacter: (risuId) => known.has(risuId) ? deriveStableId("risuai", "character", risuId) : undefined,
      findPersona: () => persona?.id,
      findFolder: (id) => {
        const folder = folders.find((one) => id !== "" && one.id === id);
        return folder && asText(folder.name);
      },
      lorebookIds: [
        ...modules.map(getModuleId),
        ...(isGroup && asArray(character.globalLore).length > 0 ? [deriveGroupLorebookId(character)] : []),
      ],
    };
  }

  async #readImage(
    key: unknown,
    source: string,
  ): Promise<{ avatar?: Uint8Array<ArrayBuffer>; note?: ImportNote }> {
    if (asText(key) === "") return {};
    const avatar = await this.#read(asText(key), MAX_IMAGE_BYTES).catch(() => undefined);
    if (avatar !== undefined) return { avatar };
    return { note: createChangedNote(source, "avatar_missing") };
  }

  async #read(key: string, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const found = this.files.find(key);
    return found && await this.source.read(found, maxBytes);
  }

  #resolvePath(part: string, name?: unknown): string {
    return name === undefined ? `${this.path}#${part}` : `${this.path}#${part}/${asText(name)}`;
  }
}

function getId(character: JsonObject): string {
  return deriveStableId("risuai", "character", asText(character.chaId));
}

function deriveGroupLorebookId(group: JsonObject): string {
  return deriveStableId("risuai", "lorebook of group", asText(group.chaId));
}

function getModuleId(module: JsonObject): string {
  return deriveStableId("risuai", "module", asText(module.id) || asText(module.name));
}
