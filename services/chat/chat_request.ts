/** What is asked of a model, and where it can be sent. */
import type { ChatCall, ChatMessage, OpenAiCompletion } from "../llm/chat_event.ts";
import type { ChatStream, UpstreamTarget } from "../llm/upstream_client.ts";

/** Which model and connection are wanted, in order of precedence. */
export interface WantedModel {
  /** Of the request. */
  model?: string;
  connectionId?: string;
  conversationModel?: string;
}

/** Where a chat request goes and what it is answered with. */
export interface ChatRoute {
  target: UpstreamTarget;
  model: string;
  connection: { id: string; name: string };
}

/** The models that can be asked; implemented by the connections. */
export interface ChatUpstream {
  /**
   * Chooses connection and model. A connection that is gone gives way to the active one.
   *
   * @throws {AppError} `not_available` when there is no connection.
   */
  route(wanted: WantedModel, signal: AbortSignal): Promise<ChatRoute>;
  open(target: UpstreamTarget, call: ChatCall, signal: AbortSignal): Promise<ChatStream>;
  complete(target: UpstreamTarget, call: ChatCall, signal: AbortSignal): Promise<OpenAiCompletion>;
}

/** A chat request after parsing. */
export interface ChatRequest {
  messages: ChatMessage[];
  model?: string;
  /** Sampler fields and whatever else passes through. */
  params: Record<string, unknown>;
}

/** A chat request that belongs to a conversation. */
export interface StatefulChatRequest extends ChatRequest {
  conversationId: string;
  userMessageId?: string;
  assistantMessageId?: string;
  /**
   * `edit` adds a version to an earlier user message and answers it; `impersonate` writes in the owner's name, and nothing
   * of that is stored.
   */
  action: "send" | "edit" | "regenerate" | "continue" | "impersonate";
  /** Who assembles what is sent; the client, unless it says otherwise. */
  context?: "client" | "server";
  /** Who is to speak, where several characters take part. */
  characterId?: string;
  /** IANA name, of whoever asks. */
  timeZone?: string;
}
