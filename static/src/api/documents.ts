/** The calls about documents that are listed, versioned, and exchanged as files: lorebooks and presets. */
import { type ApiClient, type RequestOptions, strongTag } from "./client.ts";

/** A document with its version. */
export interface VersionedDocument<Whole> {
  document: Whole;
  /** The ETag, for `If-Match`. */
  version: string;
}

/** Calls about one kind of document. They throw `ApiError` as the client does. */
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

/** Binds the calls to one client. @param path Path of the list, such as `/api/lorebooks`. */
export function documentApi<Item, Whole extends Item>(client: ApiClient, path: string): DocumentApi<Item, Whole> {
  const one = (id: string) => `${path}/${encodeURIComponent(id)}`;
  async function read(method: string, id: string, options?: RequestOptions): Promise<VersionedDocument<Whole>> {
    const response = await client.send(method, one(id), options);
    return { document: await response.json() as Whole, version: strongTag(response.headers.get("etag")) };
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
