/**
 * What import readers produce, one item at a time, and how much memory it takes. Items cross the boundary of a process,
 * so they are plain data.
 */
import type { DocumentOwnerKind, DocumentUse } from "../documents/document.ts";
import type { ImportReason } from "./import_report.ts";
import type { BackendProfileInput } from "../image_generation/backend_profiles.ts";
import type { ContentPart } from "../llm/chat_event.ts";
import type { ConnectionInput } from "../llm/connections/connections.ts";
import type { ImageOrigin } from "../image_generation/image_gallery.ts";
import type { MemoryFields } from "../memories/memory.ts";
import type { ProposalFields } from "../memories/memory_proposals.ts";
import type { NotifyServerInput } from "../push/notify_server.ts";
import type { WebConfigExport } from "../tools/web/web_settings.ts";
import type { SettingsPatch } from "../settings/settings.ts";
import type { ToolServerInput } from "../mcp/tool_server.ts";
import type { SpeechConfigInput } from "../speech/speech.ts";
import type { TranscriptionConfigInput } from "../transcription/transcription.ts";
import type { ExportedUsage } from "../usage/usage.ts";
import type { Sampler } from "../presets/preset.ts";
import type { JsonObject } from "../json/type_guards.ts";

/** Programs and formats that can be imported. */
export const IMPORT_KINDS = [
  ...["sillytavern", "tavern", "risuai", "agnai", "chatgpt", "claude"] as const,
  ...["openwebui", "librechat", "lobechat", "chatbox", "lmstudio", "jan"] as const,
  ...["llamacpp", "cherrystudio", "koboldcpp", "textgen", "characterai", "backyard", "parlor"] as const,
] as const;
/** A program or format that can be imported. */
export type ImportKind = typeof IMPORT_KINDS[number];

/** Types of items in an import. */
export const IMPORTED_ITEM_KINDS = [
  ...["conversation", "character", "persona", "lorebook", "preset", "memory", "proposal", "attachment"] as const,
  ...["document", "generated_image", "voice", "workflow", "connection", "image_connection"] as const,
  ...["tool_server", "regex_script", "settings"] as const,
];
/** A type of item. */
export type ImportedItemKind = typeof IMPORTED_ITEM_KINDS[number];

/** Fields of every item. */
interface Origin {
  /** The same in every import of the same item. */
  id: string;
  /** Its path in the import. */
  source: string;
  name: string;
  /** Absent if the source doesn't say it, and for kinds that don't store it. */
  createdAtMs?: number;
}

/** A variant of a message. */
export interface ImportedText {
  content: string | ContentPart[];
  reasoning?: string;
  model?: string;
  /** ISO 8601, UTC. */
  updated_at?: string;
}

/** A message. Other fields are stored with it. */
export interface ImportedMessage extends ImportedText {
  id: string;
  role: string;
  /** ISO 8601, UTC. */
  created_at?: string;
  /** All variants including the active one; absent if there is only one. */
  variants?: ImportedText[];
  /** Number of the active variant, from 0. */
  active_variant?: number;
  [field: string]: unknown;
}

/** The messages that follow an inactive version. */
export interface ImportedContinuation {
  message_id: string;
  /** Number of the version, from 0. */
  n: number;
  /** The path along the active versions. */
  messages: ImportedMessage[];
}

/** A conversation. */
export interface ImportedConversation extends Origin {
  what: "conversation";
  /** Hash of the source; equal for two imports of the same chat. */
  hash: string;
  /** Fields of the conversation with their API names. */
  head: Record<string, unknown>;
  /** ISO 8601, UTC. */
  createdAt?: string;
  /** ISO 8601, UTC. */
  updatedAt?: string;
  /** The active path. */
  messages: ImportedMessage[];
  continuations?: ImportedContinuation[];
  /** Unsent text. */
  draft?: string;
}

/** A character card: PNG, JSON or CHARX. */
export interface ImportedCharacter extends Origin {
  what: "character";
  /** Its bytes, or a file that exists until the import has read it: its id for a reader, afterwards its path. */
  file: Uint8Array<ArrayBuffer> | string;
  /** Number of other images and sounds in the file, for the report. */
  files?: number;
  /** Its image if the file has none: PNG, JPEG, WebP or GIF. */
  avatar?: Uint8Array<ArrayBuffer>;
}

/** A persona. */
export interface ImportedPersona extends Origin {
  what: "persona";
  description: string;
  /** See `parsePlacement`. */
  placement?: unknown;
  /** The characters whose new chats have it. */
  characterIds?: string[];
  avatar?: Uint8Array<ArrayBuffer>;
}

/** A lorebook. */
export interface ImportedLorebook extends Origin {
  what: "lorebook";
  /** Of a reader, in any format that `parseLorebook` reads; afterwards a `Lorebook`. */
  book: unknown;
  /** Why the book can't be read. */
  fault?: string;
  /** From an export of Parlor: entries without keys and text stay. */
  isOurs?: boolean;
  isEnabled?: boolean;
  scope?: "global" | "character" | "persona" | "chat";
  characterIds?: string[];
  personaIds?: string[];
}

/** A preset. */
export interface ImportedPreset extends Origin {
  what: "preset";
  /** Of a reader, a SillyTavern file unless `isOurs`; afterwards a `PresetDocument`. */
  json: unknown;
  /** Why the preset can't be read. */
  fault?: string;
  isOurs?: boolean;
  models?: string[];
}

/** A note that is sent with chats. */
export interface ImportedMemory extends Origin {
  what: "memory";
  fields: MemoryFields;
}

/** A proposal of a note, open or decided. */
export interface ImportedProposal extends Origin {
  what: "proposal";
  fields: ProposalFields;
}

/** An image of the gallery. Its attachment is an item of its own. */
export interface ImportedGeneratedImage extends Origin {
  what: "generated_image";
  image: ImageOrigin;
  /** Name of the attachment. */
  attachment: string;
}

/** An image. Messages refer to it by its `id`. */
export interface ImportedAttachment extends Origin {
  what: "attachment";
  bytes: Uint8Array<ArrayBuffer>;
}

/** A document with its original file. Its text is read again. */
export interface ImportedDocument extends Origin {
  what: "document";
  contentType: string;
  /** Address of a link. */
  url?: string;
  /** Characters and personas to which it's attached. */
  usedBy: { kind: DocumentOwnerKind; id: string; use: DocumentUse }[];
  bytes: Uint8Array<ArrayBuffer>;
}

/** A voice sample. */
export interface ImportedVoice extends Origin {
  what: "voice";
  description: string;
  audio: Uint8Array<ArrayBuffer>;
}

/** A ComfyUI workflow in API format. */
export interface ImportedWorkflow extends Origin {
  what: "workflow";
  json: unknown;
}

/** A model server without its key. */
export interface ImportedConnection extends Origin {
  what: "connection";
  profile: ConnectionInput;
  hadKey: boolean;
  isActive: boolean;
}

/** An image server without its key. */
export interface ImportedImageConnection extends Origin {
  what: "image_connection";
  profile: BackendProfileInput;
  hadKey: boolean;
  isActive: boolean;
}

/** A tool server without its environment and headers. An enabled one is held, because an import must not start programs. */
export interface ImportedToolServer extends Origin {
  what: "tool_server";
  server: ToolServerInput;
  hadSecrets: boolean;
}

/** One of the owner's regex scripts. */
export interface ImportedRegexScript extends Origin {
  what: "regex_script";
  /** In SillyTavern's form. */
  json: unknown;
  /** By default it runs after all others. */
  order?: number;
}

/** The owner's settings. */
export interface ImportedSettings extends Origin {
  what: "settings";
  settings: SettingsPatch;
  /** The speech server without its key. */
  speech?: SpeechConfigInput;
  hadSpeechKey: boolean;
  /** The transcription server without its key. */
  transcription?: TranscriptionConfigInput;
  hadTranscriptionKey?: boolean;
  /** Web search and page reading. */
  web?: WebConfigExport;
  /** The notification server without its token. */
  notifications?: NotifyServerInput;
  /** How much models were used, and what they cost. */
  usage?: ExportedUsage;
}

/** A note for the report: why something wasn't imported, or what was changed. */
export interface ImportNote extends ImportReason {
  what: "note";
  level: "refused" | "left_out" | "changed" | "kept";
  source: string;
  /** Number of files that the note is about. */
  count?: number;
}

/** An item to import. */
export type ImportedItem =
  | ImportedConversation
  | ImportedCharacter
  | ImportedPersona
  | ImportedLorebook
  | ImportedPreset
  | ImportedMemory
  | ImportedProposal
  | ImportedGeneratedImage
  | ImportedAttachment
  | ImportedDocument
  | ImportedVoice
  | ImportedWorkflow
  | ImportedConnection
  | ImportedImageConnection
  | ImportedToolServer
  | ImportedRegexScript
  | ImportedSettings;

/** The fields of items that are byte arrays. They're sent beside the JSON of an item. */
export const BYTE_FIELDS: Partial<Record<ImportedItemKind, readonly string[]>> = {
  character: ["file", "avatar"],
  persona: ["avatar"],
  attachment: ["bytes"],
  document: ["bytes"],
  voice: ["audio"],
};

/** What a reader yields: items and notes. */
export type ImportStep = ImportedItem | ImportNote;

/** Memory of a message without its texts. */
const MESSAGE_BYTES = 512;
const STEP_BYTES = 1024;
/** Memory of the usage of one hour, with a few models. */
const HOUR_BYTES = 2048;

/** Conversations larger than this are sent, stored and counted one at a time. */
export const LARGE_BYTES = 2 * 1024 * 1024;

/** Estimates the bytes of an item: one byte per character of text. */
export function estimateStepBytes(step: ImportStep): number {
  if (step.what === "attachment" || step.what === "document") return step.bytes.length;
  if (step.what === "voice") return step.audio.length;
  if (step.what === "character") return step.file.length + (step.avatar?.length ?? 0); // A path needs no memory.
  if (step.what === "persona") return step.avatar?.length ?? 0;
  if (step.what === "settings") return STEP_BYTES + Object.keys(step.usage?.hours ?? {}).length * HOUR_BYTES;
  if (step.what !== "conversation") return STEP_BYTES;
  const all = [step.messages, ...(step.continuations ?? []).map(({ messages }) => messages)].flat();
  return all.reduce((sum, message) => sum + estimateMessageBytes(message), STEP_BYTES);
}

/** Estimates the bytes of a message with all its variants. */
export function estimateMessageBytes(message: ImportedMessage): number {
  let bytes = MESSAGE_BYTES + estimateTextBytes(message);
  for (const text of message.variants ?? []) bytes += estimateTextBytes(text);
  return bytes;
}

function estimateTextBytes({ content, reasoning = "" }: ImportedText): number {
  return reasoning.length + (typeof content === "string" ? content.length : estimateStringBytes(content));
}

/** Counts the characters of all texts in a JSON value. */
export function estimateStringBytes(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce((sum: number, item) => sum + estimateStringBytes(item), 0);
}

/**
 * Returns the samplers of a preset.
 *
 * @param names The program's names by ours.
 * @param read Converts a value; `undefined` if the sampler is off.
 */
export function mapSampler(
  preset: JsonObject,
  names: Record<string, string>,
  read: (value: number, name: string) => number | undefined = (value) => value,
): Sampler {
  const found = Object.entries(names).flatMap(([ours, theirs]) => {
    const value = preset[theirs];
    const counted = typeof value === "number" && Number.isFinite(value) ? read(value, ours) : undefined;
    return counted === undefined ? [] : [[ours, counted] as const];
  });
  return Object.fromEntries(found);
}
