/** The words in which a model's answer is spoken inside Parlor, whatever protocol its server speaks. */

/**
 * One step of an answer, in the order of arrival.
 *
 * `finish` comes at most once and is followed by nothing but `usage`; `usage` holds running totals, so a later one replaces
 * an earlier one. `tool_calls` carries the pieces of OpenAI's `delta.tool_calls`, to be merged by their `index`.
 */
export type ChatEvent =
  | { type: "text"; text: string }
  | { type: "reasoning"; text: string }
  | { type: "tool_calls"; delta: unknown[] }
  | { type: "finish"; reason: string }
  | { type: "usage"; usage: Usage; timings?: Record<string, unknown> };

/** Token counts as OpenAI names them; details that a server adds are kept. */
export interface Usage {
  prompt_tokens?: number;
  completion_tokens?: number;
  total_tokens?: number;
  [more: string]: unknown;
}

/** One part of a message that is no plain string, in OpenAI's form: `text`, `image_url` and what servers add. */
export interface ContentPart {
  type: string;
  [more: string]: unknown;
}

/** One message as it goes upstream, in OpenAI's form. */
export interface ChatMessage {
  role: string;
  content: string | ContentPart[];
  [more: string]: unknown;
}

/** What is asked of a model. */
export interface ChatCall {
  model: string;
  messages: ChatMessage[];
  /** Sampler fields under their wire names, passed through; `undefined` and `null` are not sent. */
  params: Record<string, unknown>;
}

/** One choice of an OpenAI-shaped answer. */
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

/** The single OpenAI-shaped object that answers a call without streaming. */
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
