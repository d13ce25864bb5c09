/** Changes of the owner's prompt templates, which are one of the settings. */
import { type ApiClient, ApiError, strongTag } from "./client.ts";
import type { PromptTemplate, Settings } from "./types.ts";

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
      const written = await client.send("PATCH", "/api/settings", { body, headers: { "if-match": strongTag(etag) } });
      await written.body?.cancel();
      return;
    } catch (thrown) {
      const isStale = thrown instanceof ApiError && thrown.code === "revision_mismatch";
      if (!isStale || attempt === ATTEMPTS) throw thrown;
    }
  }
}
