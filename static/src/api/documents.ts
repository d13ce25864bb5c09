/** API calls for documents with versions: lorebooks and presets; and changes of prompt templates. */
import { type ApiClient, ApiError, type RequestOptions, toStrongTag } from "./client.ts";
import type {
  Lorebook,
  LorebookItem,
  LorebookTest,
  LorebookTestRequest,
  Preset,
  PresetItem,
  PromptTemplate,
  Settings,
} from "./types.ts";

/** A document with its version. */
export interface VersionedDocument<Whole> {
  document: Whole;
  /** The ETag, for `If-Match`. */
  version: string;
}

/** API calls for one kind of document. All calls throw `ApiError`. */
export interface DocumentApi<Item, Whole> {
  list(): Promise<Item[]>;
  read(id: string): Promise<VersionedDocument<Whole>>;
  /** Saves or creates a document. With a version, the server refuses (412) if the stored version differs. */
  save(id: string, fields: object, version?: string): Promise<VersionedDocument<Whole>>;
  /** Moves the document to the trash. */
  remove(id: string, options?: RequestOptions): Promise<void>;
  import(file: File): Promise<Whole>;
  /** Returns the URL of the exported file. */
  exportPath(id: string, format?: string): string;
}

/** Returns the calls, bound to a client. @param path Path of the list, such as `/api/lorebooks`. */
function documentApi<Item, Whole extends Item>(client: ApiClient, path: string): DocumentApi<Item, Whole> {
  const one = (id: string) => `${path}/${encodeURIComponent(id)}`;
  async function read(method: string, id: string, options?: RequestOptions): Promise<VersionedDocument<Whole>> {
    const response = await client.send(method, one(id), options);
    return { document: await response.json() as Whole, version: toStrongTag(response.headers.get("etag")) };
  }
  return {
    list: async () => await (await client.send("GET", path)).json() as Item[],
    read: (id) => read("GET", id),
    save: (id, fields, version) =>
      read("PUT", id, { body: fields, headers: version ? { "if-match": version } : undefined }),
    async remove(id, options) {
      await (await client.send("DELETE", one(id), options)).body?.cancel();
    },
    async import(file) {
      const form = new FormData();
      form.set("file", file);
      return await (await client.send("POST", `${path}/import`, { form })).json() as Whole;
    },
    exportPath: (id, format) => `${one(id)}/export${format === undefined ? "" : `?format=${format}`}`,
  };
}

/** The fields of a lorebook that the editor changes. */
export type LorebookDraft = Pick<Lorebook, "name" | "enabled" | "scope" | "character_ids" | "persona_ids" | "book">;

/** API calls for lorebooks. */
export interface LorebookApi extends DocumentApi<LorebookItem, Lorebook> {
  try(request: LorebookTestRequest, signal: AbortSignal): Promise<LorebookTest>;
}

/** Returns the calls, bound to a client. */
export function lorebookApi(client: ApiClient): LorebookApi {
  return {
    ...documentApi<LorebookItem, Lorebook>(client, "/api/lorebooks"),
    try: async (request, signal) =>
      await (await client.send("POST", "/api/lorebooks/test", { body: request, signal })).json() as LorebookTest,
  };
}

/** The fields of a preset that the editor changes. */
export type PresetDraft =
  & Pick<Preset, "name" | "models" | "sampler" | "prompts" | "prompt_order" | "rest" | "dialect">
  & { extra_body?: Preset["extra_body"] | null };

/** Id of the built-in preset. */
export const BUILTIN_PRESET_ID = "default";

/** API calls for presets. */
export type PresetApi = DocumentApi<PresetItem, Preset>;

/** Returns the calls, bound to a client. */
export function presetApi(client: ApiClient): PresetApi {
  return documentApi<PresetItem, Preset>(client, "/api/presets");
}

const ATTEMPTS = 3;

/**
 * Changes the list of templates. Another device may change it at the same time, so each attempt starts with the stored list.
 *
 * @throws {ApiError} `revision_mismatch` if it changed before each attempt; `invalid_request`
 */
export async function changeTemplates(
  client: ApiClient,
  edit: (templates: readonly PromptTemplate[]) => PromptTemplate[],
): Promise<void> {
  for (let attempt = 1;; attempt++) {
    const read = await client.send("GET", "/api/settings");
    const etag = read.headers.get("etag");
    const { prompt_templates: templates }: Settings = await read.json();
    try {
      const body = { prompt_templates: edit(templates) };
      const written = await client.send("PATCH", "/api/settings", { body, headers: { "if-match": toStrongTag(etag) } });
      await written.body?.cancel();
      return;
    } catch (thrown) {
      const isStale = thrown instanceof ApiError && thrown.code === "revision_mismatch";
      if (!isStale || attempt === ATTEMPTS) throw thrown;
    }
  }
}

const QUICK_REPLY_SETS = "/api/settings/quick_reply_sets";

/** Lists the names of the sets of quick replies that the templates become in SillyTavern. @throws {ApiError} */
export async function listQuickReplySets(client: ApiClient): Promise<string[]> {
  const sets: { name: string }[] = await (await client.send("GET", QUICK_REPLY_SETS)).json();
  return sets.map(({ name }) => name);
}

/** Returns the path of a set's file. */
export function quickReplySetPath(name: string): string {
  return `${QUICK_REPLY_SETS}/export?set=${encodeURIComponent(name)}`;
}
