/** API calls for the library. Loaded with the screens that use them. */
import type { PageJson } from "../../../routes/schemas/common.ts";
import type { ApiClient } from "./client.ts";
import type { ChatFiles, LibraryDocument } from "./types.ts";

/** Largest page that the server sends. */
const MAX_PAGE = 200;

/** All calls throw `ApiError`. */
export interface LibraryApi {
  /** Lists documents, newest first. @param count Number of documents to read; there may be fewer. */
  listDocuments(options: { words: string; count: number }): Promise<{ items: LibraryDocument[]; hasMore: boolean }>;
  renameDocument(id: string, name: string): Promise<void>;
  deleteDocument(id: string, options: { keepalive: boolean }): Promise<void>;
  listChatFiles(chatId: string): Promise<ChatFiles>;
}

/** Returns the calls, bound to a client. */
export function libraryApi(client: ApiClient): LibraryApi {
  const documentPath = (id: string) => `/api/documents/${encodeURIComponent(id)}`;
  return {
    async listDocuments({ words, count }) {
      const items: LibraryDocument[] = [];
      let cursor: string | null = null;
      do {
        const query = new URLSearchParams({ limit: String(Math.min(MAX_PAGE, count - items.length)) });
        if (words.trim() !== "") query.set("q", words.trim());
        if (cursor !== null) query.set("cursor", cursor);
        const response = await client.send("GET", `/api/library/documents?${query}`);
        const page = await response.json() as PageJson<LibraryDocument>;
        items.push(...page.items);
        cursor = page.next_cursor;
      } while (cursor !== null && items.length < count);
      return { items, hasMore: cursor !== null };
    },
    async renameDocument(id, name) {
      await (await client.send("PATCH", documentPath(id), { body: { name } })).body?.cancel();
    },
    async deleteDocument(id, options) {
      await (await client.send("DELETE", documentPath(id), options)).body?.cancel();
    },
    listChatFiles: async (chatId) =>
      await (await client.send("GET", `/api/conversations/${encodeURIComponent(chatId)}/files`)).json(),
  };
}
