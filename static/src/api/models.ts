/** API calls for models on the hub, on disk and running. */
import type {
  HubModel,
  HubModelFiles,
  Job,
  LocalModel,
  ModelDownload,
  ModelFormat,
  ModelRunner,
  Page,
  RecommendedModels,
  RunModel,
} from "./types.ts";
import type { ApiClient } from "./client.ts";

/** API calls for models. All calls throw `ApiError`. */
export interface ModelApi {
  searchModels(query: string, format: ModelFormat, cursor?: string): Promise<Page<HubModel>>;
  listModelFiles(repo: string, format: ModelFormat): Promise<HubModelFiles>;
  startDownload(download: { repo: string; format: ModelFormat; file?: string }): Promise<ModelDownload>;
  /** Returns up to three models that fit the server's machine. */
  listRecommendedModels(): Promise<RecommendedModels>;
  listDownloads(): Promise<ModelDownload[]>;
  cancelDownload(id: string): Promise<ModelDownload>;
  listLocalModels(): Promise<LocalModel[]>;
  deleteLocalModel(path: string): Promise<void>;
  runModel(request: RunModel): Promise<ModelRunner>;
  stopModel(): Promise<ModelRunner>;
  /** @param path Includes the command that runs this model. */
  getRunner(path?: string): Promise<ModelRunner>;
}

/** Returns the calls, bound to a client. */
export function modelApi(client: ApiClient): ModelApi {
  async function json<T>(method: string, path: string, body?: unknown): Promise<T> {
    return await (await client.send(method, path, { body })).json() as T;
  }
  return {
    searchModels(query, format, cursor) {
      const parameters = new URLSearchParams({ q: query, format });
      if (cursor !== undefined) parameters.set("cursor", cursor);
      return json("GET", `/api/models/browse?${parameters}`);
    },
    listModelFiles: (repo, format) => json("GET", `/api/models/browse/files?${new URLSearchParams({ repo, format })}`),
    startDownload: (download) => json("POST", "/api/models/download", download),
    listRecommendedModels: () => json("GET", "/api/models/recommended"),
    listDownloads: () => json("GET", "/api/models/downloads"),
    cancelDownload: (id) => json("POST", `/api/models/downloads/${encodeURIComponent(id)}/cancel`, {}),
    listLocalModels: () => json("GET", "/api/models/local"),
    async deleteLocalModel(path) {
      const response = await client.send("DELETE", `/api/models/local?${new URLSearchParams({ path })}`);
      await response.body?.cancel();
    },
    runModel: (request) => json("POST", "/api/models/local/run", request),
    stopModel: () => json("POST", "/api/models/local/stop", {}),
    getRunner: (path) =>
      json("GET", `/api/models/local/runner${path === undefined ? "" : `?${new URLSearchParams({ path })}`}`),
  };
}

/** Starts a download, or returns the one that is under way. @throws {ApiError} */
export async function startModelPull(client: ApiClient, connectionId: string, model: string): Promise<Job> {
  const path = `/api/connections/${encodeURIComponent(connectionId)}/pull`;
  return await (await client.send("POST", path, { body: { model } })).json() as Job;
}
