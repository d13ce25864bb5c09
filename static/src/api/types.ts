/** The answers of the HTTP API as the page uses them; field names are the wire's. Shapes: API document and docs/decisions. */

/** How a message ended, or that it has not. */
export type MessageStatus = "complete" | "streaming" | "stopped" | "failed" | "interrupted";

/** One piece of a message that is more than text. */
export interface ContentPart {
  type: string;
  text?: string;
  [more: string]: unknown;
}

/** The inner part of the one error body. */
export interface ErrorBody {
  code: string;
  message: string;
  request_id?: string;
  issues?: { path: string; message: string }[];
}

/** Token counts as the upstream reported them. */
export interface Usage {
  prompt_tokens?: number;
  completion_tokens?: number;
  total_tokens?: number;
}

/** One turn of a conversation. */
export interface Message {
  id: string;
  role: string;
  content: string | ContentPart[];
  reasoning?: string;
  created_at?: string;
  updated_at?: string;
  model?: string;
  status?: MessageStatus;
  hidden?: boolean;
  error?: ErrorBody;
  usage?: Usage;
  /** What the model server measured, such as llama.cpp's `predicted_per_second`. */
  timings?: Record<string, unknown>;
  /** Why the last attempt to regenerate this reply failed; the reply itself is the one from before. */
  last_attempt?: { status: MessageStatus; error?: ErrorBody; created_at: string };
  /** How many texts there are for this place, the one in `content` included; each of a user's has its own continuation. */
  variant_count?: number;
  /** From 0. */
  active_variant?: number;
  attachments?: string[];
  /** Who spoke: a character in a reply, a persona in a turn of the user. */
  character_id?: string | null;
  persona_id?: string | null;
}

/** A note that goes along with every request, so many messages before the end. */
export interface ChatNote {
  text: string;
  depth: number;
  role: string;
}

/** What a chat may set for itself; absent means: as the connection or the preset has it. */
export interface ChatOptions {
  connection_id?: string | null;
  model?: string | null;
  system_prompt?: string | null;
  params?: Record<string, unknown> | null;
  note?: ChatNote | null;
  /** Who the owner is from here on. */
  persona_id?: string | null;
  /** Lorebooks that are there for this chat. */
  lorebook_ids?: string[] | null;
  /** The preset that is pinned to it. */
  preset_id?: string | null;
  /** The characters that take part. */
  participants?: Participant[] | null;
  /** Who of several speaks next: who is spoken of and likes to talk, one after another, or who is named. */
  reply_order?: ReplyOrder | null;
  /** Told in the place of messages for which there is no room. */
  summary?: ChatSummary | null;
}

/** A character that takes part in a chat. */
export interface Participant {
  character_id: string;
  muted?: boolean;
}

/** How it comes about who speaks next. */
export type ReplyOrder = "natural" | "list" | "manual";

/** What happened in the older messages. */
export interface ChatSummary {
  text: string;
  /** The last message that it tells of. */
  up_to_message_id?: string;
}

/** Fields of a conversation to change; null clears. */
export interface ConversationChanges extends ChatOptions {
  title?: string;
  pinned?: boolean | null;
  folder?: string | null;
}

/** A conversation without its messages. */
export interface ConversationHead extends ChatOptions {
  id: string;
  title: string;
  created_at: string;
  updated_at: string;
  revision: number;
  draft: string;
  draft_version: number;
  message_count: number;
  forked_from?: { conversation_id: string; message_id: string };
}

/** A part of a conversation that the server can't read any more. */
export interface Damage {
  part: "head" | "draft" | "messages" | "variants";
  message_ids?: string[];
}

/** A conversation with the last of its messages, all of one state. */
export interface RecentConversation extends ConversationHead {
  damaged?: Damage[];
  /** Oldest first. */
  messages: Message[];
  /** `before` of the page with the messages before these; null at the begin of the conversation. */
  next_cursor: string | null;
}

/** What changed in a conversation since a revision. */
export interface ConversationDelta {
  /** The revision it leads up to. */
  revision: number;
  /** Ids of messages that changed or are new. */
  changed: string[];
  removed: string[];
  /** Messages moved. */
  order_changed: boolean;
}

/** A conversation with all its messages. */
export interface Conversation extends Omit<ConversationHead, "message_count"> {
  messages: Message[];
}

/** A conversation that shares its begin with another. */
export interface Branch {
  conversation_id: string;
  /** The message at which they part, by its id in the original. */
  message_id: string;
  title: string;
  updated_at: string;
  message_count: number;
}

/** Whom a conversation was copied from, and who from it. */
export interface Branches {
  origin: Branch | null;
  forks: Branch[];
}

/** What a model would be sent, and what not. */
export interface ChatPreview {
  model: string;
  connection: { id: string; name: string };
  params: Record<string, unknown>;
  messages: SentMessage[];
  /** What each of the messages is. */
  parts: { part: string; message_id?: string; tokens: number; pieces?: PromptPiece[] }[];
  preset?: { id: string; name: string };
  /** Who speaks, and who would like to after that. */
  speakers?: string[];
  tokens: number;
  counted_by: "server" | "estimate";
  context_size: number;
  context_size_assumed: boolean;
  answer_tokens: number;
  fits: boolean;
  /** The oldest messages, which do not fit, and what else stays out. */
  dropped: { count: number; last_message_id?: string; pieces?: PromptPiece[]; lorebook_entries?: MissedLore[] };
  /** Fields that are sent as written, since their macros exceed the budget. */
  not_expanded?: NotExpanded[];
}

/** A field whose macros exceed the budget, and which one, where a prompt has several. */
export interface NotExpanded {
  field: string;
  source?: string;
  reason: "steps" | "bytes" | "depth" | "variables";
}

/** One of the texts that a message is put together from. */
export interface PromptPiece {
  part: string;
  title?: string;
  tokens: number;
  text: string;
  /** The entry of a lorebook, and why it fired. */
  entry?: LoreSource & { reason: { kind: string; key?: string } };
}

/** An entry of a lorebook. */
export interface LoreSource {
  lorebook_id: string;
  lorebook_name: string;
  entry_id: string;
  entry_name: string;
}

/** An entry that fired and does not go out. */
export interface MissedLore extends LoreSource {
  reason: string;
  key?: string;
}

/** A place that a search found; `message_id` is null where the title was found. */
export interface SearchHit {
  conversation_id: string;
  message_id: string | null;
  title: string;
  role: string | null;
  snippet: string;
  created_at: string;
}

/** One line of the conversation list. */
export interface ConversationSummary {
  id: string;
  title: string;
  created_at: string;
  updated_at: string;
  revision: number;
  message_count: number;
  draft_version: number;
  snippet?: string;
  character_ids?: string[];
  pinned?: boolean;
  folder?: string;
}

/** Something that was removed and can be had back. */
export interface TrashItem {
  id: string;
  /** conversation, message, … */
  kind: string;
  title: string;
  deleted_at: string;
}

/** Long work on the server. */
export interface Job {
  id: string;
  kind: string;
  title: string;
  state: "queued" | "running" | "verifying" | "done" | "failed" | "cancelled";
  /** `total` is null while unknown; null altogether when nothing can be counted. */
  progress: { done: number; total: number | null; unit: string } | null;
  /** What only this kind of job can say. */
  detail?: unknown;
  error?: ErrorBody;
  created_at: string;
  updated_at: string;
}

/** One page of a list; `next_cursor` is null at its end. */
export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

/** A reply that is being written on the server. */
export interface RunningReply {
  assistant_message_id: string;
  conversation_id: string;
  started_at: string;
}

/** What kind of protocol a connection speaks. */
export type ConnectionKind = "openai" | "anthropic" | "demo";

/** A saved way to reach a language model; its key never comes back. */
export interface Connection {
  id: string;
  name: string;
  kind: ConnectionKind;
  base_url: string;
  model?: string | null;
  context_size?: number | null;
  has_key: boolean;
  active: boolean;
  /** The record cannot be opened; it can only be entered again or deleted. */
  unreadable?: boolean;
  created_at?: string;
  updated_at?: string;
}

/** What is sent to save or test a connection; `api_key` absent keeps the stored one, null clears it. */
export interface ConnectionInput {
  id?: string;
  name: string;
  kind: ConnectionKind;
  base_url: string;
  model?: string | null;
  context_size?: number | null;
  api_key?: string | null;
}

/** What a test of a connection found. */
export interface ConnectionVerdict {
  reachable: boolean;
  authorized: boolean;
  models: string[];
  context_size?: number;
  latency_ms: number;
  error?: string;
  advice?: string;
}

/** A language model server that answered on this machine or a configured host. */
export interface FoundServer {
  base_url: string;
  kind: ConnectionKind;
  software: string;
  models: string[];
  needs_key?: boolean;
  starting?: boolean;
}

/** Whether the first-run wizard has ended, and where servers are searched from. */
export interface SetupStatus {
  completed: boolean;
  in_container: boolean;
  discover_hosts: string[];
}

/** State of the server and its active connection. */
export interface Health {
  status: "ok" | "degraded" | "unconfigured";
  version: string;
  connection: {
    id: string;
    name: string;
    kind: ConnectionKind;
    base_url: string;
    model?: string | null;
    reachable: boolean;
    latency_ms?: number;
    error?: string;
  } | null;
}

/** How this browser stands with the server's authentication. */
export interface AuthStatus {
  rp_id: string;
  origin: string;
  /** A passkey opens this address, and nothing else does but a token. */
  paired: boolean;
  authenticated: boolean;
  method: "session" | "token" | null;
  bypass: "auth_disabled" | "loopback" | "grace" | null;
  passkeys_supported: boolean;
  pairing: "open" | "code";
  hint?: string;
}

/** What the person likes, on every device. */
export interface OwnerSettings {
  display_name: string;
  /** Who the owner is in a chat that names no persona. */
  default_persona_id: string | null;
  /** The preset for whatever no other is for; null is the built-in one. */
  preset_id: string | null;
  /** BCP 47; null follows the browser. */
  language: string | null;
  theme: "system" | "light" | "dark";
  /** Degrees on the colour circle; null is the look as it comes. */
  accent_hue: number | null;
  /** Percent, 85 to 140. */
  font_size: number;
  serif: boolean;
  send_on_enter: boolean;
  /** Let the model name conversations. */
  auto_title: boolean;
  /** Let the model tell what happened in messages that no longer fit. */
  auto_summary: boolean;
  auto_speak: boolean;
  /** Voice for what stands outside of quotation marks; null is the voice of whoever speaks. */
  narration_voice: string | null;
  /** Voice for what stands in them; null is the configured one. */
  speech_voice: string | null;
}

/** One frame of the stream of changes; it says what changed, never how. */
export interface ChangeEvent {
  kind: string;
  id: string;
  revision?: number;
}

/** A turn as it is sent to the model. */
export interface SentMessage {
  role: string;
  content: string | ContentPart[];
}

/** The body of a chat request; without `conversation_id` nothing of it is stored. */
export interface ChatRequest {
  conversation_id?: string;
  user_message_id?: string;
  assistant_message_id?: string;
  action?: "send" | "edit" | "regenerate" | "continue" | "impersonate";
  /** Who is to speak, where several characters take part. */
  character_id?: string;
  model?: string;
  /** Who assembles what the model gets; the server does it from the stored conversation. */
  context?: "client" | "server";
  /** The turn alone where the server assembles, otherwise all that is sent. */
  messages: SentMessage[];
  stream: true;
  /** Sampler fields of a request that belongs to no conversation. */
  [param: string]: unknown;
}
