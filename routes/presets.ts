/** `/api/presets`: samplers, and the prompts around a chat in their order. */
import type { Services } from "../services/services.ts";
import type { AppContext } from "../middleware/env.ts";
import { writeJsonIncrementally } from "../services/json/incremental_write.ts";
import { UnparsedJson } from "../services/json/json_body.ts";
import type { StoredPreset } from "../services/presets/presets.ts";
import { formatEtag, parsePrecondition } from "./http/etag.ts";
import { sendJsonFile } from "./http/file_response.ts";
import { readUpload } from "./http/form.ts";
import { passRawResponse } from "./http/raw_response.ts";
import { createRouter, parseBody } from "./http/router.ts";
import * as schema from "./schemas/presets.ts";

/** Routes of presets. */
export function presetRoutes(services: Services) {
  return createRouter()
    .openapi(schema.listRoute, async (c) => {
      const presets = await services.presets();
      return c.json(presets.list().map(schema.toPresetItem), 200);
    })
    .openapi(schema.getRoute, async (c) => {
      const presets = await services.presets();
      return respond(c, await presets.get(c.req.valid("param").id), 200);
    })
    .openapi(schema.putRoute, async (c) => {
      const presets = await services.presets();
      const expected = parsePrecondition(c.req.valid("header"));
      const body = c.req.valid("json");
      const check = (long: unknown) => schema.toPresetInput(parseBody(schema.PresetBody, long));
      const input = body instanceof UnparsedJson ? await presets.readBody(body, check) : schema.toPresetInput(body);
      const saved = await presets.put(c.req.valid("param").id, input, expected);
      return respond(c, saved, saved.isNew ? 201 : 200);
    })
    .openapi(schema.deleteRoute, async (c) => {
      const presets = await services.presets();
      await presets.remove(c.req.valid("param").id, parsePrecondition(c.req.valid("header")));
      return c.body(null, 204);
    })
    .openapi(schema.importRoute, async (c) => {
      const presets = await services.presets();
      const { file, stem, text } = await readUpload(c, "file");
      return respond(c, await presets.import(file, text("name") ?? stem), 201);
    })
    .openapi(schema.exportRoute, async (c) => {
      const presets = await services.presets();
      const { name, json } = await presets.export(c.req.valid("param").id);
      return await sendJsonFile(c, `${name}.json`, json);
    });
}

async function respond(c: AppContext, preset: StoredPreset, status: 200 | 201): Promise<never> {
  const body = await writeJsonIncrementally(await schema.toPresetJson(preset));
  const headers = { "Content-Type": "application/json", ETag: formatEtag(preset.version) };
  return passRawResponse(c.body(body, status, headers));
}
