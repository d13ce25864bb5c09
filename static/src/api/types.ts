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
}

/** A conversation with all its messages. */
export interface Conversation {
  id: string;
  title: string;
  created_at: string;
  updated_at: string;
  revision: number;
  draft: string;
  draft_version: number;
  messages: Message[];
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
  pinned?: boolean;
  folder?: string;
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
  paired?: boolean;
  authenticated?: boolean;
  bypass: "auth_disabled" | "loopback" | "grace" | null;
  hint?: string;
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

/** The body of a chat request with a conversation. */
export interface ChatRequest {
  conversation_id: string;
  user_message_id?: string;
  assistant_message_id: string;
  action?: "send" | "regenerate" | "continue";
  messages: SentMessage[];
  stream: true;
}
