/** `/api/regex_scripts`: the owner's regex scripts, decisions about those of cards and presets, and running them. */
import type { AppContext } from "../middleware/env.ts";
import type { Services } from "../services/services.ts";
import type { OwnScript } from "../services/regex_scripts/regex_scripts.ts";
import { toTavernScript } from "../services/regex_scripts/regex_script.ts";
import { formatEtag, parsePrecondition } from "./http/etag.ts";
import { sendJsonFile } from "./http/file_response.ts";
import { passRawResponse } from "./http/raw_response.ts";
import { createRouter } from "./http/router.ts";
import * as schema from "./schemas/regex_scripts.ts";

/** Routes of regex scripts. */
export function regexScriptRoutes(services: Services) {
  return createRouter()
    .openapi(schema.listRoute, async (c) => {
      const scripts = await services.regexScripts();
      return c.json(scripts.list().map(schema.toOwnScriptJson), 200);
    })
    .openapi(schema.importRoute, async (c) => {
      const scripts = await services.regexScripts();
      return c.json((await scripts.importFile(c.req.valid("json"))).map(schema.toOwnScriptJson), 201);
    })
    .openapi(schema.testRoute, async (c) => {
      const scripts = await services.regexScripts();
      const { script, text, user, char } = c.req.valid("json");
      return c.json(await scripts.test(schema.toScriptInput(script), { text, user, char }), 200);
    })
    .openapi(schema.decideRoute, async (c) => {
      const scripts = await services.regexScripts();
      const { hash, accepted } = c.req.valid("json");
      await scripts.decide(hash, accepted);
      return c.body(null, 204);
    })
    .openapi(schema.getRoute, async (c) => {
      const scripts = await services.regexScripts();
      return respond(c, scripts.get(c.req.valid("param").id), 200);
    })
    .openapi(schema.putRoute, async (c) => {
      const scripts = await services.regexScripts();
      const expectedVersion = parsePrecondition(c.req.valid("header"));
      const input = schema.toScriptInput(c.req.valid("json"));
      const { script, isNew } = await scripts.put(c.req.valid("param").id, input, { expectedVersion });
      return respond(c, script, isNew ? 201 : 200);
    })
    .openapi(schema.deleteRoute, async (c) => {
      const scripts = await services.regexScripts();
      await scripts.remove(c.req.valid("param").id, parsePrecondition(c.req.valid("header")));
      return c.body(null, 204);
    })
    .openapi(schema.exportRoute, async (c) => {
      const scripts = await services.regexScripts();
      const { id } = c.req.valid("param");
      const content = scripts.getContent(id);
      return await sendJsonFile(c, `regex-${content.name || id}.json`, toTavernScript(id, content));
    })
    .openapi(schema.conversationRoute, async (c) => {
      const { scripts } = await services.chat();
      const { attached, hasActive, maxDepth } = await scripts.list(c.req.valid("param").id);
      const json = { attached: attached.map(schema.toAttachedJson), has_active: hasActive, max_depth: maxDepth };
      return c.json(json, 200);
    })
    .openapi(schema.runRoute, async (c) => {
      const { scripts } = await services.chat();
      const { purpose, texts, time_zone: timeZone } = c.req.valid("json");
      const run = await scripts.run(c.req.valid("param").id, texts.map(schema.toShownText), purpose, timeZone);
      return c.json(run, 200);
    });
}

function respond(c: AppContext, script: OwnScript, status: 200 | 201): never {
  return passRawResponse(c.json(schema.toOwnScriptJson(script), status, { ETag: formatEtag(script.version) }));
}
