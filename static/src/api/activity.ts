/** The calls about all conversations together, the trash, and what runs. */
import type { Job, Page, SearchHit, TrashItem } from "./types.ts";
import type { ApiClient, RequestOptions } from "./client.ts";

/** Calls that belong to no single screen. Every one throws `ApiError` as the client does. */
export interface HouseApi {
  /** Finds messages and titles in all conversations; a page may be short and still have a next one. */
  search(query: string, cursor: string | undefined, signal: AbortSignal): Promise<Page<SearchHit>>;
  listTrash(): Promise<TrashItem[]>;
  emptyTrash(): Promise<void>;
  /** Of the detail of each only what is no list and no object. */
  listJobs(): Promise<Job[]>;
  /** With its whole detail. */
  readJob(id: string): Promise<Job>;
  /** Gives the job once it has cleaned up. */
  cancelJob(id: string): Promise<Job>;
}

/** Binds the calls to one client. */
export function houseApi(client: ApiClient): HouseApi {
  async function json<T>(method: string, path: string, options?: RequestOptions): Promise<T> {
    const response = await client.send(method, path, options);
    return await response.json() as T;
  }
  async function done(method: string, path: string, options?: RequestOptions): Promise<void> {
    const response = await client.send(method, path, options);
    await response.body?.cancel();
  }
  return {
    search(query, cursor, signal) {
      const params = new URLSearchParams({ q: query });
      if (cursor !== undefined) params.set("cursor", cursor);
      return json("GET", `/api/search?${params}`, { signal });
    },
    listTrash: () => json("GET", "/api/trash"),
    emptyTrash: () => done("DELETE", "/api/trash"),
    listJobs: () => json("GET", "/api/jobs"),
    readJob: (id) => json("GET", `/api/jobs/${encodeURIComponent(id)}`),
    cancelJob: (id) => json("POST", `/api/jobs/${encodeURIComponent(id)}/cancel`, { body: {} }),
  };
}
