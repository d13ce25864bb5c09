/** Reads an export of this or another Parlor server. IDs don't change. */
import { EXPORT_FORMAT, EXPORT_MARK } from "../../export_formats.ts";
import { MAX_CHARX_BYTES } from "../../../characters/charx/charx_format.ts";
import { parseDocumentUses } from "../../../documents/document.ts";
import { AppError } from "../../../errors.ts";
import { isAttachmentName } from "../../../attachments/attachment_rows.ts";
import { isId } from "../../../storage/ids.ts";
import { asNumber, asObject, asText, asTexts, isJsonObject, type JsonObject } from "../../../json/type_guards.ts";
import {
  hashContent,
  type ImportHost,
  type ImportSource,
  parseJsonObject,
  type SourceFile,
} from "../../import_source.ts";
import type {
  ImportedConversation,
  ImportedDocument,
  ImportedMemory,
  ImportedMessage,
  ImportStep,
} from "../../import_item.ts";
import { asTimeMs, endReplies, parseGeneratedImage, parseMemory, parseProposal } from "./parlor_items.ts";
import {
  parseExportedConnection,
  parseExportedToolServer,
  parseImageConnection,
  parseSettings,
} from "./parlor_settings.ts";
import { createChangedNote, createRefusedNote } from "../../import_report.ts";
import { parseUsage } from "../../../usage/usage.ts";

/** Maximum size of a file, larger than any conversation that can be saved. */
const MAX_BYTES = 128 * 1024 * 1024;
/** Folders in order: items before the items that refer to them. */
const FOLDERS = [
  ...[
    "personas",
    "lorebooks",
    "presets",
    "memories",
    "proposals",
    "workflows",
    "voices",
    "connections",
    "image_connections",
  ],
  ...["tool_servers", "regex_scripts"],
  ...["documents", "characters", "attachments", "conversations", "gallery"],
];
const SETTINGS = "settings.json";
/** Imported with the settings. */
const USAGE = "usage.json";
/** Fields that only the server sets. */
const OWN_FIELDS = [
  "id",
  "revision",
  "messages",
  "continuations",
  "draft",
  "draft_version",
  "imported",
  "character_id",
];

/** Yields all items. @throws {AppError} `unprocessable` if it isn't an export. */
export async function* readParlorExport(source: ImportSource, host: ImportHost): AsyncGenerator<ImportStep> {
  const byPath = new Map(source.files.map((file) => [file.path, file]));
  if (!byPath.has(EXPORT_MARK)) {
    throw new AppError("unprocessable", `Can't import this as a Parlor export: ${EXPORT_MARK} is missing`);
  }
  const mark = parseJsonObject(await source.read(byPath.get(EXPORT_MARK)!, MAX_BYTES));
  if ((asNumber(mark.format) ?? 1) > EXPORT_FORMAT) {
    const message = `Can't import this export: it was created by Parlor ${
      asText(mark.version)
    }, which is newer than this version`;
    throw new AppError("unprocessable", message);
  }
  for (const folder of FOLDERS) {
    for (const file of source.files) {
      const [top, name = "", more] = file.path.split("/");
      if (top !== folder || more !== undefined) continue;
      try {
        yield* readSteps({ source, host, byPath }, file, folder, name);
      } catch (error) {
        yield createRefusedNote(file.path, error);
      }
    }
  }
  const settings = byPath.get(SETTINGS);
  if (settings !== undefined) {
    try {
      const usage = byPath.get(USAGE);
      yield {
        ...parseSettings(parseJsonObject(await source.read(settings, MAX_BYTES)), SETTINGS),
        ...(usage !== undefined && { usage: parseUsage(parseJsonObject(await source.read(usage, MAX_BYTES))) }),
      };
    } catch (error) {
      yield createRefusedNote(SETTINGS, error);
    }
  }
}

async function* readSteps(
  { source, host, byPath }: { source: ImportSource; host: ImportHost; byPath: Map<string, SourceFile> },
  file: SourceFile,
  folder: string,
  fileName: string,
): AsyncGenerator<ImportStep> {
  const id = folder === "attachments" ? fileName : fileName.replace(/\.[^.]*$/, "");
  const isNamed = folder === "attachments" ? isAttachmentName(id) : isId(id);
  if (!isNamed) throw new AppError("unprocessable", "its name isn't a valid ID");
  const origin = { id, source: file.path, name: id };
  if (folder === "voices" && !fileName.endsWith(".json")) return; // Imported with its description
  if (folder === "characters" && /\.charx$/i.test(fileName)) {
    yield { what: "character", ...origin, file: await host.keep(source.stream(file, MAX_CHARX_BYTES)) };
    return;
  }
  const bytes = await source.read(file, MAX_BYTES);
  if (folder === "attachments") return yield { what: "attachment", ...origin, bytes };
  if (folder === "characters") return yield { what: "character", ...origin, file: bytes };
  if (!fileName.endsWith(".json")) return;
  const json = parseJsonObject(bytes);
  const named = {
    ...origin,
    name: asText(json.name) || id,
    createdAtMs: asTimeMs(json.createdAtMs),
  } satisfies Pick<ImportedMemory, "id" | "source" | "name" | "createdAtMs">;
  if (folder === "personas") {
    const image = byPath.get(`personas/${id}.png`);
    const avatar = image && await source.read(image, MAX_BYTES);
    const { placement } = json;
    const characterIds = asTexts(json.character_ids).filter(isId);
    yield { what: "persona", ...named, description: asText(json.description), placement, characterIds, avatar };
  } else if (folder === "lorebooks") {
    const scope = (["global", "character", "persona", "chat"] as const).find((one) => one === json.scope);
    yield {
      what: "lorebook",
      isOurs: true,
      ...named,
      book: json.book,
      scope,
      isEnabled: json.isEnabled !== false,
      characterIds: asTexts(json.characterIds),
      personaIds: asTexts(json.personaIds),
    };
  } else if (folder === "presets") {
    yield { what: "preset", ...named, json: json.preset, isOurs: true, models: asTexts(json.models) };
  } else if (folder === "memories") yield { what: "memory", ...named, ...parseMemory(json) };
  else if (folder === "proposals") yield { what: "proposal", ...named, ...parseProposal(json) };
  else if (folder === "gallery") yield { what: "generated_image", ...named, ...parseGeneratedImage(json) };
  else if (folder === "workflows") yield { what: "workflow", ...origin, json };
  else if (folder === "connections") yield parseExportedConnection(json, named);
  else if (folder === "image_connections") yield parseImageConnection(json, named);
  else if (folder === "tool_servers") yield parseExportedToolServer(json, named);
  else if (folder === "regex_scripts") {
    yield { what: "regex_script", ...named, json: json.script, order: asNumber(json.order) };
  } else if (folder === "documents") {
    const original = byPath.get(`document_files/${id}`);
    if (original === undefined) throw new AppError("unprocessable", "its file is missing");
    const bytes = await source.read(original, MAX_BYTES);
    yield {
      what: "document",
      ...named,
      contentType: asText(json.contentType),
      url: asText(json.url) || undefined,
      usedBy: toUsers(json.usedBy, id),
      bytes,
    };
  } else if (folder === "voices") {
    const sound = byPath.get(`voices/${id}.${asText(json.format)}`);
    if (sound === undefined) throw new AppError("unprocessable", "its audio is missing");
    const audio = await source.read(sound, MAX_BYTES);
    yield { what: "voice", ...named, description: asText(json.description), audio };
  } else {
    const listLines = async (folder: string) => {
      const file = byPath.get(`${folder}/${id}.jsonl`);
      return file === undefined ? [] : readLines(await source.read(file, MAX_BYTES));
    };
    const texts = parseTexts(await listLines("variants"));
    const continuations = (await listLines("continuations")).map((line) => withTexts(line, texts));
    const whole = { ...withTexts(json, texts), continuations };
    const conversation = parseConversation(whole, origin);
    if (endReplies(conversation)) yield createChangedNote(file.path, "reply_not_finished");
    yield conversation;
  }
}

/** Returns the characters and personas to which a document is attached. */
function toUsers(value: unknown, documentId: string): ImportedDocument["usedBy"] {
  return (Array.isArray(value) ? value : []).flatMap((one) => {
    const { kind, id, use } = asObject(one);
    const [parsed] = parseDocumentUses([{ ...asObject(use), id: documentId }]);
    const isOwner = (kind === "character" || kind === "persona") && isId(asText(id)) && parsed !== undefined;
    return isOwner ? [{ kind, id: asText(id), use: parsed }] : [];
  });
}

function readLines(bytes: Uint8Array): JsonObject[] {
  const lines = new TextDecoder().decode(bytes).split("\n").filter((line) => line !== "");
  return lines.map((line) => parseJsonObject(new TextEncoder().encode(line)));
}

/** Variants of messages by message id and number. */
type Texts = ReadonlyMap<string, ReadonlyMap<number, JsonObject>>;

function parseTexts(lines: JsonObject[]): Texts {
  const texts = new Map<string, Map<number, JsonObject>>();
  for (const { message_id, n, text } of lines) {
    const ofMessage = texts.get(asText(message_id)) ?? new Map<number, JsonObject>();
    texts.set(asText(message_id), ofMessage.set(asNumber(n) ?? -1, asObject(text)));
  }
  return texts;
}

/** Adds the variants of messages, which are in a separate file. */
function withTexts(json: JsonObject, texts: Texts): JsonObject {
  const messages = (Array.isArray(json.messages) ? json.messages : []).map((message) => {
    const own = asObject(message);
    const others = texts.get(asText(own.id));
    const active = asNumber(own.active_variant) ?? 0;
    if (others === undefined) return message;
    const known = [...others].filter(([n]) => n >= 0 && n !== active);
    const { content, reasoning, model, updated_at } = own;
    const all = [...known, [active, { content, reasoning, model, updated_at }] as const].sort(([a], [b]) => a - b);
    return { ...own, variants: all.map(([, text]) => text), active_variant: all.findIndex(([n]) => n === active) };
  });
  return { ...json, messages };
}

function parseConversation(
  json: JsonObject,
  origin: { id: string; source: string; name: string },
): ImportedConversation {
  const messages = parseMessages(json);
  const lists = Array.isArray(json.continuations) ? json.continuations.filter(isJsonObject) : [];
  const continuations = lists.map((list) => ({
    message_id: asText(list.message_id),
    n: asNumber(list.n) ?? -1,
    messages: parseMessages(list).map(parseMessage),
  }));
  const ids = [messages, ...continuations.map((list) => list.messages)].flat().map(({ id }) => id);
  if (new Set(ids).size < ids.length) throw new AppError("unprocessable", "two of its messages have the same ID");
  const head = Object.fromEntries(Object.entries(json).filter(([field]) => !OWN_FIELDS.includes(field)));
  const hash = hashContent(lists.length === 0 ? [head, messages] : [head, messages, lists]);
  return {
    what: "conversation",
    ...origin,
    name: asText(json.title),
    hash,
    head,
    draft: asText(json.draft),
    createdAt: asText(json.created_at) || undefined,
    updatedAt: asText(json.updated_at) || undefined,
    messages: messages.map(parseMessage),
    ...(continuations.length > 0 && { continuations }),
  };
}

function parseMessages({ messages }: JsonObject): JsonObject[] {
  const list = Array.isArray(messages) ? messages.filter(isJsonObject) : [];
  if (list.some(({ id }) => typeof id !== "string" || !isId(id))) {
    throw new AppError("unprocessable", "one of its messages has no ID");
  }
  return list;
}

/** Parses a message. Variants in lists have another name for their time. */
function parseMessage({ variants, ...message }: JsonObject): ImportedMessage {
  const texts = Array.isArray(variants) ? variants.filter(isJsonObject) : [];
  if (texts.length < 2) return message as ImportedMessage;
  return {
    ...message as ImportedMessage,
    variants: texts.map(({ n: _, created_at, ...text }) => ({
      ...text as unknown as ImportedMessage,
      ...(typeof created_at === "string" && { updated_at: created_at }),
    })),
  };
}
