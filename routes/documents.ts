/** `/api/documents`: files and links whose text can be sent to models. */
import type { Services } from "../services/services.ts";
import { type AppContext, getClientSignal } from "../middleware/env.ts";
import { AppError } from "../services/errors.ts";
import { type PageUnit, parsePages, type StoredDocument } from "../services/documents/document.ts";
import { HashedStream, hashJson } from "../services/storage/idempotency.ts";
import { formatEtag, parsePrecondition } from "./http/etag.ts";
import { readStreamedUpload } from "./http/form.ts";
import { formatAttachmentHeader, toRangedResponse } from "./http/file_response.ts";
import { createRouter, createSchemaError } from "./http/router.ts";
import * as schema from "./schemas/documents.ts";
import { toJobJson } from "./schemas/jobs.ts";
import { openResponseStream, passRawResponse } from "./http/raw_response.ts";

/** Policy for the original file: browsers may only save it. */
const SAVE_ONLY = { "Content-Security-Policy": "sandbox; default-src 'none'", "X-Content-Type-Options": "nosniff" };

/** Routes of documents. */
export function documentRoutes(services: Services) {
  return createRouter()
    .openapi(schema.addRoute, async (c) => {
      const { documents } = await services.documents();
      const isForm = /^multipart\/form-data\b/i.test(c.req.header("content-type") ?? "");
      const languages = parseLanguages(c.req.header("accept-language"));
      const id = await services.idempotency.run({
        kind: "document",
        key: c.req.valid("header")["idempotency-key"],
        id: c.req.valid("query").id,
        exists: (id) => documents.find(id) !== undefined,
        async make(id) {
          let fingerprint: string;
          let jobId: string;
          if (isForm) {
            [fingerprint, jobId] = await readStreamedUpload(c, async (file, getName) => {
              const content = new HashedStream(file);
              const added = await documents.add({ id, content: content.read(), getName, languages });
              return [content.digest(), added.jobId] as const;
            });
          } else {
            const link = await readLink(c);
            fingerprint = hashJson(link);
            ({ jobId } = await documents.addLink(link, { id, languages }));
          }
          c.header("X-Parlor-Job-Id", jobId);
          return fingerprint;
        },
        readFingerprint: async () =>
          isForm ? await readStreamedUpload(c, (file) => new HashedStream(file).drain()) : hashJson(await readLink(c)),
      });
      const document = documents.get(id);
      c.header("ETag", formatEtag(document.updatedAtMs));
      return passRawResponse(c.json(schema.toDocumentJson(document), 201));
    })
    .openapi(schema.listRoute, async (c) => {
      const { documents } = await services.documents();
      return c.json(documents.list().map(schema.toDocumentJson), 200);
    })
    .openapi(schema.getRoute, async (c) => {
      const { documents } = await services.documents();
      const document = documents.get(c.req.valid("param").id);
      c.header("ETag", formatEtag(document.updatedAtMs));
      return c.json(schema.toDocumentJson(document), 200);
    })
    .openapi(schema.renameRoute, async (c) => {
      const { documents } = await services.documents();
      const expected = parsePrecondition(c.req.valid("header"));
      const document = await documents.rename(c.req.valid("param").id, c.req.valid("json").name, expected);
      c.header("ETag", formatEtag(document.updatedAtMs));
      return c.json(schema.toDocumentJson(document), 200);
    })
    .openapi(schema.textRoute, async (c) => {
      const { documents } = await services.documents();
      const { pages } = c.req.valid("query");
      const ranges = pages === undefined ? undefined : parsePages(pages);
      const { id, unit } = documents.get(c.req.valid("param").id);
      const found = documents.readPages(id, ranges);
      return passRawResponse(
        c.body(await openResponseStream(c, toTextJson(unit, found)), 200, { "Content-Type": "application/json" }),
      );
    })
    .openapi(schema.pageImageRoute, async (c) => {
      const { documents } = await services.documents();
      const { id, page } = c.req.valid("param");
      const jpeg = await documents.readPageImage(id, page, getClientSignal(c));
      return passRawResponse(new Response(jpeg, { headers: { "Content-Type": "image/jpeg", ...SAVE_ONLY } }));
    })
    .openapi(schema.fileRoute, async (c) => {
      const { documents } = await services.documents();
      const document = documents.get(c.req.valid("param").id);
      const { id, name, sizeBytes, createdAtMs } = document;
      if (sizeBytes === 0 && document.url !== undefined) {
        throw new AppError("not_found", `Can't download "${name}": it is a link, and links have no file`);
      }
      const { status, headers, part } = toRangedResponse({
        sizeBytes,
        version: `${id}-${createdAtMs}`,
        asked: c.req.valid("header"),
        headers: {
          "Content-Type": toSafeType(document),
          "Content-Disposition": formatAttachmentHeader(name),
          ...SAVE_ONLY,
        },
      });
      const content = documents.readOriginal(id, part);
      return passRawResponse(new Response(await openResponseStream(c, content), { status, headers }));
    })
    .openapi(schema.readAgainRoute, async (c) => {
      const { documents } = await services.documents();
      const { encoding } = c.req.valid("json");
      return c.json(toJobJson(await documents.readAgain(c.req.valid("param").id, encoding)), 202);
    })
    .openapi(schema.deleteRoute, async (c) => {
      const { documents } = await services.documents();
      await documents.remove(c.req.valid("param").id);
      return c.body(null, 204);
    });
}

/** Maximum number of languages. Browsers send a few. */
const MAX_LANGUAGES = 5;

/** Returns the languages of an `Accept-Language` header. */
function parseLanguages(header = ""): string[] {
  const tags = header.split(",").map((part) => part.split(";")[0]!.trim());
  return tags.filter((tag) => /^[a-z]{2,3}(-[a-z\d]{1,8})*$/i.test(tag)).slice(0, MAX_LANGUAGES);
}

/** Returns the content type to serve. HTML is never served as HTML, because strangers wrote it. */
function toSafeType({ contentType }: StoredDocument): string {
  return contentType.startsWith("text/") ? "text/plain" : contentType;
}

/** Reads the link in a request body. @throws {AppError} `invalid_json`, `invalid_request`, `unsupported_media_type` */
async function readLink(c: AppContext): Promise<string> {
  if (!/^application\/json\b/i.test(c.req.header("content-type") ?? "")) {
    throw new AppError("unsupported_media_type", "The body of the request must be multipart/form-data or JSON");
  }
  let body: unknown;
  try {
    body = await c.req.json();
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError("invalid_json", "The body of the request isn't valid JSON");
  }
  const parsed = schema.LinkBody.safeParse(body);
  if (!parsed.success) throw createSchemaError("json", parsed.error.issues);
  return parsed.data.url;
}

async function* toTextJson(
  unit: PageUnit,
  pages: AsyncIterable<{ n: number; text: string }>,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const encoder = new TextEncoder();
  let before = `{"unit":"${unit}","pages":[`;
  for await (const page of pages) {
    yield encoder.encode(before + JSON.stringify(page));
    before = ",";
  }
  yield encoder.encode(before === "," ? "]}" : `${before}]}`);
}
