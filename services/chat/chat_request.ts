/** A chat request after parsing. */
import type { ChatMessage } from "../llm/chat_event.ts";

/** A chat request. */
export interface ChatRequest {
  messages: ChatMessage[];
  model?: string;
  /** Sampling parameters and other fields that pass through to the model. */
  params: Record<string, unknown>;
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
  /** Who assembles the prompt. Defaults to the client. */
  context?: "client" | "server";
  /** The character that speaks, in a group. */
  characterId?: string;
  /** IANA name of the client's time zone. */
  timeZone?: string;
}

/** A chat request with or without a conversation. */
export type AnyChatRequest = ChatRequest & Partial<StatefulChatRequest>;
