/** Stores imported items and settings. Items have the same id in every import, so nothing is imported twice. */
import type { Attachments } from "../attachments/attachments.ts";
import type { Characters, ReadCharacter } from "../characters/characters.ts";
import type { ConversationImport, ConversationImporter } from "../conversations/conversation_importer.ts";
import type { Documents } from "../documents/documents.ts";
import type { DocumentUseStore } from "../documents/document.ts";
import { createUuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import type { BackendProfiles } from "../image_generation/backend_profiles.ts";
import type { ImageGallery } from "../image_generation/image_gallery.ts";
import { parseWorkflow } from "../image_generation/comfyui/workflow_format.ts";
import type { Workflows } from "../image_generation/comfyui/workflows.ts";
import { parseToolServer } from "../mcp/tool_server.ts";
import type { ToolServers } from "../mcp/tool_servers.ts";
import type { Connections } from "../llm/connections/connections.ts";
import { runInSteps } from "../async/delay.ts";
import type { ReadCard } from "../characters/card/card_codec.ts";
import { createWholeCardLedger } from "../characters/card/card_ledger.ts";
import { collectPresetLedger } from "../presets/preset_ledger.ts";
import type { LedgerEntry } from "../json/ledger.ts";
import { removeEmptyEntries } from "../lorebooks/lorebook_ledger.ts";
import type { Lorebook } from "../lorebooks/lorebook_document.ts";
import type { LorebookInput, Lorebooks } from "../lorebooks/lorebooks.ts";
import type { Memories } from "../memories/memories.ts";
import type { MemoryProposals } from "../memories/memory_proposals.ts";
import { parsePlacement } from "../personas/persona_card.ts";
import type { Personas } from "../personas/personas.ts";
import type { PresetDocument } from "../presets/preset.ts";
import type { Presets } from "../presets/presets.ts";
import type { Push } from "../push/push.ts";
import { parseTavernScript } from "../regex_scripts/regex_script.ts";
import type { RegexScripts } from "../regex_scripts/regex_scripts.ts";
import { mergeTemplates } from "../settings/prompt_templates.ts";
import { isDefault, type OwnerSettings, type Settings, type SettingsPatch } from "../settings/settings.ts";
import type { SpeechSettings } from "../speech/speech.ts";
import type { VoiceSamples } from "../speech/voice_samples.ts";
import type { WebSettings } from "../tools/web/web_settings.ts";
import type { TranscriptionSettings } from "../transcription/transcription.ts";
import type {
  ImportedCharacter,
  ImportedConnection,
  ImportedConversation,
  ImportedDocument,
  ImportedImageConnection,
  ImportedItem,
  ImportedLorebook,
  ImportedPersona,
  ImportedSettings,
  ImportedToolServer,
} from "./import_item.ts";
import type { ImportReasonCode } from "./import_report.ts";
import type { UsageCounter } from "../usage/usage.ts";

/** Services that store the items. */
export interface ImportWriterDeps {
  conversationImporter: ConversationImporter;
  characters: Characters;
  personas: Personas;
  lorebooks: Lorebooks;
  presets: Presets;
  memories: Memories;
  proposals: MemoryProposals;
  gallery: ImageGallery;
  attachments: Attachments;
  documents: Documents;
  documentUses: DocumentUseStore;
  voices: VoiceSamples;
  workflows: Workflows;
  connections: Connections;
  imageProfiles: BackendProfiles;
  toolServers: ToolServers;
  regexScripts: RegexScripts;
  settings: Settings;
  speech: SpeechSettings;
  transcription: TranscriptionSettings;
  web: WebSettings;
  push: Pick<Push, "getServer" | "importServer">;
  usage: Pick<UsageCounter, "export" | "import">;
}

/** The result of writing an item. */
export interface WriteResult {
  state: "added" | "updated" | "present";
  /** Why the item was changed, for the report. */
  reason?: ImportReasonCode;
  /** What it would have switched on, for the report. */
  leftOff?: { code: ImportReasonCode; params?: Record<string, string>; count?: number }[];
  /** What its file has without effect in Parlor, for the report. */
  unused?: LedgerEntry[];
  /** Number of other files stored with it, for the report. */
  assetCount?: number;
  /** Its final name. */
  name?: string;
  /** Its ID, if it's another one than the item's. */
  id?: string;
}

/**
 * Stores an item.
 *
 * @param isDryRun Reads and compares without storing.
 * @throws {AppError} The reason why it can't be imported.
 */
export async function writeItem(deps: ImportWriterDeps, item: ImportedItem, isDryRun: boolean): Promise<WriteResult> {
  if (item.what === "conversation") return await writeConversation(deps, item, isDryRun);
  if (item.what === "settings") return await importSettings(deps, item, isDryRun);
  if (item.what === "character") return await importCharacter(deps, item, isDryRun);
  if (await exists(deps, item)) return { state: "present" };
  switch (item.what) {
    case "persona":
      if (!isDryRun) return await writePersona(deps, item);
      break;
    case "lorebook":
      return await writeLorebook(deps, item, isDryRun);
    case "preset": {
      const { id, name, models, createdAtMs, json, fault } = item;
      if (fault !== undefined) throw new AppError("unprocessable", fault);
      if (!isDryRun) await deps.presets.put(id, { name, models, createdAtMs, preset: json as PresetDocument });
      return { state: "added", unused: await runInSteps(collectPresetLedger(json as PresetDocument)) };
    }
    case "memory":
      if (!isDryRun) await deps.memories.put(item.id, { ...item.fields, createdAtMs: item.createdAtMs });
      break;
    case "proposal":
      if (!isDryRun) await deps.proposals.import(item.id, item.fields, item.createdAtMs);
      break;
    case "generated_image":
      if (!isDryRun) await deps.gallery.import(item.id, item.attachment, item.image, item.createdAtMs);
      break;
    case "attachment":
      if (!isDryRun) await deps.attachments.put(item.id, ReadableStream.from([item.bytes]));
      break;
    case "document":
      if (!isDryRun) await writeDocument(deps, item);
      break;
    case "voice":
      if (!isDryRun) await deps.voices.add(item);
      break;
    case "workflow":
      if (isDryRun) parseWorkflow(item.json);
      else await deps.workflows.put(item.id, item.json);
      break;
    case "connection":
      return await importConnection(deps.connections, item, isDryRun);
    case "image_connection":
      return await importImageConnection(deps.imageProfiles, item, isDryRun);
    case "tool_server":
      return await importToolServer(deps.toolServers, item, isDryRun);
    case "regex_script": {
      const script = parseTavernScript(item.json);
      if (script === undefined) throw new AppError("unprocessable", "it isn't a regex script, or it's too long");
      const { id, createdAtMs, order } = item;
      if (!isDryRun) await deps.regexScripts.put(id, { ...script, order }, { createdAtMs });
      break;
    }
  }
  return { state: "added" };
}

async function writeLorebook(
  { lorebooks }: ImportWriterDeps,
  { id, book, fault, name, isOurs, isEnabled, scope, characterIds, personaIds, createdAtMs }: ImportedLorebook,
  isDryRun: boolean,
): Promise<WriteResult> {
  if (fault !== undefined) throw new AppError("unprocessable", fault);
  const parsed = book as Lorebook;
  const [left] = isOurs ? [] : removeEmptyEntries(parsed).ledger;
  if (!isDryRun) {
    const settings: LorebookInput = {
      name: name.slice(0, 200),
      isEnabled,
      scope,
      characterIds,
      personaIds,
      createdAtMs,
      isImport: !isOurs,
    };
    await lorebooks.putParsed(id, settings, { book: parsed });
  }
  if (left === undefined) return { state: "added" };
  const { count, examples = [] } = left;
  return { state: "added", leftOff: [{ code: "empty_entries", params: { entries: examples.join(", ") }, count }] };
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

async function exists(
  deps: ImportWriterDeps,
  { what, id }: Exclude<ImportedItem, { what: "conversation" | "settings" }>,
): Promise<boolean> {
  if (what === "connection") return deps.connections.list().some((one) => one.id === id);
  if (what === "regex_script") return deps.regexScripts.list().some((one) => one.id === id);
  if (what === "tool_server") return deps.toolServers.list().some((one) => one.id === id);
  if (what === "image_connection") return deps.imageProfiles.list().some((one) => one.id === id);
  if (what === "workflow") return (await deps.workflows.list()).some((one) => one.id === id && one.updatedAtMs);
  if (what === "lorebook") return deps.lorebooks.list().some((one) => one.id === id);
  if (what === "proposal") return deps.proposals.listStored().some((one) => one.id === id);
  if (what === "generated_image") return deps.gallery.has(id);
  if (what === "memory") return deps.memories.list().some((one) => one.id === id);
  if (what === "preset") return deps.presets.list().some((one) => one.id === id);
  try {
    if (what === "character") await deps.characters.get(id);
    else if (what === "persona") await deps.personas.get(id);
    else if (what === "voice") deps.voices.get(id);
    else if (what === "document") deps.documents.get(id);
    else deps.attachments.get(id);
    return true;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return error.code !== "not_found"; // An unreadable resource exists and must not be overwritten.
  }
}

async function writeDocument({ documents, documentUses }: ImportWriterDeps, item: ImportedDocument): Promise<void> {
  const { id, name, contentType, url, createdAtMs, bytes, usedBy } = item;
  const content = ReadableStream.from([bytes]);
  await documents.add({ id, content, getName: () => name, contentType, url, createdAtMs });
  for (const { kind, id: ownerId, use } of usedBy) {
    const uses = documentUses.get(kind, ownerId);
    if (!uses.some((other) => other.id === id)) await documentUses.put(kind, ownerId, [...uses, { ...use, id }]);
  }
}

/**
 * Stores a character unless it's there already, possibly under another ID. One whose content has changed at its source
 * becomes another character.
 */
async function importCharacter(
  deps: ImportWriterDeps,
  item: ImportedCharacter,
  isDryRun: boolean,
): Promise<WriteResult> {
  const { characters } = deps;
  const { id: itemId, file, files, avatar: image } = item;
  const isTaken = await exists(deps, item);
  const same = await characters.findSame(file, { image, knownId: isTaken ? itemId : undefined })
    .catch((error) => {
      // What is there stays, whatever its file has become.
      if (isTaken && error instanceof AppError && error.code === "unprocessable") return itemId;
      throw error;
    });
  if (same !== undefined) return { state: "present", ...(same !== itemId && { id: same }) };
  const id = isTaken ? createUuidV7() : itemId;
  const result = isDryRun
    ? createCharacterResult(await characters.readFile(file), files)
    : await writeCharacter(deps, { ...item, id });
  return { ...result, ...(id !== itemId && { id }) };
}

async function writeCharacter({ characters }: ImportWriterDeps, item: ImportedCharacter): Promise<WriteResult> {
  const { id, file, files, avatar } = item;
  try {
    return createCharacterResult(toCard(await characters.importCard(file, { id, image: avatar })), files);
  } catch (error) {
    if (avatar === undefined || !(error instanceof AppError) || error.code !== "unprocessable") throw error;
    // Throws again if the card was the problem.
    const card = toCard(await characters.importCard(file, { id }));
    return { ...createCharacterResult(card, files), reason: "avatar_unreadable" };
  }
}

function toCard({ character, ledger }: ReadCharacter): Pick<ReadCard, "card" | "ledger"> {
  return { card: character.card, ledger };
}

function createCharacterResult({ card, ledger }: Pick<ReadCard, "card" | "ledger">, files?: number): WriteResult {
  return { state: "added", name: card.data.name, assetCount: files, unused: ledger ?? createWholeCardLedger(card) };
}

async function writePersona({ personas }: ImportWriterDeps, item: ImportedPersona): Promise<WriteResult> {
  const { id, name, description, placement, characterIds, avatar } = item;
  await personas.put(id, { name, description, placement: parsePlacement(placement), character_ids: characterIds });
  if (avatar === undefined) return { state: "added" };
  try {
    await personas.setAvatar(id, avatar);
    return { state: "added" };
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== "unprocessable") throw error;
    return { state: "added", reason: "avatar_unreadable" };
  }
}

/** Adds a connection, without choosing it. @throws {AppError} `invalid_request`, `address_not_allowed` */
async function importConnection(
  connections: Connections,
  { id, profile, hadKey, isActive, createdAtMs }: ImportedConnection,
  isDryRun: boolean,
): Promise<WriteResult> {
  if (isDryRun) connections.getUnsavedTarget(profile);
  else await connections.put({ ...profile, id }, { isImport: true, createdAtMs });
  const isChosen = connections.findActive();
  // The demo connection doesn't count as a choice.
  const isLeftOff = isActive && (isChosen === undefined || isChosen.kind === "demo");
  return createResult(
    hadKey,
    isLeftOff ? [{ code: "server_not_chosen", params: { server: profile.baseUrl ?? id } }] : [],
  );
}

/** @throws {AppError} `invalid_request`, `address_not_allowed` */
async function importImageConnection(
  profiles: BackendProfiles,
  { id, profile, hadKey, isActive, createdAtMs }: ImportedImageConnection,
  isDryRun: boolean,
): Promise<WriteResult> {
  if (isDryRun) profiles.getUnsavedTarget(profile);
  else await profiles.put({ ...profile, id }, { isImport: true, createdAtMs });
  const isLeftOff = isActive && !profiles.list().some((one) => one.isActive);
  return createResult(
    hadKey,
    isLeftOff ? [{ code: "server_not_chosen", params: { server: profile.baseUrl ?? id } }] : [],
  );
}

/** Adds a tool server. An enabled one is held. @throws {AppError} `invalid_request`, `address_not_allowed` */
async function importToolServer(
  toolServers: ToolServers,
  { id, server, hadSecrets, createdAtMs }: ImportedToolServer,
  isDryRun: boolean,
): Promise<WriteResult> {
  if (isDryRun) parseToolServer(id, server, undefined);
  else await toolServers.put(id, server, { isImport: true, createdAtMs });
  const address = server.url ?? [server.command, ...server.args ?? []].join(" ");
  return createResult(
    hadSecrets,
    server.isEnabled ? [{ code: "tool_server_left_off", params: { server: address } }] : [],
  );
}

/** Settings that make Parlor record or read what the owner does. Only the owner turns them on. */
const SWITCHES = { keep_recordings: "recordings_left_off", memory_proposals: "proposals_left_off" } as const;

/**
 * Answers that belong to the installation of the export: without the proposals, `memory_asked` would only suppress the
 * question about them, and whether this one asks for new versions is decided here.
 */
const LEFT_OUT = new Set<keyof OwnerSettings>(["memory_asked", "check_releases", "dismissed_release"]);

/** Applies settings, except those that switch something on. Web tools and the notification server are held. */
async function importSettings(
  parts: Pick<ImportWriterDeps, "settings" | "speech" | "transcription" | "web" | "push" | "usage">,
  item: ImportedSettings,
  isDryRun: boolean,
): Promise<WriteResult> {
  const now = parts.settings.get().settings;
  const leftOff: WriteResult["leftOff"] = [];
  const patch = Object.fromEntries(
    Object.entries(item.settings).filter(([name, value]) => {
      const key = name as keyof OwnerSettings;
      if (key === "prompt_templates") return false;
      if (!isDefault(key, now[key]) || isDefault(key, value as OwnerSettings[typeof key])) return false;
      if (Object.hasOwn(SWITCHES, key)) leftOff.push({ code: SWITCHES[key as keyof typeof SWITCHES] });
      return !Object.hasOwn(SWITCHES, key) && !LEFT_OUT.has(key);
    }),
  ) as SettingsPatch;
  const templates = mergeTemplates(now.prompt_templates, item.settings.prompt_templates ?? []);
  if (templates.length > now.prompt_templates.length) patch.prompt_templates = templates;
  const { speech, transcription, web, notifications } = item;
  if (speech !== undefined && parts.speech.get().baseUrl === "") {
    leftOff.push({ code: "speech_left_off", params: { server: speech.baseUrl ?? "" } });
  }
  if (transcription !== undefined && parts.transcription.get().baseUrl === "") {
    leftOff.push({ code: "transcription_left_off", params: { server: transcription.baseUrl ?? "" } });
  }
  const hasWeb = web !== undefined && parts.web.getExport() === undefined;
  if (hasWeb) {
    leftOff.push({ code: "web_tools_left_off", params: { server: web.searchUrl } });
    if (!isDryRun) await parts.web.import(web);
  }
  const hasNotifications = notifications !== undefined && parts.push.getServer().server === null;
  if (hasNotifications) {
    leftOff.push({ code: "notifications_left_off", params: { server: notifications.url } });
    if (!isDryRun) await parts.push.importServer(notifications);
  }
  const isPatched = Object.keys(patch).length > 0;
  if (isPatched && !isDryRun) await parts.settings.patch(patch);
  const hasUsage = item.usage !== undefined && await parts.usage.import(item.usage, isDryRun) > 0;
  const hasSettings = isPatched || hasWeb || hasNotifications || hasUsage;
  return { state: hasSettings ? "added" : "present", leftOff };
}

function createResult(hadKey: boolean, leftOff: WriteResult["leftOff"] = []): WriteResult {
  return { state: "added", leftOff, ...(hadKey && { reason: "enter_key" }) };
}
