/** Reads a chat in SillyTavern's JSONL: a header line, then one line per message with its swipes. */
import {
  asArray,
  asNumber,
  asObject,
  asText,
  findJsonFault,
  isJsonObject,
  type JsonObject,
} from "../../../json/type_guards.ts";
import type { ImportedConversation, ImportedMessage, ImportedText, ImportNote, ImportStep } from "../../import_item.ts";
import {
  createChangedNote,
  createLeftOutNote,
  createRefusedNote,
  type ImportReason,
  importReason,
} from "../../import_report.ts";
import { deriveStableId, getStem, hashContent, type ImportSource } from "../../import_source.ts";
import { toIsoTime } from "../chat_files.ts";

/** Maximum size of a chat, the same as for a conversation saved over HTTP. */
export const MAX_CHAT_BYTES = 64 * 1024 * 1024;
/** Maximum number of swipes per message. More are the result of a bug. */
const MAX_VARIANTS = 1_000;
const NEWLINE = 10;
const MAX_NOTED_LINES = 10;
const ROLES = ["system", "user", "assistant"];

/** Context of a chat. */
export interface TavernChatContext {
  /** Its path in the import. */
  source: string;
  /** Identifies the chat within its import, such as its path in the program's folder. */
  key: string;
  title: string;
  participants: { character_id: string; muted?: boolean }[];
  /** Returns the character of a message by its image file, or else by its name. */
  findCharacter?(avatarFile: string | undefined, name: string): string | undefined;
  /** Image file of the persona that is bound to the character. */
  ownPersona?: string;
  /** Returns the persona with this image file. */
  findPersona?(avatarFile: string): string | undefined;
  /** Returns the id of a lorebook by name. */
  findLorebook?(name: string): string | undefined;
  /** Returns an image of a message as a data URL. */
  findImage?(url: string): Promise<string | undefined>;
  /** Returns the chat with this file name, without its extension, that this one is a branch of. */
  findParent?(name: string): Promise<TavernParent | undefined>;
}

/** A chat with branches. */
export interface TavernParent {
  id: string;
  /** Numbers of the messages by the names of the branches and checkpoints that begin after them. */
  branches: ReadonlyMap<string, number>;
  /** Hashes of the messages' texts. */
  texts: readonly string[];
}

/** Reads a chat and frees its bytes. @returns The conversation, if there is one, its link to sets of quick replies, and notes on skipped lines. */
export async function readTavernChat(
  bytes: Uint8Array<ArrayBuffer>,
  context: TavernChatContext,
): Promise<{ conversation?: ImportedConversation; quickReplies?: unknown; notes: ImportNote[] }> {
  const notes: ImportNote[] = [];
  const lines = readLines(bytes, context.source, notes);
  bytes.buffer.transfer(0); // No longer needed, and as large as everything read from it.
  const first = lines[0];
  const header = first !== undefined && !("mes" in first) ? lines.shift()! : {};
  const metadata = asObject(header.chat_metadata);
  const messages = lines.filter((line) => typeof line.mes === "string" || "mes" in line);
  if (messages.length === 0) {
    notes.push(createRefusedNote(context.source, first === undefined ? "not_chat" : "no_messages"));
    return { notes };
  }
  const id = deriveChatId(context.key, header, messages);
  const read: ImportedMessage[] = [];
  for (const [index, line] of messages.entries()) {
    read.push(await convertMessage(line, `${id}-${index}`, context, notes));
  }
  const personaFile = asText(metadata.persona) || (context.ownPersona ?? "") || lastPersona(messages);
  const lorebook = context.findLorebook?.(asText(metadata.world_info));
  const forkedFrom = await findFork(metadata, messages, context, notes);
  const times = read.map(({ created_at }) => created_at).filter((time) => time !== undefined).sort();
  const conversation: ImportedConversation = {
    what: "conversation",
    id,
    source: context.source,
    name: context.title,
    hash: hashContent([metadata, read]),
    head: {
      title: context.title,
      participants: context.participants,
      ...toOptionalField("persona_id", personaFile === "" ? undefined : context.findPersona?.(personaFile)),
      ...toOptionalField("note", getNote(metadata)),
      ...toOptionalField("variables", getVariables(metadata)),
      ...toOptionalField("scenario", asText(metadata.scenario) || undefined),
      ...toOptionalField("system_prompt", asText(metadata.system_prompt) || undefined),
      ...toOptionalField("lorebook_ids", lorebook === undefined ? undefined : [lorebook]),
      ...toOptionalField("forked_from", forkedFrom),
      ...toOptionalField("summary", findSummary(messages, id)),
    },
    createdAt: toIsoTime(header.create_date) ?? times[0],
    updatedAt: times.at(-1),
    messages: read,
  };
  return { conversation, quickReplies: metadata.quickReply, notes };
}

/** Reads what branches need of a chat that they were made of; `undefined` if it has no messages. */
export function readTavernParent(bytes: Uint8Array, key: string): TavernParent | undefined {
  const lines = readLines(bytes, "", []);
  const first = lines[0];
  const header = first !== undefined && !("mes" in first) ? lines.shift()! : {};
  const messages = lines.filter((line) => "mes" in line);
  if (messages.length === 0) return undefined;
  const branches = new Map<string, number>();
  for (const [index, { extra }] of messages.entries()) {
    const { branches: names, bookmark_link: checkpoint } = asObject(extra);
    for (const name of [...asArray(names), checkpoint]) if (asText(name) !== "") branches.set(asText(name), index);
  }
  return { id: deriveChatId(key, header, messages), branches, texts: messages.map(({ mes }) => hashContent(mes)) };
}

function deriveChatId(key: string, header: JsonObject, messages: readonly JsonObject[]): string {
  return deriveStableId("tavern", key, asText(header.create_date) || asText(messages[0]!.send_date));
}

/** Returns where a branch begins: after the message that names it, or after the last one that both chats have. */
async function findFork(
  { main_chat: main }: JsonObject,
  messages: readonly JsonObject[],
  { source, findParent }: TavernChatContext,
  notes: ImportNote[],
): Promise<{ conversation_id: string; message_id: string } | undefined> {
  const name = asText(main);
  if (name === "" || findParent === undefined) return undefined;
  const parent = await findParent(name);
  if (parent === undefined) {
    notes.push(createChangedNote(source, importReason("tavern_parent_missing", { chat: name })));
    return undefined;
  }
  const differing = messages.findIndex(({ mes }, index) => hashContent(mes) !== parent.texts[index]);
  const last = parent.branches.get(getStem(source)) ?? (differing < 0 ? messages.length : differing) - 1;
  return { conversation_id: parent.id, message_id: `${parent.id}-${Math.max(0, last)}` };
}

/** Returns the newest summary, which SillyTavern stores at the message up to which it goes. */
function findSummary(messages: readonly JsonObject[], id: string): unknown {
  const index = messages.findLastIndex(({ extra }) => asText(asObject(extra).memory).trim() !== "");
  if (index < 0) return undefined;
  return { text: asText(asObject(messages[index]!.extra).memory), up_to_message_id: `${id}-${index}` };
}

function readLines(bytes: Uint8Array, source: string, notes: ImportNote[]): JsonObject[] {
  const found: JsonObject[] = [];
  let [number, broken] = [0, 0];
  // Line by line: splitting a file of empty lines would create millions of strings.
  for (let at = 0; at < bytes.length; number++) {
    const end = bytes.indexOf(NEWLINE, at);
    const line = bytes.subarray(at, end < 0 ? bytes.length : end);
    at += line.length + 1;
    if (line.length < 2) continue;
    const text = new TextDecoder().decode(line).trim();
    if (text === "") continue;
    const json = parseLine(text);
    if (json !== undefined) found.push(json);
    else if (broken++ < MAX_NOTED_LINES) {
      notes.push(note(source, importReason("broken_line", { line: number + 1 })));
    }
  }
  if (broken > MAX_NOTED_LINES) notes.push(note(source, importReason("broken_lines", { count: broken })));
  return found;
}

function parseLine(line: string): JsonObject | undefined {
  try {
    const json: unknown = JSON.parse(line);
    return isJsonObject(json) && findJsonFault(json) === undefined ? json : undefined;
  } catch {
    return undefined;
  }
}

async function convertMessage(
  line: JsonObject,
  id: string,
  context: TavernChatContext,
  notes: ImportNote[],
): Promise<ImportedMessage> {
  const extra = asObject(line.extra);
  const name = asText(line.name);
  const isUser = line.is_user === true;
  const isNarrator = extra.type === "narrator";
  const avatarFile = asText(line.original_avatar) || undefined;
  const time = toIsoTime(line.send_date);
  const character = isUser || isNarrator ? undefined : context.findCharacter?.(avatarFile, name);
  const images = await listImages(extra, context, notes);
  const text = getText(line.mes, extra, line.send_date, images);
  return {
    id,
    role: isUser ? "user" : isNarrator ? "system" : "assistant",
    ...text,
    ...toOptionalField("created_at", time),
    ...toOptionalField("updated_at", time),
    ...toOptionalField("character_id", character),
    ...toOptionalField("persona_id", isUser ? context.findPersona?.(findAvatar(line.force_avatar)) : undefined),
    ...toOptionalField("name", name === "" ? undefined : name),
    ...(line.is_system === true && { hidden: true }),
    ...getVariants(line, text, images),
  };
}

function getText(mes: unknown, extra: JsonObject, date: unknown, images: string[]): ImportedText {
  const text = asText(mes);
  const parts = images.map((url) => ({ type: "image_url", image_url: { url } }));
  return {
    content: parts.length === 0 ? text : [...(text === "" ? [] : [{ type: "text", text }]), ...parts],
    ...toOptionalField("reasoning", asText(extra.reasoning) || undefined),
    ...toOptionalField("model", asText(extra.model) || undefined),
    ...toOptionalField("updated_at", toIsoTime(date)),
  };
}

/** Returns the variants of a message. The active swipe may have been edited, so the message's text is used for it. */
function getVariants(line: JsonObject, active: ImportedText, images: string[]): Partial<ImportedMessage> {
  const swipes = Array.isArray(line.swipes) ? line.swipes.slice(0, MAX_VARIANTS) : [];
  if (swipes.length < 2) return {};
  const infos = Array.isArray(line.swipe_info) ? line.swipe_info : [];
  const at = Math.min(Math.max(0, Math.floor(asNumber(line.swipe_id) ?? 0)), swipes.length - 1);
  const variants = swipes.map((swipe, index) => {
    if (index === at) return active;
    const info = asObject(infos[index]);
    const extra = asObject(info.extra);
    return getText(swipe, extra, info.send_date ?? line.send_date, images);
  });
  return { variants, active_variant: at };
}

async function listImages(extra: JsonObject, context: TavernChatContext, notes: ImportNote[]): Promise<string[]> {
  const media = Array.isArray(extra.media) ? extra.media.filter(isJsonObject) : [];
  const urls = [
    asText(extra.image),
    ...media.filter(({ type }) => type === undefined || type === "image").map(({ url }) => asText(url)),
  ].filter((url) => url !== "");
  const found: string[] = [];
  for (const url of new Set(urls)) {
    const image = url.startsWith("data:") ? url : await context.findImage?.(url);
    if (image === undefined) {
      notes.push(note(context.source, importReason("image_missing", { image: url.slice(0, 200) })));
    } else found.push(image);
  }
  return found;
}

/** Most variables of a chat that are imported, and their longest texts. */
const MAX_VARIABLES = 1_000;
const MAX_NAME = 1_000;
const MAX_VALUE = 100_000;

function getVariables({ variables }: JsonObject): Record<string, string> | undefined {
  const found = Object.entries(asObject(variables)).slice(0, MAX_VARIABLES).flatMap(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
    return name.length <= MAX_NAME && text.length <= MAX_VALUE ? [[name, text] as const] : [];
  });
  return found.length === 0 ? undefined : Object.fromEntries(found);
}

/** Positions of a note besides the chat, by SillyTavern's numbers. */
const NOTE_POSITIONS: Record<number, string> = { 0: "after_main", 2: "before_main" };

function getNote(metadata: JsonObject): unknown {
  const text = asText(metadata.note_prompt);
  const depth = asNumber(metadata.note_depth) ?? 4;
  const position = NOTE_POSITIONS[asNumber(metadata.note_position) ?? 1];
  const interval = asNumber(metadata.note_interval);
  // A chat without a note may have its place, for that of its character.
  const isPlaced = depth !== 4 || position !== undefined || (interval ?? 1) !== 1 || Number(metadata.note_role) > 0;
  if (text === "" && !isPlaced) return undefined;
  return {
    text,
    depth: Math.max(0, Math.floor(depth)),
    role: ROLES[asNumber(metadata.note_role) ?? 0] ?? "system",
    ...(position !== undefined && { position }),
    ...(interval !== undefined && interval !== 1 && { interval: Math.max(0, Math.floor(interval)) }),
  };
}

function lastPersona(messages: JsonObject[]): string {
  const last = messages.findLast((line) => line.is_user === true && findAvatar(line.force_avatar) !== "");
  return findAvatar(last?.force_avatar);
}

/** `User Avatars/ann.png`, or the URL of a thumbnail. */
function findAvatar(value: unknown): string {
  const text = asText(value);
  const file = /[?&]file=([^&]+)/.exec(text)?.[1];
  try {
    return decodeURIComponent(file ?? text.split("/").at(-1)!);
  } catch {
    return "";
  }
}

function toOptionalField(field: string, value: unknown): Record<string, unknown> {
  return value === undefined ? {} : { [field]: value };
}

function note(source: string, reason: ImportReason): ImportNote {
  return { what: "note", level: "refused", source, ...reason };
}

/** Yields the chats without characters, because a file only has the name of its character. */
export async function* readTavernFiles(source: ImportSource): AsyncGenerator<ImportStep> {
  for (const file of source.files) {
    if (!/\.jsonl$/i.test(file.path)) {
      yield createLeftOutNote(file.path, "not_jsonl");
      continue;
    }
    try {
      const bytes = await source.read(file, MAX_CHAT_BYTES);
      const title = getStem(file.path);
      const { conversation, notes } = await readTavernChat(bytes, {
        source: file.path,
        key: title,
        title,
        participants: [],
      });
      yield* notes;
      if (conversation !== undefined) yield conversation;
    } catch (error) {
      yield createRefusedNote(file.path, error);
    }
  }
}
