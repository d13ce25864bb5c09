/** `/api/characters/search` and `/api/characters/import-url`: what comes from the card site and from links to cards. */
import { clientSignal } from "../middleware/env.ts";
import type { CardSite } from "../services/characters/sites/card_site.ts";
import type { Characters } from "../services/characters/characters.ts";
import { characterAnswer } from "./characters.ts";
import { rawAnswer } from "./server/raw_response.ts";
import { newRouter } from "./http/router.ts";
import * as schema from "./schemas/characters.ts";

/** Routes of the card site; to be mounted before those of characters, whose ids these words are not. */
export function cardSiteRoutes(openSite: () => Promise<CardSite>, characters: Pick<Characters, "importCard">) {
  return newRouter()
    .openapi(schema.searchRoute, async (c) => {
      const { q, tags, sort, page, nsfw } = c.req.valid("query");
      const search = {
        query: q.trim(),
        tags: tags.split(",").map((tag) => tag.trim()).filter((tag) => tag !== ""),
        sort,
        page,
        isForAdults: nsfw === "true",
      };
      const site = await openSite();
      return c.json(await site.search(search, clientSignal(c)), 200);
    })
    .openapi(schema.pictureRoute, async (c) => {
      const { creator, slug } = c.req.valid("param");
      const site = await openSite();
      const { bytes, type } = await site.picture(creator, slug, clientSignal(c));
      return rawAnswer(c.body(bytes, 200, { "Content-Type": type, "Content-Disposition": "attachment" }));
    })
    .openapi(schema.importUrlRoute, async (c) => {
      const site = await openSite();
      const { bytes, picture } = await site.fetchCard(c.req.valid("json").url.trim(), clientSignal(c));
      return characterAnswer(c, await characters.importCard(bytes, { picture }), 201);
    });
}
