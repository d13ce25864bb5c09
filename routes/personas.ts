/** `/api/personas`: the owner's identities in chats. */
import type { Services } from "../services/services.ts";
import type { AppContext } from "../middleware/env.ts";
import type { ReadPersona } from "../services/personas/personas.ts";
import { KeyedMutex } from "../services/async/locks.ts";
import { AppError } from "../services/errors.ts";
import type { Precondition } from "../services/storage/preconditions.ts";
import { formatAttachmentHeader, TOO_LARGE_TO_IMPORT } from "./http/file_response.ts";
import { formatOwnerEtag, parsePrecondition, toVersionPrecondition } from "./http/etag.ts";
import { readImage, readUpload } from "./http/form.ts";
import { passRawResponse } from "./http/raw_response.ts";
import { createRouter } from "./http/router.ts";
import { toDocumentUses } from "./schemas/documents.ts";
import * as schema from "./schemas/personas.ts";
import { toVersionJson } from "./schemas/versions.ts";

/** Routes of personas. */
export function personaRoutes(services: Services) {
  const maxCardBytes = services.config.maxUploadBodyBytes;
  // Name, description and documents change together, under one lock.
  const locks = new KeyedMutex();
  return createRouter()
    .openapi(schema.listRoute, async (c) => {
      const personas = await services.personas();
      return c.json(await personas.list(), 200);
    })
    .openapi(schema.getRoute, async (c) => {
      const personas = await services.personas();
      return await respond(services, c, await personas.get(c.req.valid("param").id), 200);
    })
    .openapi(schema.putRoute, async (c) => {
      const personas = await services.personas();
      const { name, description, placement, character_ids, documents } = c.req.valid("json");
      const text = {
        ...{ name, description: description === null ? "" : description, placement },
        character_ids: character_ids === null ? [] : character_ids,
      } satisfies Parameters<typeof personas.put>[1];
      const { id } = c.req.valid("param");
      return await locks.run(id, async () => {
        const expected = await toExpected(services, id, parsePrecondition(c.req.valid("header")));
        const saved = await personas.put(id, text, expected);
        await putDocuments(services, saved.persona.id, documents);
        return await respond(services, c, saved, saved.isNew ? 201 : 200);
      });
    })
    .openapi(schema.deleteRoute, async (c) => {
      const personas = await services.personas();
      const { id } = c.req.valid("param");
      await personas.remove(id, await toExpected(services, id, parsePrecondition(c.req.valid("header"))));
      return c.body(null, 204);
    })
    .openapi(schema.versionsRoute, async (c) => {
      const personas = await services.personas();
      return c.json((await personas.listVersions(c.req.valid("param").id)).map(toVersionJson), 200);
    })
    .openapi(schema.versionRoute, async (c) => {
      const personas = await services.personas();
      const { id, n } = c.req.valid("param");
      const { name, description, png } = await personas.getVersion(id, n);
      return c.json({ name, description, has_avatar: png !== undefined }, 200);
    })
    .openapi(schema.versionAvatarRoute, async (c) => {
      const personas = await services.personas();
      const { id, n } = c.req.valid("param");
      const png = await personas.getVersionAvatar(id, n, c.req.valid("query").w);
      return passRawResponse(c.body(png, 200, { "Content-Type": "image/png" }));
    })
    .openapi(schema.restoreVersionRoute, async (c) => {
      const personas = await services.personas();
      const { id, n } = c.req.valid("param");
      const expected = await toExpected(services, id, parsePrecondition(c.req.valid("header")));
      return await respond(services, c, await personas.restoreVersion(id, n, expected), 200);
    })
    .openapi(schema.importRoute, async (c) => {
      const personas = await services.personas();
      const { file } = await readUpload(c, "file");
      // The file is measured, not the form around it, so that everything exported without a warning can be imported.
      if (file.length > maxCardBytes) {
        throw new AppError("too_large", `The card file is larger than the limit of ${maxCardBytes} bytes`);
      }
      const options = { swapsNames: c.req.valid("query").swap_names === "true" };
      return await respond(services, c, await personas.importCard(file, options), 201);
    })
    .openapi(schema.exportRoute, async (c) => {
      const personas = await services.personas();
      const { bytes, contentType, fileName } = await personas.exportCard(c.req.valid("param").id, {
        keepsImageMetadata: c.req.valid("query").image_metadata === "keep",
      });
      if (bytes.length > maxCardBytes) c.header("X-Parlor-Warning", TOO_LARGE_TO_IMPORT);
      const headers = { "Content-Type": contentType, "Content-Disposition": formatAttachmentHeader(fileName) };
      return passRawResponse(c.body(bytes, 200, headers));
    })
    .openapi(schema.avatarRoute, async (c) => {
      const personas = await services.personas();
      const png = await personas.getAvatar(c.req.valid("param").id);
      return passRawResponse(c.body(png, 200, { "Content-Type": "image/png" }));
    })
    .openapi(schema.putAvatarRoute, async (c) => {
      const personas = await services.personas();
      const image = await readImage(c);
      const { id } = c.req.valid("param");
      const expected = await toExpected(services, id, parsePrecondition(c.req.valid("header")));
      return await respond(services, c, await personas.setAvatar(id, image, expected), 200);
    });
}

async function putDocuments(
  services: Services,
  id: string,
  documents: Parameters<typeof toDocumentUses>[0] | null | undefined,
): Promise<void> {
  if (documents !== undefined) {
    await (await services.documentUses()).put("persona", id, toDocumentUses(documents ?? []));
  }
}

/** Converts preconditions on the persona's ETag to preconditions on its file. */
async function toExpected(
  services: Services,
  id: string,
  precondition: Precondition | undefined,
): Promise<Precondition | undefined> {
  return precondition && toVersionPrecondition(precondition, (await services.documentUses()).get("persona", id));
}

async function respond(
  services: Services,
  c: AppContext,
  { persona, version }: ReadPersona,
  status: 200 | 201,
): Promise<never> {
  const documents = (await services.documentUses()).get("persona", persona.id);
  const body: typeof persona & { documents?: typeof documents } = documents.length === 0
    ? persona
    : { ...persona, documents };
  return passRawResponse(c.json(body, status, { ETag: formatOwnerEtag(version, documents) }));
}
