/** `/api/attachments`: images and recordings in messages. */
import type { Services } from "../services/services.ts";
import { formatEtag, parsePrecondition } from "./http/etag.ts";
import { toRangedResponse } from "./http/file_response.ts";
import { checkAttachmentType } from "./http/form.ts";
import { openResponseStream, passRawResponse } from "./http/raw_response.ts";
import { createRouter } from "./http/router.ts";
import * as schema from "./schemas/attachments.ts";
import { toVersionJson } from "./schemas/versions.ts";

/** Routes of attachments. */
export function attachmentRoutes(services: Services) {
  return createRouter()
    .openapi(schema.putRoute, async (c) => {
      const attachments = await services.attachments();
      checkAttachmentType(c);
      const { name } = c.req.valid("param");
      const body: AsyncIterable<Uint8Array> = c.req.raw.body ?? ReadableStream.from([]);
      const { attachment, isNew } = await attachments.put(name, body, parsePrecondition(c.req.valid("header")));
      c.header("ETag", formatEtag(attachment.version));
      return c.json(schema.toAttachmentJson(attachment), isNew ? 201 : 200);
    })
    .openapi(schema.getRoute, async (c) => {
      const attachments = await services.attachments();
      const { attachment, read } = attachments.open(c.req.valid("param").name);
      const { name, type, sizeBytes, version } = attachment;
      // Every response has a sandbox policy, nosniff and CORP; see middleware/security_headers.ts.
      const { status, headers, part } = toRangedResponse({
        sizeBytes,
        version: String(version),
        asked: c.req.valid("header"),
        headers: { "Content-Type": type, "Content-Disposition": `attachment; filename="${name}"` },
      });
      return passRawResponse(new Response(await openResponseStream(c, read(part)), { status, headers }));
    })
    .openapi(schema.versionsRoute, async (c) => {
      const attachments = await services.attachments();
      return c.json((await attachments.listVersions(c.req.valid("param").name)).map(toVersionJson), 200);
    })
    .openapi(schema.restoreVersionRoute, async (c) => {
      const attachments = await services.attachments();
      const { name, n } = c.req.valid("param");
      const attachment = await attachments.restoreVersion(name, n, parsePrecondition(c.req.valid("header")));
      c.header("ETag", formatEtag(attachment.version));
      return c.json(schema.toAttachmentJson(attachment), 200);
    })
    .openapi(schema.deleteRoute, async (c) => {
      const attachments = await services.attachments();
      await attachments.remove(c.req.valid("param").name, parsePrecondition(c.req.valid("header")));
      return c.body(null, 204);
    });
}
