/** `/api/lorebooks`: lorebooks, whose entries are added to prompts when their keys are mentioned. */
import type { z } from "@hono/zod-openapi";
import type { Services } from "../services/services.ts";
import type { AppContext } from "../middleware/env.ts";
import { writeJsonIncrementally } from "../services/json/incremental_write.ts";
import { UnparsedJson } from "../services/json/json_body.ts";
import { parseLorebook } from "../services/lorebooks/lorebook_file.ts";
import type { StoredLorebook } from "../services/lorebooks/lorebooks.ts";
import { formatEtag, parsePrecondition } from "./http/etag.ts";
import { sendJsonFile } from "./http/file_response.ts";
import { readUpload } from "./http/form.ts";
import { passRawResponse } from "./http/raw_response.ts";
import { createRouter, parseBody } from "./http/router.ts";
import * as schema from "./schemas/lorebooks.ts";

/** Routes of lorebooks. */
export function lorebookRoutes(services: Services) {
  return createRouter()
    .openapi(schema.listRoute, async (c) => {
      const { lorebooks } = await services.lorebooks();
      return c.json(lorebooks.list().map(schema.toLorebookItem), 200);
    })
    .openapi(schema.getRoute, async (c) => {
      const { lorebooks } = await services.lorebooks();
      return respond(c, await lorebooks.get(c.req.valid("param").id), 200);
    })
    .openapi(schema.putRoute, async (c) => {
      const { lorebooks } = await services.lorebooks();
      const expected = parsePrecondition(c.req.valid("header"));
      const { id } = c.req.valid("param");
      const body = c.req.valid("json");
      const check = (long: unknown) => schema.toLorebookInput(parseBody(schema.LorebookBody, long));
      const saved = body instanceof UnparsedJson
        ? await lorebooks.putBody(id, body, check, expected)
        : await lorebooks.put(id, schema.toLorebookInput(body), expected);
      return respond(c, saved, saved.isNew ? 201 : 200);
    })
    .openapi(schema.deleteRoute, async (c) => {
      const { lorebooks } = await services.lorebooks();
      await lorebooks.remove(c.req.valid("param").id, parsePrecondition(c.req.valid("header")));
      return c.body(null, 204);
    })
    .openapi(schema.importRoute, async (c) => {
      const { lorebooks } = await services.lorebooks();
      const { file, stem, text } = await readUpload(c, "file");
      return respond(c, await lorebooks.import(file, text("name") ?? stem), 201);
    })
    .openapi(schema.exportRoute, async (c) => {
      const { lorebooks } = await services.lorebooks();
      const { name, json } = await lorebooks.export(c.req.valid("param").id, c.req.valid("query").format);
      return await sendJsonFile(c, `${name}.json`, json);
    })
    .openapi(schema.testRoute, async (c) => {
      const { lorebookTest } = await services.chat();
      const { checked, parsed } = await readTestBody(services, c.req.valid("json"));
      const { lorebook_id, conversation_id, text, budget_tokens } = checked;
      const found = await lorebookTest({
        draft: parsed,
        lorebookId: lorebook_id ?? undefined,
        conversationId: conversation_id ?? undefined,
        text: text ?? undefined,
        budgetTokens: budget_tokens ?? undefined,
      });
      return c.json(schema.toTestJson(found), 200);
    });
}

/** Returns the body of a test and the book in it. */
async function readTestBody(services: Services, body: z.output<typeof schema.TestBody> | UnparsedJson) {
  if (!(body instanceof UnparsedJson)) {
    return { checked: body, parsed: body.book === undefined ? undefined : parseLorebook(body.book) };
  }
  const { lorebooks } = await services.lorebooks();
  return await lorebooks.readBody(body, "tested", (long) => parseBody(schema.TestBody, long));
}

async function respond(c: AppContext, stored: StoredLorebook, status: 200 | 201): Promise<never> {
  const { book, ...rest } = await schema.toLorebookJson(stored);
  const body = `${JSON.stringify(rest).slice(0, -1)},"book":${await writeJsonIncrementally(book)}}`;
  const headers = { "Content-Type": "application/json", ETag: formatEtag(stored.version) };
  return passRawResponse(c.body(body, status, headers));
}
