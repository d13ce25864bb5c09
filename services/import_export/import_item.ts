/** What readers of other programs' data give, one thing at a time, in the terms of Parlor. It crosses from a Worker: plain data alone. */
import type { ImportReason } from "./import_reasons.ts";
import type { BackendProfileInput } from "../image_generation/backend_profiles.ts";
import type { ContentPart } from "../llm/chat_event.ts";
import type { ConnectionInput } from "../llm/connections/connections.ts";
import type { SettingsPatch } from "../settings/settings.ts";
import type { SpeechConfigInput } from "../speech/speech_settings.ts";

/** Programs and forms whose data can be brought in. */
export const IMPORT_KINDS = ["sillytavern", "tavern", "risuai", "agnai", "chatgpt", "openwebui", "parlor"] as const;
/** One of them. */
export type ImportKind = typeof IMPORT_KINDS[number];

/** Kinds of things that an import brings. */
export const IMPORTED_THINGS = [
  ...["conversation", "character", "persona", "lorebook", "preset", "attachment"] as const,
  ...["voice", "workflow", "connection", "image_connection", "settings"] as const,
];
/** One of them. */
export type ImportedThing = typeof IMPORTED_THINGS[number];

/** What all of them say of themselves. */
interface Origin {
  /** The same for the same thing at each import. */
  id: string;
  /** Where in the import it was found: a path. */
  source: string;
  name: string;
}

/** One text of a message. */
export interface ImportedText {
  content: string | ContentPart[];
  reasoning?: string;
  model?: string;
  /** ISO 8601, UTC. */
  updated_at?: string;
}

/** A message; further fields are kept with it. */
export interface ImportedMessage extends ImportedText {
  id: string;
  role: string;
  /** ISO 8601, UTC. */
  created_at?: string;
  /** All its texts, the active one among them; absent where it has but one. */
  variants?: ImportedText[];
  /** From 0. */
  active_variant?: number;
  [field: string]: unknown;
}

/** What follows a version of a message that isn't the active one. */
export interface ImportedContinuation {
  message_id: string;
  /** Number of the version, from 0. */
  n: number;
  /** Along the active versions. */
  messages: ImportedMessage[];
}

/** A conversation. */
export interface ImportedConversation extends Origin {
  what: "conversation";
  /** Of what was read: two imports of the same chat have the same one. */
  hash: string;
  /** Fields of the conversation as the API names them. */
  head: Record<string, unknown>;
  /** ISO 8601, UTC. */
  createdAt?: string;
  /** ISO 8601, UTC. */
  updatedAt?: string;
  /** The active path. */
  messages: ImportedMessage[];
  continuations?: ImportedContinuation[];
  /** What stood in the composer. */
  draft?: string;
}

/** The file of a card: PNG, JSON or CHARX. */
export interface ImportedCharacter extends Origin {
  what: "character";
  /** Its bytes, or where it lies on disk until it was brought in. */
  file: Uint8Array<ArrayBuffer> | string;
  /** How many pictures and sounds come in it beside the one that shows the character, where that is worth a line. */
  files?: number;
  /** Its picture, where the file carries none: PNG, JPEG, WebP or GIF. */
  avatar?: Uint8Array<ArrayBuffer>;
}

/** A persona. */
export interface ImportedPersona extends Origin {
  what: "persona";
  description: string;
  avatar?: Uint8Array<ArrayBuffer>;
}

/** A lorebook in any form that `parseLorebook` reads. */
export interface ImportedLorebook extends Origin {
  what: "lorebook";
  book: unknown;
  isEnabled?: boolean;
  scope?: "global" | "character" | "persona" | "chat";
  characterIds?: string[];
  personaIds?: string[];
}

/** A preset: SillyTavern's file, or what Parlor itself wrote. */
export interface ImportedPreset extends Origin {
  what: "preset";
  json: unknown;
  isOurs?: boolean;
  models?: string[];
}

/** A picture under the name by which messages refer to it, which is its `id`. */
export interface ImportedAttachment extends Origin {
  what: "attachment";
  bytes: Uint8Array<ArrayBuffer>;
}

/** A voice sample. */
export interface ImportedVoice extends Origin {
  what: "voice";
  description: string;
  createdAtMs?: number;
  audio: Uint8Array<ArrayBuffer>;
}

/** A workflow of ComfyUI in API format. */
export interface ImportedWorkflow extends Origin {
  what: "workflow";
  json: unknown;
}

/** A model server, without its key. */
export interface ImportedConnection extends Origin {
  what: "connection";
  profile: ConnectionInput;
  hadKey: boolean;
  isActive: boolean;
}

/** An image server, without its key. */
export interface ImportedImageConnection extends Origin {
  what: "image_connection";
  profile: BackendProfileInput;
  hadKey: boolean;
  isActive: boolean;
}

/** How an owner likes it. */
export interface ImportedSettings extends Origin {
  what: "settings";
  settings: SettingsPatch;
  /** The speech server, without its key. */
  speech?: SpeechConfigInput;
  hadSpeechKey: boolean;
}

/** What has to be said of something: why it does not come in, or not whole, or what comes with it. */
export interface ImportNote extends ImportReason {
  what: "note";
  level: "refused" | "left_out" | "changed" | "kept";
  source: string;
  /** How many files it is about. */
  count?: number;
}

/** Something to be brought in. */
export type ImportedItem =
  | ImportedConversation
  | ImportedCharacter
  | ImportedPersona
  | ImportedLorebook
  | ImportedPreset
  | ImportedAttachment
  | ImportedVoice
  | ImportedWorkflow
  | ImportedConnection
  | ImportedImageConnection
  | ImportedSettings;

/** What a reader gives. */
export type ImportStep = ImportedItem | ImportNote;
