/** `/api/library`: all documents with the chats that use them; and the files of one chat. */
import type { Services } from "../services/services.ts";
import { createAttachmentUrl } from "../services/attachments/attachment_rows.ts";
import { createRouter } from "./http/router.ts";
import { toDocumentJson } from "./schemas/documents.ts";
import * as schema from "./schemas/library.ts";

/** Routes of the library. */
export function libraryRoutes(services: Services) {
  return createRouter()
    .openapi(schema.libraryDocumentsRoute, async (c) => {
      const { documents } = await services.documents();
      const { files } = await services.conversations();
      const { cursor, limit, q: words, conversation_id: chat } = c.req.valid("query");
      await files.readUses();
      const isWanted = chat === undefined ? undefined : (id: string) => files.isUsedIn(chat, id);
      const { items, nextCursor } = await documents.listPage({ cursor, limit, words, isWanted });
      const listed = [];
      for (const document of items) {
        listed.push({ ...toDocumentJson(document), conversations: await files.listUses(document.id) });
      }
      return c.json({ items: listed, next_cursor: nextCursor ?? null }, 200);
    })
    .openapi(schema.chatFilesRoute, async (c) => {
      const { documents } = await services.documents();
      const { files } = await services.conversations();
      const found = await files.list(c.req.valid("param").id);
      return c.json({
        documents: found.documents.flatMap(({ id, messageId }) => {
          const document = documents.find(id);
          return document === undefined ? [] : [{ ...toDocumentJson(document), message_id: messageId ?? null }];
        }),
        images: found.images.map(({ name, widthPx, heightPx, createdAtMs, messageId }) => ({
          name,
          url: createAttachmentUrl(name),
          width: widthPx,
          height: heightPx,
          message_id: messageId,
          created_at: new Date(createdAtMs).toISOString(),
        })),
      }, 200);
    });
}
