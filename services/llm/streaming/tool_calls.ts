/** Reads the tool calls of a reply from the fragments that servers send (docs/protocols/llm.md, "Tool calls"). */
import { isJsonObject, isNonEmptyString } from "../../json/type_guards.ts";

/** One tool call, as far as it was received. */
export interface ToolCall {
  index: number;
  id?: string;
  type: string;
  function: { name: string; arguments: string };
  /** Data that the server requires back with the call, such as Gemini's `thought_signature`. */
  extra_content?: Record<string, unknown>;
}

/** Maximum number of calls, far above any real reply. A hostile server must not fill the memory. */
const MAX_CALLS = 1_000;

/** Collects the tool calls of one reply from the fragments of a ToolCallReader: merged by `index`, arguments joined. */
export class ToolCalls {
  readonly #calls = new Map<number, ToolCall>();

  /** Adds the fragments of one event. Skips anything that isn't one. */
  add(fragments: readonly unknown[]): void {
    for (const fragment of fragments) if (isJsonObject(fragment)) this.#addFragment(fragment);
  }

  get isEmpty(): boolean {
    return this.#calls.size === 0;
  }

  /** Returns a copy of the calls, by index. */
  all(): ToolCall[] {
    const calls = [...this.#calls.values()].sort((a, b) => a.index - b.index);
    return calls.map((call) => ({ ...call, function: { ...call.function } }));
  }

  #addFragment(fragment: Record<string, unknown>): void {
    const index = fragment.index ?? Math.max(-1, ...this.#calls.keys()) + 1;
    if (typeof index !== "number" || !Number.isInteger(index) || index < 0 || index >= MAX_CALLS) return;
    let call = this.#calls.get(index);
    if (call === undefined) {
      this.#calls.set(index, call = { index, type: "function", function: { name: "", arguments: "" } });
    }
    if (isNonEmptyString(fragment.id)) call.id = fragment.id;
    if (isJsonObject(fragment.extra_content)) call.extra_content = fragment.extra_content;
    if (!isJsonObject(fragment.function)) return;
    const { name, arguments: text } = fragment.function;
    if (isNonEmptyString(name)) call.function.name = name;
    if (typeof text === "string") call.function.arguments += text;
  }
}

/** A fragment of a call, in OpenAI's format. `index` is the number of the call in the reply. */
export interface ToolCallFragment {
  index: number;
  id?: string;
  type?: "function";
  function: { name?: string; arguments?: string };
  extra_content?: Record<string, unknown>;
}

/** A call that has begun. */
interface OpenCall {
  index: number;
  /** The server's own index. */
  key: number | undefined;
  id: string | undefined;
  name: string;
  arguments: string;
}

/** What one fragment says. */
interface Fragment {
  key: number | undefined;
  id: string | undefined;
  name: string | undefined;
  arguments: string;
  extra: Record<string, unknown> | undefined;
}

/**
 * Decides which call each fragment belongs to, and numbers the calls in order of arrival.
 *
 * The index alone isn't enough: some servers give every call the index 0, others none, or one that grows with each
 * fragment of a call. So an unknown ID begins a call, and so does a name after complete arguments.
 */
export class ToolCallReader {
  readonly #calls: OpenCall[] = [];

  /** Returns the fragments of one event with correct indexes and arguments as text. Skips anything that isn't one. */
  read(fragments: readonly unknown[]): ToolCallFragment[] {
    return fragments.flatMap((value): ToolCallFragment[] => {
      const fragment = parseFragment(value);
      if (fragment === undefined) return [];
      const known = this.#find(fragment);
      if (known !== undefined) return this.#continue(known, fragment);
      return this.#begin(fragment);
    });
  }

  /** Finds the call that a fragment continues. */
  #find(fragment: Fragment): OpenCall | undefined {
    const { key, id } = fragment;
    const sameId = id === undefined ? undefined : this.#calls.findLast((call) => call.id === id);
    if (sameId !== undefined) return beginsAnother(sameId, fragment) ? undefined : sameId;
    const sameKey = key === undefined ? undefined : this.#calls.findLast((call) => call.key === key);
    const call = sameKey ?? (key === undefined || fragment.name === undefined ? this.#calls.at(-1) : undefined);
    if (call === undefined) return this.#findRepeated(fragment);
    const hasOtherId = id !== undefined && call.id !== undefined;
    if (!hasOtherId) return beginsAnother(call, fragment) ? undefined : call;
    // Older vLLM: a new ID with each fragment, the name only in the first.
    const isRest = fragment.name === undefined && (fragment.arguments.trim() === "" || !isComplete(call.arguments));
    return sameKey !== undefined && isRest ? call : undefined;
  }

  /** Finds the last call if a fragment repeats its name under another index, in the middle of its arguments. */
  #findRepeated({ id, name, arguments: text }: Fragment): OpenCall | undefined {
    const last = this.#calls.at(-1);
    const isMiddle = last !== undefined && last.arguments !== "" && text !== "" && !text.trimStart().startsWith("{");
    return isMiddle && id === undefined && last.name === name && !isComplete(last.arguments) ? last : undefined;
  }

  #begin({ key, id, name, arguments: text, extra }: Fragment): ToolCallFragment[] {
    const index = this.#calls.length;
    if (index >= MAX_CALLS || (id === undefined && name === undefined && text.trim() === "")) return [];
    this.#calls.push({ index, key, id, name: name ?? "", arguments: text });
    return [toFragment(index, { id, name, text, extra, isFirst: true })];
  }

  #continue(call: OpenCall, { id, name, arguments: text, extra }: Fragment): ToolCallFragment[] {
    const isNewId = call.id === undefined && id !== undefined;
    const isNewName = call.name === "" && name !== undefined;
    if (isNewId) call.id = id;
    if (isNewName) call.name = name;
    // Some servers repeat the whole call at its end.
    const isRepeated = text !== "" && text === call.arguments && isComplete(text);
    const rest = isRepeated ? "" : text;
    call.arguments += rest;
    if (rest === "" && !isNewId && !isNewName && extra === undefined) return [];
    return [
      toFragment(call.index, { id: isNewId ? id : undefined, name: isNewName ? name : undefined, text: rest, extra }),
    ];
  }
}

/** Reports whether a fragment under the ID or index of a call is the start of another one. */
function beginsAnother(call: OpenCall, { key, id, name, arguments: text }: Fragment): boolean {
  if (name === undefined || call.name === "") return false;
  const isSame = name === call.name && (key === call.key || key === undefined);
  if (isSame && (text.trim() === "" || text === call.arguments)) return false;
  if (call.arguments.trim() === "") {
    return name !== call.name && (id === undefined ? call.id === undefined : id !== call.id);
  }
  return (name !== call.name || text.trimStart().startsWith("{")) && isComplete(call.arguments);
}

/** Reports whether arguments are a complete JSON object. */
function isComplete(text: string): boolean {
  if (!text.trimEnd().endsWith("}")) return false;
  try {
    return isJsonObject(JSON.parse(text));
  } catch {
    return false;
  }
}

function parseFragment(value: unknown): Fragment | undefined {
  if (!isJsonObject(value)) return undefined;
  // Some servers send name and arguments without `function`.
  const named = isJsonObject(value.function) ? value.function : value;
  const { arguments: text } = named;
  return {
    key: parseIndex(value.index),
    id: isNonEmptyString(value.id) ? value.id : undefined,
    // Older LM Studio repeats an empty name.
    name: isNonEmptyString(named.name) ? named.name : undefined,
    arguments: typeof text === "string" ? text : isJsonObject(text) ? JSON.stringify(text) : "",
    extra: isJsonObject(value.extra_content) ? value.extra_content : undefined,
  };
}

function parseIndex(value: unknown): number | undefined {
  const index = typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
  return typeof index === "number" && Number.isInteger(index) ? index : undefined;
}

function toFragment(
  index: number,
  { id, name, text, extra, isFirst = false }: {
    id?: string;
    name?: string;
    text: string;
    extra?: Record<string, unknown>;
    isFirst?: boolean;
  },
): ToolCallFragment {
  return {
    index,
    ...(id !== undefined && { id }),
    ...(isFirst && { type: "function" }),
    function: { ...(name !== undefined && { name }), ...((isFirst || text !== "") && { arguments: text }) },
    ...(extra !== undefined && { extra_content: extra }),
  };
}
