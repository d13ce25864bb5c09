/**
 * The protocol-independent form of chat calls and replies: OpenAI's format, to and from which the other protocols are
 * translated.
 */

import type { NamedSource } from "./sources.ts";

/**
 * One step of a reply, in order of arrival.
 *
 * `finish` occurs at most once, and only `usage` can follow it. `usage` contains running totals: a later one replaces
 * an earlier one. `tool_calls` contains fragments of OpenAI's `delta.tool_calls`, merged by their `index`
 * (tool_calls.ts). `reasoning_details` contains blocks of reasoning that the server requires back together with tool
 * results, in OpenRouter's format (reasoning.ts). Their text was already sent as `reasoning`.
 */
export type ChatEvent =
  | { type: "text"; text: string }
  | { type: "reasoning"; text: string }
  | { type: "tool_calls"; delta: unknown[] }
  | { type: "reasoning_details"; details: unknown[] }
  /** Pictures: data URLs or addresses. */
  | { type: "images"; urls: string[] }
  | { type: "audio"; audio: AudioPiece }
  | { type: "sources"; sources: NamedSource[] }
  /** Before the reply's first text: how much of the prompt the server has read. */
  | { type: "progress"; progress: PromptProgress }
  /** The server keeps the reply under its own ID. `after` is the number of its last event. */
  | { type: "kept"; id: string; after: number }
  | { type: "finish"; reason: string }
  | { type: "usage"; usage: Usage; timings?: Record<string, unknown> };

/** How much of a prompt a server has read, in tokens. */
export interface PromptProgress {
  /** Tokens of the prompt. */
  total: number;
  /** Those that the server had from an earlier call. */
  cache: number;
  /** Those that are read, including the cached ones. */
  processed: number;
}

/** A piece of the sound that a model returns. Its transcript is text. */
export interface AudioPiece {
  /** Under which the server knows the sound, so that it needn't be sent back. */
  id?: string;
  /** Base64. Streams contain PCM: 16 bits, mono, 24 kHz. Only a whole reply is a file. */
  data?: string;
  /** Until when the server knows the sound: seconds since 1970. */
  expires_at?: number;
}

/** Token counts under OpenAI's names, and any that a server adds. */
export interface Usage {
  prompt_tokens?: number;
  completion_tokens?: number;
  total_tokens?: number;
  [more: string]: unknown;
}

/** One part of a message that isn't plain text: `text`, `image_url` and any that servers add. */
export interface ContentPart {
  type: string;
  [more: string]: unknown;
}

/** One message of the request. */
export interface ChatMessage {
  role: string;
  /** `null` in an assistant message that only has tool calls. */
  content: string | ContentPart[] | null;
  [more: string]: unknown;
}

/** A chat request. */
export interface ChatCall {
  model: string;
  messages: ChatMessage[];
  /** Sampler fields under Parlor's names, and fields for the server. `undefined` and `null` aren't sent. */
  params: Record<string, unknown>;
  /** Fields that are sent unchanged, unless `params` has them: the extra body of the preset. */
  extraBody?: Record<string, unknown>;
  /** Number of tokens for prompt and reply, if the caller counted them. Ollama is asked for a context of this size. */
  neededTokens?: number;
  /** Messages at the start that will be the same in the next call of the conversation. Default: all. */
  stableMessages?: number;
  /** Asks the server to keep the stream: under this ID, or one of its own. Whoever knows it can read the reply. */
  streamId?: string;
  /** What the call is for. Not sent. */
  origin?: CallOrigin;
}

/** What a call is for. Without one, it's Parlor's own question, such as one for an image prompt. */
export interface CallOrigin {
  /** A reply to the user, to a program that uses `/api/v1`, or a question of Parlor's own, such as one for a title. */
  kind: "reply" | "api" | "background";
  conversationId?: string;
  /** A further call for the same reply, after its tool calls. */
  isFurtherRound?: boolean;
}

/** What a server is doing before it answers. */
export interface ChatNotice {
  /**
   * `prompt_shortened`: the server refused the prompt as too long; older messages were left out, and it was sent again.
   * `reattaching`: Parlor was restarted, and looks for the reply at the model server.
   */
  code: "model_reload" | "prompt_shortened" | "reattaching";
  message: string;
  /** Number of tokens of the context, if the notice is about it. */
  contextSize?: number;
}

/** One choice of a chat completion. */
export interface CompletionChoice {
  index: number;
  message: {
    role: string;
    content: string | null;
    reasoning_content?: string;
    /** Only with tool calls: blocks that must be sent back to the server with the results. */
    reasoning_details?: unknown[];
    tool_calls?: unknown[];
    [more: string]: unknown;
  };
  finish_reason: string | null;
  [more: string]: unknown;
}

/** The response to a chat request without streaming. */
export interface OpenAiCompletion {
  id: string;
  object: "chat.completion";
  /** Seconds since 1970. */
  created: number;
  model: string;
  choices: CompletionChoice[];
  usage?: Usage;
  [more: string]: unknown;
}
