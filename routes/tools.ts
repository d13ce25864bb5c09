/** `/api/tools`: tool servers, web search and page reading, and the list of calls. */
import { type AppContext, getClientSignal } from "../middleware/env.ts";
import { AppError } from "../services/errors.ts";
import type { Services } from "../services/services.ts";
import { formatEtag, parsePrecondition } from "./http/etag.ts";
import { createRouter } from "./http/router.ts";
import * as servers from "./schemas/tool_servers.ts";
import * as schema from "./schemas/tools.ts";
import { passRawResponse } from "./http/raw_response.ts";

/** Returns the URL to which an authorization server sends the browser back, as the browser reaches this server. */
const getCallbackUrl = (c: AppContext) => `${c.var.facts.origin}/api/tools/callback`;
/** Screen of the page that lists the servers. */
const SCREEN = "/settings/tools";

/**
 * Routes of tool servers. `/api/tools/servers`: MCP servers, the permissions of their tools, sign-in, prompts and
 * resources.
 */
export function toolServerRoutes(services: Services) {
  return createRouter()
    .openapi(servers.listRoute, async (c) => c.json((await services.mcp()).list().map(servers.toServerJson), 200))
    .openapi(servers.importRoute, async (c) => {
      const { added, skipped } = await (await services.mcp()).importServers(c.req.valid("json"));
      return c.json({ servers: added.map(servers.toServerJson), skipped }, 200);
    })
    .openapi(servers.getRoute, async (c) => {
      const status = (await services.mcp()).get(c.req.valid("param").id);
      c.header("ETag", formatEtag(status.server.version));
      return c.json(servers.toServerJson(status), 200);
    })
    .openapi(servers.putRoute, async (c) => {
      const mcp = await services.mcp();
      const { id } = c.req.valid("param");
      const expected = parsePrecondition(c.req.valid("header"));
      const { status, isNew } = await mcp.put(id, servers.toServerInput(c.req.valid("json")), expected);
      c.header("ETag", formatEtag(status.server.version));
      return isNew ? c.json(servers.toServerJson(status), 201) : c.json(servers.toServerJson(status), 200);
    })
    .openapi(servers.deleteRoute, async (c) => {
      await (await services.mcp()).remove(c.req.valid("param").id, parsePrecondition(c.req.valid("header")));
      return c.body(null, 204);
    })
    .openapi(servers.testRoute, async (c) => {
      const status = await (await services.mcp()).test(c.req.valid("param").id, getClientSignal(c));
      return c.json(servers.toServerJson(status), 200);
    })
    .openapi(servers.permissionRoute, async (c) => {
      const { id, name } = c.req.valid("param");
      const { permission } = c.req.valid("json");
      const tool = await (await services.mcp()).setToolPermission(id, name, permission, getClientSignal(c));
      return c.json(servers.toToolJson(tool), 200);
    })
    .openapi(servers.signInRoute, async (c) => {
      const authUrl = await (await services.mcp()).startSignIn(c.req.valid("param").id, getCallbackUrl(c));
      return c.json({ auth_url: authUrl }, 200);
    })
    .openapi(servers.signOutRoute, async (c) => {
      await (await services.mcp()).signOut(c.req.valid("param").id);
      return c.body(null, 204);
    })
    .openapi(servers.callbackRoute, async (c) => {
      const { state, code, iss, error } = c.req.valid("query");
      const id = await (await services.mcp()).finishSignIn({ state, code, issuer: iss, error });
      return c.redirect(`${SCREEN}?server=${encodeURIComponent(id)}`, 303);
    })
    .openapi(servers.promptsRoute, async (c) => {
      const prompts = await (await services.mcp()).listPrompts(c.req.valid("param").id, getClientSignal(c));
      return c.json(prompts, 200);
    })
    .openapi(servers.promptRoute, async (c) => {
      const { id, name } = c.req.valid("param");
      const text = await (await services.mcp()).getPrompt(id, name, c.req.valid("json").arguments, getClientSignal(c));
      return c.json({ text }, 200);
    })
    .openapi(servers.resourcesRoute, async (c) => {
      const resources = await (await services.mcp()).listResources(c.req.valid("param").id, getClientSignal(c));
      return c.json(resources.map(servers.toResourceJson), 200);
    })
    .openapi(servers.resourceRoute, async (c) => {
      const { uri } = c.req.valid("json");
      const read = await (await services.mcp()).readResource(c.req.valid("param").id, uri, getClientSignal(c));
      if (read.text === undefined) {
        throw new AppError("unsupported_media_type", `Can't use "${read.name}": it isn't text but ${read.contentType}`);
      }
      return c.json({ name: read.name, content_type: read.contentType, text: read.text }, 200);
    });
}

/** Routes of the built-in web tools. */
export function webToolRoutes(services: Services) {
  return createRouter()
    .openapi(schema.webConfigRoute, async (c) => {
      const web = await services.webTools();
      const config = web.settings.get();
      c.header("ETag", formatEtag(config.version));
      return c.json(schema.toWebConfigJson(config, web.list()), 200);
    })
    .openapi(schema.putWebConfigRoute, async (c) => {
      const web = await services.webTools();
      const expected = parsePrecondition(c.req.valid("header"));
      const config = await web.settings.put(schema.toWebConfigInput(c.req.valid("json")), expected);
      c.header("ETag", formatEtag(config.version));
      return c.json(schema.toWebConfigJson(config, web.list()), 200);
    })
    .openapi(schema.testWebRoute, async (c) => {
      const web = await services.webTools();
      const { search_url } = c.req.valid("json");
      return c.json(schema.toWebTestJson(await web.test(search_url, getClientSignal(c))), 200);
    })
    .openapi(schema.webPermissionRoute, async (c) => {
      const web = await services.webTools();
      const { name } = c.req.valid("param");
      await web.changePermission(name, c.req.valid("json").permission);
      return c.json(schema.toWebToolJson(web.list().find(({ tool }) => tool.name === name)!), 200);
    });
}

/** Routes of the list of calls. */
export function toolCallRoutes(services: Services) {
  return createRouter().openapi(schema.callListRoute, async (c) => {
    const { items, nextCursor } = (await services.toolCalls()).list(c.req.valid("query").cursor);
    const next_cursor = nextCursor === undefined ? null : String(nextCursor);
    return passRawResponse(c.json({ items: items.map(schema.toListedCallJson), next_cursor }, 200));
  });
}
