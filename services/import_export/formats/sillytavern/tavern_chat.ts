/** Reads a chat in SillyTavern's JSONL: a header line, then one line per message with its swipes. */
import { type ImportReason, importReason } from "../../import_reasons.ts";
import { refused } from "../../import_notes.ts";
import { asNumber, asObject, asText, findJsonFault, isJsonObject, type JsonObject } from "../../../json/type_guards.ts";
import { contentHash, stableId } from "../../import_source.ts";
import type { ImportedConversation, ImportedMessage, ImportedText, ImportNote } from "../../import_item.ts";
import { isoOf } from "./tavern_time.ts";

/** The same limit as for a conversation saved over HTTP. */
export const MAX_CHAT_BYTES = 64 * 1024 * 1024;
/** Limit for swipes of a message; more are an error of some program. */
const MAX_VARIANTS = 1_000;
const NEWLINE = 10;
const MAX_NOTED_LINES = 10;
const ROLES = ["system", "user", "assistant"];

/** Context of a chat. */
export interface ChatPlace {
  /** Its path in the import. */
  source: string;
  /** Identifies the chat within its import, such as its path in the program's folder. */
  key: string;
  title: string;
  participants: { character_id: string; muted?: boolean }[];
  /** Returns the character of a message by its image file, otherwise by its name. */
  characterOf?(avatarFile: string | undefined, name: string): string | undefined;
  /** Returns the persona with this image file. */
  personaOf?(avatarFile: string): string | undefined;
  /** Returns the id of a lorebook by name. */
  lorebookOf?(name: string): string | undefined;
  /** Returns an image of a message as a data URL. */
  pictureOf?(url: string): Promise<string | undefined>;
}

/** Reads a chat and frees its bytes. @returns The conversation, if there is one, and notes on skipped lines. */
export async function readTavernChat(
  bytes: Uint8Array<ArrayBuffer>,
  place: ChatPlace,
): Promise<{ conversation?: ImportedConversation; notes: ImportNote[] }> {
  const notes: ImportNote[] = [];
  const lines = linesOf(bytes, place.source, notes);
  bytes.buffer.transfer(0); // no longer needed, and as large as everything read from it
  const first = lines[0];
  const header = first !== undefined && !("mes" in first) ? lines.shift()! : {};
  const metadata = asObject(header.chat_metadata);
  const messages = lines.filter((line) => typeof line.mes === "string" || "mes" in line);
  if (messages.length === 0) {
    notes.push(refused(place.source, first === undefined ? "not_chat" : "no_messages"));
    return { notes };
  }
  const begin = asText(header.create_date) || asText(messages[0]!.send_date);
  const id = stableId("tavern", place.key, begin);
  const read: ImportedMessage[] = [];
  for (const [index, line] of messages.entries()) read.push(await messageOf(line, `${id}-${index}`, place, notes));
  const personaFile = asText(metadata.persona) || lastPersona(messages);
  const lorebook = place.lorebookOf?.(asText(metadata.world_info));
  const times = read.map(({ created_at }) => created_at).filter((time) => time !== undefined).sort();
  const conversation: ImportedConversation = {
    what: "conversation",
    id,
    source: place.source,
    name: place.title,
    hash: contentHash([metadata, read]),
    head: {
      title: place.title,
      participants: place.participants,
      ...given("persona_id", personaFile === "" ? undefined : place.personaOf?.(personaFile)),
      ...given("note", noteOf(metadata)),
      ...given("lorebook_ids", lorebook === undefined ? undefined : [lorebook]),
    },
    createdAt: isoOf(header.create_date) ?? times[0],
    updatedAt: times.at(-1),
    messages: read,
  };
  return { conversation, notes };
}

function linesOf(bytes: Uint8Array, source: string, notes: ImportNote[]): JsonObject[] {
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
    const json = parsed(text);
    if (json !== undefined) found.push(json);
    else if (broken++ < MAX_NOTED_LINES) {
      notes.push(note(source, importReason("broken_line", { line: number + 1 })));
    }
  }
  if (broken > MAX_NOTED_LINES) notes.push(note(source, importReason("broken_lines", { count: broken })));
  return found;
}

function parsed(line: string): JsonObject | undefined {
  try {
    const json: unknown = JSON.parse(line);
    return isJsonObject(json) && findJsonFault(json) === undefined ? json : undefined;
  } catch {
    return undefined;
  }
}

async function messageOf(
  line: JsonObject,
  id: string,
  place: ChatPlace,
  notes: ImportNote[],
): Promise<ImportedMessage> {
  const extra = asObject(line.extra);
  const name = asText(line.name);
  const isUser = line.is_user === true;
  const isNarrator = extra.type === "narrator";
  const avatarFile = asText(line.original_avatar) || undefined;
  const time = isoOf(line.send_date);
  const character = isUser || isNarrator ? undefined : place.characterOf?.(avatarFile, name);
  const pictures = await picturesOf(extra, place, notes);
  const text = textOf(line.mes, extra, line.send_date, pictures);
  return {
    id,
    role: isUser ? "user" : isNarrator ? "system" : "assistant",
    ...text,
    ...given("created_at", time),
    ...given("updated_at", time),
    ...given("character_id", character),
    ...given("persona_id", isUser ? place.personaOf?.(avatarIn(line.force_avatar)) : undefined),
    ...given("name", name === "" ? undefined : name),
    ...(line.is_system === true && { hidden: true }),
    ...variantsOf(line, text, pictures),
  };
}

function textOf(mes: unknown, extra: JsonObject, date: unknown, pictures: string[]): ImportedText {
  const text = asText(mes);
  const parts = pictures.map((url) => ({ type: "image_url", image_url: { url } }));
  return {
    content: parts.length === 0 ? text : [...(text === "" ? [] : [{ type: "text", text }]), ...parts],
    ...given("reasoning", asText(extra.reasoning) || undefined),
    ...given("model", asText(extra.model) || undefined),
    ...given("updated_at", isoOf(date)),
  };
}

/** The active swipe may have been edited since; the message's text counts. */
function variantsOf(line: JsonObject, active: ImportedText, pictures: string[]): Partial<ImportedMessage> {
  const swipes = Array.isArray(line.swipes) ? line.swipes.slice(0, MAX_VARIANTS) : [];
  if (swipes.length < 2) return {};
  const infos = Array.isArray(line.swipe_info) ? line.swipe_info : [];
  const at = Math.min(Math.max(0, Math.floor(asNumber(line.swipe_id) ?? 0)), swipes.length - 1);
  const variants = swipes.map((swipe, index) => {
    if (index === at) return active;
    const info = asObject(infos[index]);
    const extra = asObject(info.extra);
    return textOf(swipe, extra, info.send_date ?? line.send_date, pictures);
  });
  return { variants, active_variant: at };
}

async function picturesOf(extra: JsonObject, place: ChatPlace, notes: ImportNote[]): Promise<string[]> {
  const media = Array.isArray(extra.media) ? extra.media.filter(isJsonObject) : [];
  const urls = [
    asText(extra.image),
    ...media.filter(({ type }) => type === undefined || type === "image").map(({ url }) => asText(url)),
  ].filter((url) => url !== "");
  const found: string[] = [];
  for (const url of new Set(urls)) {
    const picture = url.startsWith("data:") ? url : await place.pictureOf?.(url);
    if (picture === undefined) {
      notes.push(note(place.source, importReason("image_missing", { image: url.slice(0, 200) })));
    } else found.push(picture);
  }
  return found;
}

function noteOf(metadata: JsonObject): unknown {
  const text = asText(metadata.note_prompt);
  if (text === "") return undefined;
  const depth = asNumber(metadata.note_depth) ?? 4;
  return { text, depth: Math.max(0, Math.floor(depth)), role: ROLES[asNumber(metadata.note_role) ?? 0] ?? "system" };
}

function lastPersona(messages: JsonObject[]): string {
  const last = messages.findLast((line) => line.is_user === true && avatarIn(line.force_avatar) !== "");
  return avatarIn(last?.force_avatar);
}

/** `User Avatars/ann.png`, or the URL of a thumbnail. */
function avatarIn(value: unknown): string {
  const text = asText(value);
  const file = /[?&]file=([^&]+)/.exec(text)?.[1];
  try {
    return decodeURIComponent(file ?? text.split("/").at(-1)!);
  } catch {
    return "";
  }
}

function given(field: string, value: unknown): Record<string, unknown> {
  return value === undefined ? {} : { [field]: value };
}

function note(source: string, reason: ImportReason): ImportNote {
  return { what: "note", level: "refused", source, ...reason };
}
