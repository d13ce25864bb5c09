/** `/api/settings`: what the owner likes, on every device. */
import type { AppContext } from "../middleware/env.ts";
import type { Settings, SettingsState } from "../services/settings/settings.ts";
import { etag, preconditionOf } from "./http/etag.ts";
import { newRouter } from "./http/router.ts";
import { getSettingsRoute, patchSettingsRoute } from "./schemas/settings.ts";

/** Routes of the settings. */
export function settingsRoutes(settings: Settings) {
  const answer = (c: AppContext, { version, settings: values }: SettingsState) => {
    c.header("ETag", etag(version));
    return c.json(values, 200);
  };
  return newRouter()
    .openapi(getSettingsRoute, (c) => answer(c, settings.get()))
    .openapi(patchSettingsRoute, async (c) => {
      const expected = preconditionOf(c.req.valid("header"));
      return answer(c, await settings.patch(c.req.valid("json"), expected));
    });
}
