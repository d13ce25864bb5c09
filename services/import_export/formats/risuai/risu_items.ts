/**
 * Converts RisuAI's characters and lorebooks to V3 cards and lorebooks, with the same fields as its own export, and its
 * chats. A chat's greeting isn't one of its messages but an index into the character's greetings; its own lorebook is
 * imported with it.
 *
 * @see https://github.com/kwaroran/RisuAI characterCards.ts (createBaseV3), storage/database.svelte.ts (Chat, Message) and
 *   characters.ts (exportChat) at 460ecae (2025-12-31)
 */
import {
  createChangedNote,
  createRefusedNote,
  type ImportReason,
  importReason,
  type ImportReasonCode,
} from "../../import_report.ts";
import { convertRisuBook } from "../../../lorebooks/foreign_lorebooks.ts";
import { deriveStableId, getExtension, hashContent } from "../../import_source.ts";
import { asArray, asNumber, asObject, asText, isJsonObject, type JsonObject } from "../../../json/type_guards.ts";
import { expandGreetings } from "../../../prompts/participants.ts";
import type { ImportedMessage, ImportStep } from "../../import_item.ts";
import { toIsoTime } from "../chat_files.ts";

const RISU_ASSET = "x-risu-asset";

/** An additional image or sound of a character. */
export interface RisuMedium {
  /** Its type in a card that RisuAI exports. */
  type: string;
  name: string;
  ext: string;
  /** RisuAI's name of the file. */
  key: string;
}

/** Yields the additional files. */
export function* findMedia(character: JsonObject): Generator<RisuMedium> {
  const createMedium = (type: string, name: unknown, key: unknown, ext: unknown): RisuMedium => ({
    type,
    name: asText(name),
    key: asText(key),
    ext: asText(ext) || getExtension(asText(key)),
  });
  for (const asset of asArray(character.ccAssets).map(asObject)) {
    yield createMedium(asText(asset.type) || "other", asset.name, asset.uri, asset.ext === "unknown" ? "" : asset.ext);
  }
  for (const [name, key, ext] of asArray(character.additionalAssets).map(asArray)) {
    yield createMedium(RISU_ASSET, name, key, ext);
  }
  for (const [name, key] of asArray(character.emotionImages).map(asArray)) yield createMedium("emotion", name, key, "");
}

/** Yields a reason for everything of a character that Parlor can't use. */
export function* findLosses(character: JsonObject): Generator<ImportReasonCode> {
  if (isJsonObject(character.vits)) yield "risu_voice";
  const effects = asArray(character.triggerscript).flatMap((trigger) => asArray(asObject(trigger).effect));
  const isScripted = asArray(character.customscript).length > 0 || asText(character.backgroundHTML) !== "" ||
    effects.some((effect) => asObject(effect).type !== "v2Header");
  if (isScripted) yield "risu_card_scripts";
}

/** Context of a chat. */
export interface RisuChatContext {
  /** Its path in the import. */
  source: string;
  participants: { character_id: string; muted?: boolean; talkativeness?: number }[];
  /** The character of the greeting and of messages without a character. Greetings contain macros. */
  speaker?: { id: string; name: string; greetings: string[] };
  userName: string;
  /** Returns the character of a message by RisuAI's id. */
  findCharacter?(id: string): string | undefined;
  findPersona?(id: string): string | undefined;
  /** Returns the name of a chat folder. */
  findFolder?(id: string): string | undefined;
  /** Lorebooks of modules that are enabled for this chat. */
  lorebookIds?: string[];
}

/** Texts for "no greeting". */
const BLANK = ["", "{{none}}", "{{blank}}"];
const REASONING = /^\s*<Thoughts>([\s\S]*?)<\/Thoughts>\s*/;
const IMAGE_MARK = /\{\{inlay(?:ed|eddata)?::[^{}]{0,200}\}\}/g;
/** Placeholder for messages that RisuAI moved to a separate file. */
const COLD_MARK = "\uEF01COLDSTORAGE\uEF01";
/** Depth of the author's note: the end of the prompt, unless it was moved. */
const NOTE_DEPTH = 0;

/** Returns the key of the file with a chat's messages; `undefined` if the chat contains them. */
export function findColdKey(chat: JsonObject): string | undefined {
  const first = asText(asObject(asArray(chat.message)[0]).data);
  return first.startsWith(COLD_MARK) ? first.slice(COLD_MARK.length) : undefined;
}

/** Reads a chat. Yields nothing for a chat without messages. */
export function* readRisuChat(chat: JsonObject, context: RisuChatContext): Generator<ImportStep> {
  const { source } = context;
  const chatMessages = asArray(chat.message).filter(isJsonObject);
  if (chatMessages.length === 0) return;
  if (findColdKey(chat) !== undefined) {
    return yield createRefusedNote(source, "risu_cold");
  }
  const title = asText(chat.name);
  const id = deriveStableId(
    "risuai",
    "chat",
    asText(chat.id) || `${title} ${asText(chatMessages[0]!.time)} ${asText(chatMessages[0]!.data)}`,
  );
  const lorebook_ids = [...context.lorebookIds ?? []];
  const book = convertRisuBook(chat.localLore);
  if (book !== undefined) {
    const bookId = deriveStableId("risuai", "lorebook of", id);
    lorebook_ids.push(bookId);
    yield { what: "lorebook", id: bookId, source, name: `${title || "Chat"}, lore`, book, scope: "chat" };
  }
  const personaId = context.findPersona?.(asText(chat.bindedPersona));
  const messages = convertMessages(chatMessages, { id, chat, context, personaId });
  for (const reason of listLosses(chat, chatMessages)) yield createChangedNote(source, reason);
  const note = asText(chat.note).trim();
  const folder = context.findFolder?.(asText(chat.folderId));
  const head = {
    title,
    participants: context.participants,
    ...(personaId !== undefined && { persona_id: personaId }),
    ...(note !== "" && { note: { text: note, depth: NOTE_DEPTH, role: "system" } }),
    ...(lorebook_ids.length > 0 && { lorebook_ids }),
    ...(folder !== undefined && folder !== "" && { folder }),
  };
  const times = messages.flatMap(({ created_at }) => created_at ?? []).sort();
  yield {
    what: "conversation",
    id,
    source,
    name: title,
    hash: hashContent([head, messages]),
    head,
    messages,
    createdAt: times[0],
    updatedAt: times.at(-1),
  };
}

interface ParsedMessage {
  id: string;
  chat: JsonObject;
  context: RisuChatContext;
  personaId: string | undefined;
}

function convertMessages(
  chatMessages: JsonObject[],
  { id, chat, context, personaId }: ParsedMessage,
): ImportedMessage[] {
  // Messages up to this one aren't sent.
  const lastCut = chatMessages.findLastIndex(({ disabled }) => disabled === "allBefore");
  const messages = chatMessages.map((message, index): ImportedMessage => {
    const isUser = message.role === "user";
    const text = asText(message.data);
    const reasoning = isUser ? null : REASONING.exec(text);
    const time = toIsoTime(message.time);
    const model = asText(asObject(message.generationInfo).model);
    const name = asText(message.name);
    const saying = asText(message.saying);
    const character = isUser
      ? undefined
      : context.findCharacter?.(saying) ?? (saying === "" ? context.speaker?.id : undefined);
    const isHidden = message.disabled === true || message.isComment === true || index <= lastCut;
    return {
      id: `${id}-${index}`,
      role: isUser ? "user" : "assistant",
      content: reasoning === null ? text : text.slice(reasoning[0].length),
      ...(reasoning !== null && { reasoning: reasoning[1]!.trim() }),
      ...(time !== undefined && { created_at: time, updated_at: time }),
      ...(model !== "" && { model }),
      ...(character !== undefined && { character_id: character }),
      ...(isUser && personaId !== undefined && { persona_id: personaId }),
      ...(name !== "" && { name }),
      ...(isHidden && { hidden: true }),
    };
  });
  const greeting = findGreeting(chat, context, id, messages[0]?.created_at);
  return greeting === undefined ? messages : [{ ...greeting, ...(lastCut >= 0 && { hidden: true }) }, ...messages];
}

function findGreeting(
  chat: JsonObject,
  { speaker, userName }: RisuChatContext,
  id: string,
  time: string | undefined,
): ImportedMessage | undefined {
  if (speaker === undefined) return undefined;
  const names = { char: speaker.name, user: userName };
  // Seeded with the chat's ID: random choices are the same in every import.
  const settled = { seed: id, nowMs: time === undefined ? 0 : Date.parse(time) };
  const texts = expandGreetings(speaker.greetings, names, settled);
  const chosen = (asNumber(chat.fmIndex) ?? -1) + 1; // -1 is the first greeting, 0 the first alternate greeting.
  const versions = texts.flatMap((content, n) => BLANK.includes(content) ? [] : [{ content, n }]);
  const active = versions.findIndex(({ n }) => n === chosen);
  if (active < 0) return undefined;
  return {
    id: `${id}-g`,
    role: "assistant",
    content: versions[active]!.content,
    character_id: speaker.id,
    ...(time !== undefined && { created_at: time, updated_at: time }),
    ...(versions.length > 1 && { variants: versions.map(({ content }) => ({ content })), active_variant: active }),
  };
}

function* listLosses(chat: JsonObject, chatMessages: JsonObject[]): Generator<ImportReason> {
  const images = chatMessages.reduce((sum, { data }) => sum + (asText(data).match(IMAGE_MARK)?.length ?? 0), 0);
  if (images > 0) yield importReason("risu_chat_images", { count: images });
  const memory = [chat.supaMemoryData, chat.hypaV2Data, chat.hypaV3Data].some(hasMemory);
  if (memory) yield importReason("risu_memory");
  if (Object.keys(asObject(chat.scriptstate)).length > 0) yield importReason("risu_variables");
}

function hasMemory(value: unknown): boolean {
  if (typeof value === "string") return value !== "";
  const { chunks, mainChunks, summaries } = asObject(value);
  return [chunks, mainChunks, summaries].some((part) => asArray(part).length > 0);
}
