/** The protocol-independent form of chat calls and replies: OpenAI's, which the other protocols are translated to and from. */

/**
 * One step of a reply, in order of arrival.
 *
 * `finish` comes at most once; only `usage` can follow it. `usage` holds running totals: a later one replaces an earlier one.
 * `tool_calls` carries fragments of OpenAI's `delta.tool_calls`, merged by their `index` (tool_calls.ts).
 * `reasoning_details` carries blocks of reasoning as the server wants them back beside the results of tools, in OpenRouter's form
 * (reasoning.ts). Their text has come as `reasoning`.
 */
export type ChatEvent =
  | { type: "text"; text: string }
  | { type: "reasoning"; text: string }
  | { type: "tool_calls"; delta: unknown[] }
  | { type: "reasoning_details"; details: unknown[] }
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
  /** `null` in an assistant message that only has tool calls. */
  content: string | ContentPart[] | null;
  [more: string]: unknown;
}

/** A chat request. */
export interface ChatCall {
  model: string;
  messages: ChatMessage[];
  /** Sampler fields under our names, and fields for the server. `undefined` and `null` are not sent. */
  params: Record<string, unknown>;
  /** Fields for the server that are sent as they are, unless `params` has them: the extra body of the preset. */
  extraBody?: Record<string, unknown>;
  /** Tokens that prompt and answer need, if the caller counted them. Ollama is asked for a context that holds them. */
  neededTokens?: number;
  /** Messages at the start that will be the same in the next call of the conversation. Default: all. */
  stableMessages?: number;
}

/** What a server does before it answers. */
export interface ChatNotice {
  code: "model_reload";
  message: string;
  /** Tokens of the new context. */
  contextSize: number;
}

/** One choice of a chat completion. */
export interface CompletionChoice {
  index: number;
  message: {
    role: string;
    content: string | null;
    reasoning_content?: string;
    /** With tool calls only: what has to go back to the server with their results. */
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
