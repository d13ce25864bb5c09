/** A chat request after parsing. */
import type { ChatMessage } from "../llm/chat_event.ts";

/** A chat request. */
export interface ChatRequest {
  messages: ChatMessage[];
  model?: string;
  /** Picks the connection for this request. */
  connectionId?: string;
  /** Sampling parameters and other fields that pass through to the model. */
  params: Record<string, unknown>;
  /**
   * Who assembles the prompt: the client (the default), the server from the stored conversation, or the server around the
   * client's messages, with everything that belongs to `characterId`.
   */
  context?: "client" | "server" | "character";
  /** The character that speaks: in a group, or with the context `character`. */
  characterId?: string;
}

/** What a new conversation starts with, before the message that the request adds. */
export interface ConversationOpening {
  participants: { character_id: string }[];
  messages: ChatMessage[];
}

/** A chat request that belongs to a conversation. */
export interface StatefulChatRequest extends ChatRequest {
  conversationId: string;
  userMessageId?: string;
  assistantMessageId?: string;
  /**
   * `edit` adds a version to an earlier user message and answers it. `impersonate` writes a message in the user's name and
   * stores nothing.
   */
  action: "send" | "edit" | "regenerate" | "continue" | "impersonate";
  /** Parlor's own tools go with the request, unless it has some or the conversation turns them off. */
  usesTools?: boolean;
  /** Ignored if the conversation exists. */
  opening?: ConversationOpening;
  /** IANA name of the client's time zone. */
  timeZone?: string;
}

/** A chat request with or without a conversation. */
export type AnyChatRequest = ChatRequest & Partial<StatefulChatRequest>;
