/** The body of a call to an OpenAI-shaped server. */
import type { ChatCall } from "../chat_event.ts";
import type { UpstreamTarget } from "../provider.ts";

// Some servers stop at 400 or 512 tokens when nothing is said, others never; a long chat reply fits in this.
const DEFAULT_MAX_TOKENS = 2048;

/** Says which limit to send when the caller gave none: never more than half of a known context. */
export function defaultMaxTokens(target: UpstreamTarget): number {
  if (target.contextSize === undefined || target.contextSize < 2) return DEFAULT_MAX_TOKENS;
  return Math.min(DEFAULT_MAX_TOKENS, Math.floor(target.contextSize / 2));
}

/** Copies the sampler fields that are set; those that belong to the call itself are not the caller's to give. */
function setParams(params: Record<string, unknown>, ...reserved: string[]): Record<string, unknown> {
  const set: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && !reserved.includes(name)) set[name] = value;
  }
  return set;
}

/**
 * Builds the body.
 *
 * The token limit goes under one name only: OpenAI itself wants `max_completion_tokens` (its reasoning models refuse the
 * other), Ollama knows only `max_tokens`, the rest takes both.
 */
export function openAiBody(
  target: UpstreamTarget,
  call: ChatCall,
  options: { stream: boolean; includeUsage: boolean },
): Record<string, unknown> {
  const params = setParams(call.params, "model", "messages", "stream", "max_tokens", "max_completion_tokens");
  const limit = call.params.max_tokens ?? call.params.max_completion_tokens ?? defaultMaxTokens(target);
  if (!options.stream || !options.includeUsage) delete params.stream_options;
  else params.stream_options ??= { include_usage: true };
  return {
    model: call.model,
    messages: call.messages,
    ...params,
    [isOpenAiItself(target.baseUrl) ? "max_completion_tokens" : "max_tokens"]: limit,
    stream: options.stream,
  };
}

function isOpenAiItself(baseUrl: string): boolean {
  const host = new URL(baseUrl).hostname;
  return host === "api.openai.com" || host.endsWith(".openai.azure.com");
}
