/** Puts the fragments of streamed tool calls together. */

interface ToolCall {
  index?: number;
  id?: string;
  type?: string;
  function?: { name?: string; arguments?: string };
}

/**
 * Adds one delta to the calls gathered so far: merged by `index`, argument fragments joined, empty names ignored.
 *
 * @see OpenAI API, "Streaming tool calls"; protocol notes: some servers repeat an empty name in later fragments.
 */
export function mergeToolCalls(calls: readonly unknown[], delta: readonly unknown[]): unknown[] {
  const merged = calls.map((call) => structuredClone(call) as ToolCall);
  for (const fragment of delta as ToolCall[]) {
    if (typeof fragment !== "object" || fragment === null) continue;
    const index = fragment.index ?? merged.length;
    let call = merged.find((candidate) => candidate.index === index);
    if (call === undefined) merged.push(call = { index, type: "function", function: { name: "", arguments: "" } });
    if (fragment.id) call.id = fragment.id;
    if (fragment.function?.name) call.function!.name = fragment.function.name;
    call.function!.arguments += fragment.function?.arguments ?? "";
  }
  return merged;
}
