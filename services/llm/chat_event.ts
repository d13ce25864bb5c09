/** The protocol-independent form of chat calls and replies: OpenAI's, which the other protocols are translated to and from. */

/**
 * One step of a reply, in order of arrival.
 *
 * `finish` comes at most once; only `usage` can follow it. `usage` holds running totals: a later one replaces an earlier one.
 * `tool_calls` carries fragments of OpenAI's `delta.tool_calls`, merged by their `index` (tool_calls.ts).
 */
export type ChatEvent =
  | { type: "text"; text: string }
  | { type: "reasoning"; text: string }
  | { type: "tool_calls"; delta: unknown[] }
  | { type: "finish"; reason: string }
  | { type: "usage"; usage: Usage; timings?: Record<string, unknown> };

/** Token counts under OpenAI's names, and whatever a server adds. */
export interface Usage {
  prompt_tokens?: number;
  completion_tokens?: number;
  total_tokens?: number;
  [more: string]: unknown;
}

/** One part of a message that isn't plain text: `text`, `image_url` and what servers add. */
export interface ContentPart {
  type: string;
  [more: string]: unknown;
}

/** One message of the request. */
export interface ChatMessage {
  role: string;
  content: string | ContentPart[];
  [more: string]: unknown;
}

/** A chat request. */
export interface ChatCall {
  model: string;
  messages: ChatMessage[];
  /** Sampler fields under their wire names. `undefined` and `null` are not sent. */
  params: Record<string, unknown>;
}

/** One choice of a chat completion. */
export interface CompletionChoice {
  index: number;
  message: {
    role: string;
    content: string | null;
    reasoning_content?: string;
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
