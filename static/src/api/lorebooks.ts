/** The calls about lorebooks. */
import type { Lorebook, LorebookItem, LorebookTest, LorebookTestRequest } from "./types.ts";
import type { ApiClient } from "./client.ts";
import { type DocumentApi, documentApi } from "./documents.ts";

/** The fields of a lorebook that the editor changes. */
export type LorebookDraft = Pick<Lorebook, "name" | "enabled" | "scope" | "character_ids" | "persona_ids" | "book">;

/** Calls about lorebooks. */
export interface LorebookApi extends DocumentApi<LorebookItem, Lorebook> {
  try(request: LorebookTestRequest, signal: AbortSignal): Promise<LorebookTest>;
}

/** Binds the calls to one client. */
export function lorebookApi(client: ApiClient): LorebookApi {
  return {
    ...documentApi<LorebookItem, Lorebook>(client, "/api/lorebooks"),
    try: async (request, signal) =>
      await (await client.send("POST", "/api/lorebooks/test", { body: request, signal })).json() as LorebookTest,
  };
}
