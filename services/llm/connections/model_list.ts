/** Model lists in the forms servers return (docs/protocols/llm.md, "Model list"). */
import { readText } from "../../http/read_body.ts";
import { isJsonObject } from "../../json/type_guards.ts";
import type { ModelCall } from "../model_call.ts";
import type { ListedModel, ModelList } from "../provider.ts";
import { parseResponse } from "../streaming/response_body.ts";

// OpenRouter lists hundreds of models with prices and descriptions.
const MAX_LIST_BYTES = 16 * 1024 * 1024;

/**
 * Reads the response to a request for models.
 *
 * @returns The list, and the JSON it came from.
 * @throws {UpstreamError} what the server reported, or `bad_answer`
 */
export async function readModelList(call: ModelCall, response: Response): Promise<{ list: ModelList; value: unknown }> {
  if (!response.ok) throw await call.readError(response);
  const value = parseResponse(call, await readText(response, MAX_LIST_BYTES));
  const list = parseModelList(value);
  if (list !== undefined) return { list, value };
  if (isJsonObject(value) && "error" in value) throw call.createReportedError(value);
  throw call.createError("bad_answer", "returned JSON that isn't a list of models");
}

/**
 * Parses a list: an object with `data` (`null` is Ollama's empty list), or a bare array.
 *
 * Entries without an id and duplicates are dropped. The order stays, because `created` is meaningless at most servers.
 *
 * @returns undefined if the value isn't a list of models
 */
export function parseModelList(value: unknown): ModelList | undefined {
  const entries = findEntries(value);
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

function findEntries(value: unknown): unknown[] | undefined {
  if (Array.isArray(value)) return value;
  if (!isJsonObject(value) || !("data" in value)) return undefined;
  if (value.data === null) return [];
  return Array.isArray(value.data) ? value.data : undefined;
}
