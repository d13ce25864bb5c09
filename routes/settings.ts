/** `/api/settings` and `/api/setup`. */
import type { Services } from "../services/services.ts";
import type { AppContext } from "../middleware/env.ts";
import type { SettingsState, Setup } from "../services/settings/settings.ts";
import { AppError } from "../services/errors.ts";
import { formatEtag, parsePrecondition } from "./http/etag.ts";
import { sendJsonFile } from "./http/file_response.ts";
import { createRouter } from "./http/router.ts";
import {
  completeSetupRoute,
  exportQuickRepliesRoute,
  getSettingsRoute,
  patchSettingsRoute,
  quickReplySetsRoute,
  setupStatusRoute,
} from "./schemas/settings.ts";

/** Routes of the settings and the first-run wizard. */
export function settingsRoutes(services: Services) {
  return createRouter().route("/", ownerSettingsRoutes(services)).route("/", setupRoutes(services));
}

const loadFormat = () => import("../services/import_export/formats/sillytavern/quick_replies.ts");

function ownerSettingsRoutes({ settings }: Services) {
  const respond = (c: AppContext, { version, settings: values }: SettingsState) => {
    c.header("ETag", formatEtag(version));
    return c.json(values, 200);
  };
  return createRouter()
    .openapi(getSettingsRoute, (c) => respond(c, settings.get()))
    .openapi(quickReplySetsRoute, async (c) => {
      const sets = (await loadFormat()).toQuickReplySets(settings.get().settings.prompt_templates);
      return c.json(sets.map(({ name, qrList }) => ({ name, count: qrList.length })), 200);
    })
    .openapi(exportQuickRepliesRoute, async (c) => {
      const { set } = c.req.valid("query");
      const sets = (await loadFormat()).toQuickReplySets(settings.get().settings.prompt_templates);
      const found = sets.find(({ name }) => name === set);
      if (found === undefined) throw new AppError("not_found", `No quick reply set named "${set}"`);
      return await sendJsonFile(c, `${set}.json`, found);
    })
    .openapi(patchSettingsRoute, async (c) => {
      const expected = parsePrecondition(c.req.valid("header"));
      return respond(c, await settings.patch(c.req.valid("json"), expected));
    });
}

function setupRoutes(services: Services) {
  const toStatus = (setup: Setup) => ({
    completed: setup.isCompleted(),
    in_container: setup.environment.isContainer,
    discover_hosts: [...setup.environment.discoverHosts],
  });
  return createRouter()
    .openapi(setupStatusRoute, async (c) => {
      const setup = await services.setup();
      return c.json(toStatus(setup), 200);
    })
    .openapi(completeSetupRoute, async (c) => {
      const setup = await services.setup();
      await setup.complete();
      return c.json(toStatus(setup), 200);
    });
}
