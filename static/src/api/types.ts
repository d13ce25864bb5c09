/**
 * The JSON of the API, by the names that the page uses.
 *
 * All types come from the schemas with which the server checks requests and documents its API, so a difference between
 * page and server is a type error. Nothing here is loaded at run time.
 */
import type { ToolCall } from "./tools.ts";
import type {
  ChatPreviewJson as ChatPreview,
  ChatRequestJson as ChatRequest,
  RunningReplyJson,
} from "../../../routes/schemas/chat/chat.ts";
import type { ErrorJson } from "../../../routes/schemas/common.ts";
import type { ConnectionJson } from "../../../routes/schemas/connections.ts";
import type {
  ConversationJson,
  ConversationPatchJson as ConversationPatch,
  RecentConversationJson,
  RevisionDiffJson as RevisionDiff,
} from "../../../routes/schemas/chat/conversations.ts";
import type { ImageBackendJson as ImageBackend } from "../../../routes/schemas/images.ts";
import type { ImportReportJson as ImportReport } from "../../../routes/schemas/import_export.ts";
import type {
  LorebookItemJson as LorebookItem,
  LorebookJson as Lorebook,
  LorebookTestJson as LorebookTest,
} from "../../../routes/schemas/lorebooks.ts";
import type { MessageJson } from "../../../routes/schemas/chat/messages.ts";
export type {
  MessageQueueJson as MessageQueue,
  NewQueuedMessageJson as NewQueuedMessage,
  QueuedMessageJson as QueuedMessage,
} from "../../../routes/schemas/chat/message_queue.ts";
import type {
  HubModelFilesJson as HubModelFiles,
  ModelDownloadJson as ModelDownload,
} from "../../../routes/schemas/models.ts";
import type { PresetOrderJson as PresetOrder } from "../../../routes/schemas/presets.ts";

export type {
  MemoryInputJson as MemoryInput,
  MemoryJson as Memory,
  MemoryProposalJson as MemoryProposal,
  MemoryScopeJson as MemoryScope,
  MemoryVersionJson as MemoryVersion,
} from "../../../routes/schemas/memories.ts";
export type {
  ChatUsageJson as ChatUsage,
  ModelPriceJson as ModelPrice,
  ModelUsageJson as ModelUsage,
  UsageJson as UsageReport,
  UsageSumsJson as UsageSums,
  UsageTotalJson as UsageTotal,
} from "../../../routes/schemas/usage.ts";
export type { PageJson as Page } from "../../../routes/schemas/common.ts";
export type { ReleasesJson as Releases } from "../../../routes/schemas/data.ts";
export type {
  PromptTemplateJson as PromptTemplate,
  TemplateButtonJson as TemplateButton,
} from "../../../routes/schemas/settings.ts";
export type { AuthStatus } from "../../../routes/schemas/auth.ts";
export type {
  AddressCheckJson as AddressCheck,
  InviteJson as Invite,
  MintedTokenJson as MintedToken,
  PasskeyJson as Passkey,
  TokenJson as Token,
} from "../../../routes/schemas/auth.ts";
export type { ExpressionJson as Expression } from "../../../routes/schemas/characters.ts";
export type { FoundCardJson as FoundCard } from "../../../routes/schemas/characters.ts";
export type {
  CardFieldUpdateJson as CardFieldUpdate,
  CharacterGenerationJson as CharacterGenerationRequest,
} from "../../../routes/schemas/characters.ts";
export type {
  CardDataJson as CardData,
  CardJson as Card,
  CharacterFolderJson as CharacterFolder,
  CharacterItemJson as CharacterItem,
  CharacterJson as Character,
  PortraitJson as Portrait,
} from "../../../routes/schemas/characters.ts";
export type {
  ChatPreviewJson as ChatPreview,
  ChatRequestJson as ChatRequest,
  PromptPieceJson as PromptPiece,
} from "../../../routes/schemas/chat/chat.ts";
export type {
  ConnectionInputJson as ConnectionInput,
  ConnectionTestJson as ConnectionTest,
  DetectedServerJson as DetectedServer,
  FoundServersJson as FoundServers,
} from "../../../routes/schemas/connections.ts";
export type {
  ConversationHeadJson as ConversationHead,
  ConversationPatchJson as ConversationPatch,
  ConversationSummaryJson as ConversationSummary,
} from "../../../routes/schemas/chat/conversations.ts";
export type {
  DataReportJson as DataReport,
  FindingJson as Finding,
  StoredReportJson as StoredReport,
} from "../../../routes/schemas/data.ts";
export type { ChangeEventJson as ChangeEvent } from "../../../routes/schemas/events.ts";
export type { BranchesJson as Branches } from "../../../routes/schemas/chat/conversations.ts";
export type { HealthJson as Health } from "../../../routes/schemas/health.ts";
export type { WorkflowJson as Workflow } from "../../../routes/schemas/images.ts";
export type {
  BackendDetectionJson as BackendDetection,
  CheckpointJson as Checkpoint,
  DetectedBackendJson as DetectedBackend,
  GalleryImageJson as GalleryImage,
  GeneratedImagesJson as GeneratedImages,
  GenerateImageJson as GenerateImage,
  ImageBackendInputJson as ImageBackendInput,
  ImageBackendJson as ImageBackend,
  ImageBackendTestJson as ImageBackendTest,
} from "../../../routes/schemas/images.ts";
export type {
  ImportableJson as Importable,
  ImportReportJson as ImportReport,
  ImportSourceJson as ImportSource,
} from "../../../routes/schemas/import_export.ts";
export type {
  ChatFilesJson as ChatFiles,
  LibraryDocumentJson as LibraryDocument,
} from "../../../routes/schemas/library.ts";
export type { JobJson as Job } from "../../../routes/schemas/jobs.ts";
export type { LicenseNoticeJson as LicenseNotice } from "../../../routes/schemas/data.ts";
export type {
  LorebookEntryJson as LorebookEntry,
  LorebookItemJson as LorebookItem,
  LorebookJson as Lorebook,
  LorebookTestJson as LorebookTest,
  LorebookTestRequestJson as LorebookTestRequest,
} from "../../../routes/schemas/lorebooks.ts";
export type {
  ConversationChangesJson as ConversationChanges,
  DamagedPartJson as DamagedPart,
  MessageVariantJson as MessageVariant,
} from "../../../routes/schemas/chat/messages.ts";
export type {
  HubModelFilesJson as HubModelFiles,
  HubModelJson as HubModel,
  LocalModelJson as LocalModel,
  ModelDownloadJson as ModelDownload,
  RecommendedModelsJson as RecommendedModels,
} from "../../../routes/schemas/models.ts";
export type { PersonaJson as Persona } from "../../../routes/schemas/personas.ts";
export type {
  PresetItemJson as PresetItem,
  PresetJson as Preset,
  PresetOrderJson as PresetOrder,
  PresetPromptJson as PresetPrompt,
} from "../../../routes/schemas/presets.ts";
export type {
  RevisionDiffJson as RevisionDiff,
  RevisionJson as Revision,
} from "../../../routes/schemas/chat/conversations.ts";
export type { ModelRunnerJson as ModelRunner, RunModelJson as RunModel } from "../../../routes/schemas/models.ts";
export type {
  DocumentEncoding,
  DocumentJson as StoredDocument,
  DocumentUseJson as DocumentUse,
} from "../../../routes/schemas/documents.ts";
export type {
  DocumentHitJson as DocumentHit,
  SearchHitJson as SearchHit,
} from "../../../routes/schemas/chat/conversations.ts";
export type { SettingsJson as Settings } from "../../../routes/schemas/settings.ts";
export type { SetupStatusJson as SetupStatus } from "../../../routes/schemas/settings.ts";
export type {
  NotifyServerJson as NotifyServer,
  PagePresenceJson as PagePresence,
  PushDeviceJson as PushDevice,
  PushSubscriptionJson as PushSubscriptionBody,
} from "../../../routes/schemas/push.ts";
export type { TailnetStatusJson as TailnetStatus } from "../../../routes/schemas/tailnet.ts";
export type { TrashItemJson as TrashItem } from "../../../routes/schemas/data.ts";
export type {
  DetectedSpeechServerJson as DetectedSpeechServer,
  SpeechConfigJson as SpeechConfig,
  SpeechConfigPatchJson as SpeechConfigPatch,
  SpeechDetectionJson as SpeechDetection,
  VoicesJson as Voices,
} from "../../../routes/schemas/speech.ts";
export type {
  TranscriptionConfigJson as TranscriptionConfig,
  TranscriptionConfigPatchJson as TranscriptionConfigPatch,
  TranscriptionTestJson as TranscriptionTest,
  TranscriptJson as Transcript,
} from "../../../routes/schemas/transcription.ts";
export type {
  WebToolsJson as WebTools,
  WebToolsPatchJson as WebToolsPatch,
  WebToolsTestJson as WebToolsTest,
} from "../../../routes/schemas/tools.ts";
export type { VersionJson as Version } from "../../../routes/schemas/versions.ts";
export type { VoiceImportJson as VoiceImport, VoiceSampleJson as VoiceSample } from "../../../routes/schemas/speech.ts";

/** The content of the error body. An error that the page creates has no request id. */
export type ErrorBody = Pick<ErrorJson, "code" | "message"> & Partial<ErrorJson>;

/** A connection, with details that only some servers report. */
export type Connection = ConnectionJson & {
  /** Why replies are slow, such as a model that doesn't fit into graphics memory. */
  notice?: { code: string; message: string };
  /** A kind that suits the server better. */
  suggested_kind?: "ollama";
};

/** Which call to a model server failed, and why. */
export type UpstreamFailure = NonNullable<ErrorJson["upstream"]>;

/**
 * A message. One that this page just added lacks fields that the server sets; an error that this page saw has a request
 * id.
 */
export type Message =
  & Omit<MessageJson, "active_variant" | "error" | "last_attempt" | "updated_at" | "variant_count">
  & Partial<Pick<MessageJson, "active_variant" | "updated_at" | "variant_count">>
  & {
    error?: ErrorBody;
    last_attempt?: Omit<NonNullable<MessageJson["last_attempt"]>, "error"> & { error?: ErrorBody };
  };

/** A conversation with all its messages. */
export type Conversation = Omit<ConversationJson, "messages"> & { messages: Message[] };

/** A conversation with its last messages. */
export type RecentConversation = Omit<RecentConversationJson, "messages"> & { messages: Message[] };

/** A part of a message's content: text, an image, or a part that only some servers know. */
export type ContentPart = Exclude<Message["content"], string>[number];

/** A reply that is being written. */
export type RunningReply = RunningReplyJson & { pending_calls?: ToolCall[] };

/** A message of a chat request. */
export type RequestMessage = NonNullable<ChatRequest["messages"]>[number];

/** The fields of a chat that its options panel and its composer set. */
export type ChatOptions = Pick<
  ConversationPatch,
  | "connection_id"
  | "documents"
  | "chapters"
  | "background"
  | "learn"
  | "lorebook_ids"
  | "model"
  | "note"
  | "params"
  | "participants"
  | "persona_id"
  | "preset_id"
  | "reply_order"
  | "summary"
  | "system_prompt"
  | "tools"
>;

/** One part of the summary of a chat. */
export type Chapter = NonNullable<ConversationPatch["chapters"]>[number];

/** A character that takes part in a chat. */
export type Participant = NonNullable<ConversationPatch["participants"]>[number];

/** The rule that chooses who speaks next in a group. */
export type ReplyOrder = NonNullable<ConversationPatch["reply_order"]>;

/** A field whose macros exceed the budget, or a macro that isn't expanded. */
export type UnexpandedField = ChatPreview["not_expanded"][number];

/** A lorebook entry that was activated and left out. */
export type DroppedEntry = ChatPreview["dropped"]["lorebook_entries"][number];

/** The protocol of a connection. */
export type ConnectionKind = Connection["kind"];

/** The kind of an image backend. */
export type BackendKind = ImageBackend["kind"];

/** Which chats a lorebook applies to. */
export type LorebookScope = LorebookItem["scope"];

/** An activated entry of a lorebook test. */
export type ActivatedEntry = LorebookTest["entries"][number];

/** An entry of a lorebook test that was almost activated. */
export type MissedEntry = LorebookTest["dropped"][number];

/** A lorebook's content, on its own or inside a card. */
export type CardBook = Lorebook["book"];

/** A file of a hub repository. */
export type HubFile = HubModelFiles["files"][number];

/** The file format of a model. */
export type ModelFormat = ModelDownload["format"];

/** The kind of an imported item. */
export type ImportedKind = ImportReport["items"][number]["what"];

/** An item that an import added, or would add. */
export type ImportedItem = ImportReport["items"][number];

/** A line of an import's report: something that was not imported, or not unchanged. */
export type ImportReportLine = ImportReport["lines"][number];

/** A message that differs between a revision and the conversation now. */
export type MessageDiff = RevisionDiff["messages"][number];

/** The position of a prompt in a preset. */
export type PromptOrderItem = PresetOrder["order"][number];

/** Token counts, as the model server reported them. */
export type Usage = NonNullable<Message["usage"]>;

/** The progress of an image: `progress` is a share from 0 to 1, `preview` a data URL. Sent as an event, so in no schema. */
export interface ImageProgress {
  progress: number;
  step?: number;
  steps?: number;
  preview?: string;
}
export type {
  ServerToolJson as ServerTool,
  ToolServerBody,
  ToolServerImportJson as ToolServerImport,
  ToolServerJson as ToolServer,
} from "../../../routes/schemas/tool_servers.ts";
export type {
  AttachedRegexScriptsJson as AttachedRegexScripts,
  ConversationRegexScriptsJson as ConversationRegexScripts,
  RegexScriptInputJson as RegexScriptInput,
  RegexScriptJson as RegexScript,
} from "../../../routes/schemas/regex_scripts.ts";
