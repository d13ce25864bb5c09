/** API calls for notes, proposals of notes, and passages of other chats. */
import type { ApiClient, RequestOptions } from "./client.ts";
import { toStrongTag } from "./client.ts";
import type { Memory, MemoryInput, MemoryProposal, MemoryScope, MemoryVersion, SearchHit } from "./types.ts";

/** API calls for notes. All calls throw `ApiError`. */
export interface MemoryApi {
  list(): Promise<Memory[]>;
  /** Returns a note with its version for `save`. */
  read(id: string): Promise<{ note: Memory; version: string }>;
  /** Creates or changes a note. With a version, the server refuses (412) if the stored one differs. */
  save(id: string, input: MemoryInput, version?: string): Promise<Memory>;
  remove(id: string, options?: RequestOptions): Promise<void>;
  listVersions(id: string): Promise<MemoryVersion[]>;
  restoreVersion(id: string, n: number): Promise<Memory>;
  listProposals(): Promise<MemoryProposal[]>;
  decide(id: string, body: { decision: "accept" | "dismiss"; text?: string; scope?: MemoryScope }): Promise<void>;
  /** Finds passages of other chats about a question. */
  recall(query: string, conversationId: string, signal: AbortSignal): Promise<SearchHit[]>;
}

/** Returns the calls, bound to a client. */
export function memoryApi(client: ApiClient): MemoryApi {
  const one = (id: string) => `/api/memories/${encodeURIComponent(id)}`;
  const json = async <T>(method: string, path: string, options?: RequestOptions) =>
    await (await client.send(method, path, options)).json() as T;
  return {
    list: () => json("GET", "/api/memories"),
    async read(id) {
      const response = await client.send("GET", one(id));
      return { note: await response.json(), version: toStrongTag(response.headers.get("etag")) };
    },
    save: (id, body, version) => json("PUT", one(id), { body, headers: version ? { "if-match": version } : undefined }),
    async remove(id, options) {
      await (await client.send("DELETE", one(id), options)).body?.cancel();
    },
    listVersions: (id) => json("GET", `${one(id)}/versions`),
    restoreVersion: (id, n) => json("POST", `${one(id)}/versions/${n}/restore`, { body: {} }),
    listProposals: () => json("GET", "/api/memories/proposals"),
    async decide(id, body) {
      await (await client.send("POST", `/api/memories/proposals/${encodeURIComponent(id)}`, { body })).body?.cancel();
    },
    async recall(query, conversationId, signal) {
      const params = new URLSearchParams({ q: query, conversation_id: conversationId });
      return (await json<{ items: SearchHit[] }>("GET", `/api/recall?${params}`, { signal })).items;
    },
  };
}
