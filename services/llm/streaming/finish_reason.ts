/** The reasons why a model stopped, under OpenAI's names (docs/protocols/llm.md, "End of a stream"). */

/** Other servers' reasons, in lower case with underscores. */
const NAMES = new Map<string, string>([
  ...["end_turn", "stop_sequence", "eos", "eos_token", "end", "complete", "completed", "finished"].map((name) =>
    [name, "stop"] as const
  ),
  // `pause_turn` pauses server-side tools, which Parlor doesn't use.
  ["pause_turn", "stop"],
  ...["max_tokens", "max_output_tokens", "max_completion_tokens", "max_length", "model_length", "token_limit"].map((
    name,
  ) => [name, "length"] as const),
  ["model_context_window_exceeded", "length"],
  ["context_length_exceeded", "length"],
  ...["tool_use", "tool_call", "function_call"].map((name) => [name, "tool_calls"] as const),
  ...["refusal", "safety", "blocklist", "prohibited_content", "spii", "recitation", "image_safety", "blocked"].map((
    name,
  ) => [name, "content_filter"] as const),
  ...["content_filtered", "guardrail_intervened", "sensitive", "moderation"].map((name) =>
    [name, "content_filter"] as const
  ),
  ...["", "null", "none", "undefined", "unspecified"].map((name) => [name, ""] as const),
]);
/** Reasons that are already OpenAI's. */
const OWN = new Set(["stop", "length", "tool_calls", "content_filter", "error"]);

/**
 * Returns a server's reason under OpenAI's name: `"length"` for `"MAX_TOKENS"`. An unknown reason stays as it is.
 *
 * @returns `undefined` if the value isn't a reason: `null`, `""`, `"null"`.
 */
export function parseFinishReason(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  const name = value.trim().toLowerCase().replaceAll(/[\s-]/g, "_").replace(/^finish_reason_/, "");
  // Gemini adds its own reason: `content_filter: PROHIBITED_CONTENT`.
  if (/^content_filter\b/.test(name)) return "content_filter";
  if (OWN.has(name)) return name;
  return (NAMES.get(name) ?? value.trim()) || undefined;
}
