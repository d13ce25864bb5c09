/** `/api/tools/servers`: MCP servers, the permissions of their tools, sign-in, prompts and resources. */
import { type AppContext, clientSignal } from "../middleware/env.ts";
import { AppError } from "../services/errors.ts";
import type { Services } from "../services/services.ts";
import { etag, preconditionOf } from "./http/etag.ts";
import { newRouter } from "./http/router.ts";
import * as schema from "./schemas/tool_servers.ts";

/** Where an authorization server sends the browser back to, as the browser reaches this server. */
const getCallbackUrl = (c: AppContext) => `${c.var.facts.origin}/api/tools/callback`;
/** The screen of the page that lists the servers. */
const SCREEN = "/settings/tools";

/** Routes of tool servers. */
export function toolServerRoutes(services: Services) {
  return newRouter()
    .openapi(schema.listRoute, async (c) => c.json((await services.mcp()).list().map(schema.toServerJson), 200))
    .openapi(schema.importRoute, async (c) => {
      const { added, skipped } = await (await services.mcp()).importServers(c.req.valid("json"));
      return c.json({ servers: added.map(schema.toServerJson), skipped }, 200);
    })
    .openapi(schema.getRoute, async (c) => {
      const status = (await services.mcp()).get(c.req.valid("param").id);
      return c.json(schema.toServerJson(status), 200);
    })
    .openapi(schema.putRoute, async (c) => {
      const mcp = await services.mcp();
      const { id } = c.req.valid("param");
      const expected = preconditionOf(c.req.valid("header"));
      const { status, isNew } = await mcp.put(id, schema.toServerInput(c.req.valid("json")), expected);
      c.header("ETag", etag(status.server.version));
      return isNew ? c.json(schema.toServerJson(status), 201) : c.json(schema.toServerJson(status), 200);
    })
    .openapi(schema.deleteRoute, async (c) => {
      await (await services.mcp()).remove(c.req.valid("param").id, preconditionOf(c.req.valid("header")));
      return c.body(null, 204);
    })
    .openapi(schema.testRoute, async (c) => {
      const status = await (await services.mcp()).test(c.req.valid("param").id, clientSignal(c));
      return c.json(schema.toServerJson(status), 200);
    })
    .openapi(schema.permissionRoute, async (c) => {
      const { id, name } = c.req.valid("param");
      const { permission } = c.req.valid("json");
      const tool = await (await services.mcp()).setToolPermission(id, name, permission, clientSignal(c));
      return c.json(schema.toToolJson(tool), 200);
    })
    .openapi(schema.signInRoute, async (c) => {
      const authUrl = await (await services.mcp()).startSignIn(c.req.valid("param").id, getCallbackUrl(c));
      return c.json({ auth_url: authUrl }, 200);
    })
    .openapi(schema.signOutRoute, async (c) => {
      await (await services.mcp()).signOut(c.req.valid("param").id);
      return c.body(null, 204);
    })
    .openapi(schema.callbackRoute, async (c) => {
      const { state, code, iss, error } = c.req.valid("query");
      const id = await (await services.mcp()).finishSignIn({ state, code, issuer: iss, error });
      return c.redirect(`${SCREEN}?server=${encodeURIComponent(id)}`, 303);
    })
    .openapi(schema.promptsRoute, async (c) => {
      const prompts = await (await services.mcp()).listPrompts(c.req.valid("param").id, clientSignal(c));
      return c.json(prompts, 200);
    })
    .openapi(schema.promptRoute, async (c) => {
      const { id, name } = c.req.valid("param");
      const text = await (await services.mcp()).getPrompt(id, name, c.req.valid("json").arguments, clientSignal(c));
      return c.json({ text }, 200);
    })
    .openapi(schema.resourcesRoute, async (c) => {
      const resources = await (await services.mcp()).listResources(c.req.valid("param").id, clientSignal(c));
      return c.json(resources.map(schema.toResourceJson), 200);
    })
    .openapi(schema.resourceRoute, async (c) => {
      const { uri } = c.req.valid("json");
      const read = await (await services.mcp()).readResource(c.req.valid("param").id, uri, clientSignal(c));
      if (read.text === undefined) {
        throw new AppError("unsupported_media_type", `Can't use "${read.name}": it isn't text but ${read.contentType}`);
      }
      return c.json({ name: read.name, content_type: read.contentType, text: read.text }, 200);
    });
}
