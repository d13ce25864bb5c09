/** Parses model lists in the shapes that servers send (docs/protocols/llm.md#model-list). */
import type { ListedModel, ModelList } from "../provider.ts";

/**
 * Reads a list: an object with `data` (null is an empty list at Ollama), or a bare array.
 *
 * Entries without an id and repeated ids are dropped; the order stays, since `created` means nothing at most servers.
 *
 * @returns `undefined` when the value is no list of models.
 */
export function parseModelList(value: unknown): ModelList | undefined {
  const entries = entriesOf(value);
  if (entries === undefined) return undefined;
  const seen = new Set<string>();
  const data: ListedModel[] = [];
  for (const entry of entries as ({ id?: unknown } | null)[]) {
    if (typeof entry !== "object" || typeof entry?.id !== "string" || entry.id === "" || seen.has(entry.id)) continue;
    seen.add(entry.id);
    data.push(entry as ListedModel);
  }
  return { object: "list", data };
}

function entriesOf(value: unknown): unknown[] | undefined {
  if (Array.isArray(value)) return value;
  if (typeof value !== "object" || value === null || !("data" in value)) return undefined;
  if (value.data === null) return [];
  return Array.isArray(value.data) ? value.data : undefined;
}
