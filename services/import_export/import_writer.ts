/** Stores imported items. Items have the same id in every import, so nothing is imported twice. */
import type { ImportReasonCode } from "./import_reasons.ts";
import type { Attachments } from "../attachments/attachments.ts";
import { type CardFile, parseCardBytes, readCardFile } from "../characters/card/card_file.ts";
import type { Characters, ReadCharacter } from "../characters/characters.ts";
import type { ConversationImport, ConversationImporter } from "../conversations/conversation_importer.ts";
import { AppError } from "../errors.ts";
import type { BackendProfiles } from "../image_generation/backend_profiles.ts";
import { parseWorkflow } from "../image_generation/comfyui/workflow_format.ts";
import type { Workflows } from "../image_generation/comfyui/workflows.ts";
import type { Connections } from "../llm/connections/connections.ts";
import type { Lorebooks } from "../lorebooks/lorebooks.ts";
import { parseLorebook } from "../lorebooks/lorebook_parse.ts";
import type { Personas } from "../personas/personas.ts";
import type { PresetDocument } from "../presets/preset_document.ts";
import type { Presets } from "../presets/presets.ts";
import { parseSillyTavernPreset } from "../presets/sillytavern.ts";
import type { Settings } from "../settings/settings.ts";
import type { SpeechSettings } from "../speech/speech_settings.ts";
import type { VoiceSamples } from "../speech/voice_samples.ts";
import { importConnection, importImageConnection, importSettings } from "./import_settings.ts";
import type {
  ImportedCharacter,
  ImportedConversation,
  ImportedItem,
  ImportedPersona,
  ImportedPreset,
} from "./import_item.ts";

/** Services that store the items. */
export interface ImportWriterDeps {
  conversationImporter: ConversationImporter;
  characters: Characters;
  personas: Personas;
  lorebooks: Lorebooks;
  presets: Presets;
  attachments: Attachments;
  voices: VoiceSamples;
  workflows: Workflows;
  connections: Connections;
  imageProfiles: BackendProfiles;
  settings: Settings;
  speech: SpeechSettings;
}

/** The result for an item. */
export interface WriteResult {
  state: "added" | "updated" | "present";
  /** Why the item was changed, for the report. */
  reason?: ImportReasonCode;
  /** Number of other files stored with it, for the report. */
  kept?: number;
  /** Its final name. */
  name?: string;
}

/**
 * Stores an item.
 *
 * @param isDryRun Reads and compares without storing.
 * @throws {AppError} The reason why it can't be imported.
 */
export async function writeItem(parts: ImportWriterDeps, item: ImportedItem, isDryRun: boolean): Promise<WriteResult> {
  if (item.what === "conversation") return await writeConversation(parts, item, isDryRun);
  if (item.what === "settings") return await importSettings(parts, item, isDryRun);
  if (await isHere(parts, item)) return { state: "present" };
  switch (item.what) {
    case "character":
      if (!isDryRun) return await writeCharacter(parts, item);
      return { state: "added", name: (await cardFileOf(item)).card.data.name, kept: item.files };
    case "persona":
      if (!isDryRun) return await writePersona(parts, item);
      break;
    case "lorebook": {
      const { id, book, name, isEnabled, scope, characterIds, personaIds } = item;
      if (isDryRun) parseLorebook(book);
      else {await parts.lorebooks.put(id, {
          name: name.slice(0, 200),
          isEnabled,
          scope,
          characterIds,
          personaIds,
          book,
        });}
      break;
    }
    case "preset": {
      const preset = presetOf(item);
      if (!isDryRun) await parts.presets.put(item.id, { name: item.name, models: item.models, preset });
      break;
    }
    case "attachment":
      if (!isDryRun) await parts.attachments.put(item.id, ReadableStream.from([item.bytes]));
      break;
    case "voice":
      if (!isDryRun) await parts.voices.add(item);
      break;
    case "workflow":
      if (isDryRun) parseWorkflow(item.json);
      else await parts.workflows.put(item.id, item.json);
      break;
    case "connection":
      return await importConnection(parts.connections, item, isDryRun);
    case "image_connection":
      return await importImageConnection(parts.imageProfiles, item, isDryRun);
  }
  return { state: "added" };
}

async function writeConversation(
  { conversationImporter }: ImportWriterDeps,
  item: ImportedConversation,
  isDryRun: boolean,
): Promise<WriteResult> {
  const { id, head, hash, messages, continuations, createdAt, updatedAt, draft } = item;
  const conversation: ConversationImport = {
    id,
    head,
    hash,
    messages,
    continuations,
    draft,
    createdAtMs: createdAt === undefined ? undefined : Date.parse(createdAt),
    updatedAtMs: updatedAt === undefined ? undefined : Date.parse(updatedAt),
  };
  const state = isDryRun
    ? conversationImporter.checkState(conversation)
    : await conversationImporter.importConversation(conversation);
  return state === "changed_here" ? { state: "present", reason: "changed_here" } : { state };
}

async function isHere(
  parts: ImportWriterDeps,
  { what, id }: Exclude<ImportedItem, { what: "conversation" | "settings" }>,
): Promise<boolean> {
  if (what === "connection") return parts.connections.list().some((one) => one.id === id);
  if (what === "image_connection") return parts.imageProfiles.list().some((one) => one.id === id);
  if (what === "workflow") return (await parts.workflows.list()).some((one) => one.id === id && one.updatedAtMs);
  if (what === "lorebook") return parts.lorebooks.list().some((one) => one.id === id);
  if (what === "preset") return parts.presets.list().some((one) => one.id === id);
  try {
    if (what === "character") await parts.characters.get(id);
    else if (what === "persona") await parts.personas.get(id);
    else if (what === "voice") parts.voices.get(id);
    else parts.attachments.get(id);
    return true;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return error.code !== "not_found"; // an unreadable resource exists and must not be overwritten
  }
}

async function writeCharacter({ characters }: ImportWriterDeps, item: ImportedCharacter): Promise<WriteResult> {
  const { id, file, files, avatar } = item;
  try {
    const name = nameOf(await characters.importCard(file, { id, picture: avatar }));
    return { state: "added", name, kept: files };
  } catch (error) {
    if (avatar === undefined || !(error instanceof AppError) || error.code !== "unprocessable") throw error;
    const name = nameOf(await characters.importCard(file, { id })); // throws again if the card was the problem
    return { state: "added", reason: "avatar_unreadable", name, kept: files };
  }
}

async function cardFileOf({ file }: ImportedCharacter): Promise<CardFile> {
  return typeof file === "string" ? await readCardFile(file) : parseCardBytes(file);
}

function nameOf({ character }: ReadCharacter): string {
  return character.card.data.name;
}

async function writePersona({ personas }: ImportWriterDeps, item: ImportedPersona): Promise<WriteResult> {
  const { id, name, description, avatar } = item;
  await personas.put(id, { name, description });
  if (avatar === undefined) return { state: "added" };
  try {
    await personas.setAvatar(id, avatar);
    return { state: "added" };
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== "unprocessable") throw error;
    return { state: "added", reason: "avatar_unreadable" };
  }
}

function presetOf({ json, isOurs }: ImportedPreset): Partial<PresetDocument> {
  return isOurs ? json as Partial<PresetDocument> : parseSillyTavernPreset(json);
}
