/** Reads what another Parlor, or this one, exported; everything keeps its id. */
import { EXPORT_MARK } from "../exports/export_mark.ts";
import { AppError } from "../errors.ts";
import { isId } from "../ids.ts";
import { asText, asTexts, isJsonObject, type JsonObject } from "../plain_json.ts";
import { contentHash, type ImportSource, type SourceFile } from "./import_source.ts";
import type { ImportedConversation, ImportedMessage, ImportStep } from "./import_item.ts";
import { objectIn } from "./json_object.ts";
import { refused } from "./sillytavern.ts";

/** Larger than any conversation that can be saved. */
const MAX_BYTES = 128 * 1024 * 1024;
const FOLDERS = ["personas", "lorebooks", "presets", "characters", "attachments", "conversations"];
const ATTACHMENT_NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/;
/** Fields that only the server sets. */
const OWN_FIELDS = ["id", "revision", "messages", "draft", "draft_version", "imported", "character_id"];

/** Gives everything in it. @throws {AppError} `unprocessable` when it is none */
export async function* readParlorExport(source: ImportSource): AsyncGenerator<ImportStep> {
  const byPath = new Map(source.files.map((file) => [file.path, file]));
  if (!byPath.has(EXPORT_MARK)) {
    throw new AppError("unprocessable", `Cannot import this as an export of Parlor: it has no ${EXPORT_MARK}`);
  }
  for (const folder of FOLDERS) {
    for (const file of source.files) {
      const [top, name = "", more] = file.path.split("/");
      if (top !== folder || more !== undefined) continue;
      try {
        yield* stepsOf(source, byPath, file, folder, name);
      } catch (error) {
        yield refused(file.path, error);
      }
    }
  }
}

async function* stepsOf(
  source: ImportSource,
  byPath: Map<string, SourceFile>,
  file: SourceFile,
  folder: string,
  fileName: string,
): AsyncGenerator<ImportStep> {
  const id = folder === "attachments" ? fileName : fileName.replace(/\.[^.]*$/, "");
  const isNamed = folder === "attachments" ? ATTACHMENT_NAME.test(id) : isId(id);
  if (!isNamed) throw new AppError("unprocessable", "its name is no id");
  const origin = { id, source: file.path, name: id };
  const bytes = await source.read(file, MAX_BYTES);
  if (folder === "attachments") return yield { what: "attachment", ...origin, bytes };
  if (folder === "characters") return yield { what: "character", ...origin, bytes };
  if (!fileName.endsWith(".json")) return;
  const json = objectIn(bytes);
  const named = { ...origin, name: asText(json.name) || id };
  if (folder === "personas") {
    const picture = byPath.get(`personas/${id}.png`);
    const avatar = picture && await source.read(picture, MAX_BYTES);
    yield { what: "persona", ...named, description: asText(json.description), avatar };
  } else if (folder === "lorebooks") {
    const scope = (["global", "character", "persona", "chat"] as const).find((one) => one === json.scope);
    yield {
      ...{ what: "lorebook", ...named, book: json.book, scope, isEnabled: json.isEnabled !== false },
      ...{ characterIds: asTexts(json.characterIds), personaIds: asTexts(json.personaIds) },
    };
  } else if (folder === "presets") {
    yield { what: "preset", ...named, json: json.preset, isOurs: true, models: asTexts(json.models) };
  } else yield conversationOf(json, origin);
}

function conversationOf(
  json: JsonObject,
  origin: { id: string; source: string; name: string },
): ImportedConversation {
  const messages = Array.isArray(json.messages) ? json.messages.filter(isJsonObject) : [];
  if (messages.some(({ id }) => typeof id !== "string" || !isId(id))) {
    throw new AppError("unprocessable", "a message of it has no id");
  }
  const head = Object.fromEntries(Object.entries(json).filter(([field]) => !OWN_FIELDS.includes(field)));
  return {
    ...{ what: "conversation", ...origin, name: asText(json.title), hash: contentHash([head, messages]), head },
    createdAt: asText(json.created_at) || undefined,
    updatedAt: asText(json.updated_at) || undefined,
    messages: messages.map(messageOf),
  };
}

/** The time of a variant is called differently where variants are listed. */
function messageOf({ variants, ...message }: JsonObject): ImportedMessage {
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
