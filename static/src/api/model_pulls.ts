/** Downloads of models by Ollama servers. */
import type { ApiClient } from "./client.ts";
import type { Job } from "./types.ts";

/** Starts a download, or returns the one that is under way. @throws {ApiError} */
export async function startModelPull(client: ApiClient, connectionId: string, model: string): Promise<Job> {
  const path = `/api/connections/${encodeURIComponent(connectionId)}/pull`;
  return await (await client.send("POST", path, { body: { model } })).json() as Job;
}
