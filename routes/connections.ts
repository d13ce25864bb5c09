/** `/api/connections`: profiles of model servers, connection tests, and the search for running servers. */
import type { Services } from "../services/services.ts";
import { getClientSignal } from "../middleware/env.ts";
import { findServers } from "../services/server_search/server_search.ts";
import { testConnection } from "../services/llm/connections/connection_test.ts";
import { formatEtag, parsePrecondition } from "./http/etag.ts";
import { createRouter } from "./http/router.ts";
import { toJobJson } from "./schemas/jobs.ts";
import * as schema from "./schemas/connections.ts";

/** Routes of connection profiles. `discover` probes hosts from the configuration, never hosts that a client chooses. */
export function connectionRoutes(services: Services) {
  return createRouter()
    .openapi(schema.listRoute, async (c) => {
      const { connections } = await services.llm();
      return c.json(connections.list().map((one) => schema.toConnectionJson(one, connections)), 200);
    })
    .openapi(schema.putRoute, async (c) => {
      const { connections, inspector, probes } = await services.llm();
      const expected = parsePrecondition(c.req.valid("header"));
      const { connection, isNew } = await connections.put(schema.toConnectionInput(c.req.valid("json")), {
        expectedVersion: expected,
      });
      // So that the page knows before the first call whether an Ollama model thinks. The inspector publishes its result
      // as an event.
      if (connection.kind === "ollama") void inspector.inspect(connection.id).catch(() => {});
      probes.check(connection.id, { isNews: true });
      c.header("ETag", formatEtag(connection.version));
      return isNew
        ? c.json(schema.toConnectionJson(connection, connections), 201)
        : c.json(schema.toConnectionJson(connection, connections), 200);
    })
    .openapi(schema.deleteRoute, async (c) => {
      const { connections } = await services.llm();
      await connections.remove(c.req.valid("param").id, parsePrecondition(c.req.valid("header")));
      return c.body(null, 204);
    })
    .openapi(schema.clearKeyRoute, async (c) => {
      const { connections } = await services.llm();
      await connections.clearKey(c.req.valid("param").id, parsePrecondition(c.req.valid("header")));
      return c.body(null, 204);
    })
    .openapi(schema.activateRoute, async (c) => {
      const { connections, probes } = await services.llm();
      const connection = await connections.activate(c.req.valid("param").id);
      probes.check(connection.id);
      return c.json(schema.toConnectionJson(connection, connections), 200);
    })
    .openapi(schema.testRoute, async (c) => {
      const { connections, contextSizes, inspector, probes, upstream } = await services.llm();
      const body = c.req.valid("json");
      const input = schema.toConnectionInput(body);
      const target = connections.getUnsavedTarget(input);
      const signal = getClientSignal(c);
      const result = await testConnection(upstream, target, signal, input.model ?? undefined);
      const { contextSize, models: [firstModel] } = result;
      const model = input.model ?? firstModel;
      if (contextSize !== undefined && model !== undefined) contextSizes.replace(target, model, contextSize);
      const isSaved = input.id !== undefined && connections.isTargetOf(input.id, target);
      if (!result.isAuthorized || model === undefined) return c.json(schema.toTestResultJson(result), 200);
      if (isSaved) await inspector.inspect(input.id!, signal);
      // What the server is shows only now if it asks for a key.
      const identity = isSaved ? undefined : await upstream.identify(target, signal);
      if (body.quick || identity?.isSpeech) return c.json(schema.toTestResultJson(result, { identity }), 200);
      const contract = await probes.test(target, model, isSaved ? input.id : undefined, signal);
      return c.json(schema.toTestResultJson(result, { contract, identity }), 200);
    })
    .openapi(schema.pullRoute, async (c) => {
      const pulls = await services.modelPulls();
      return c.json(toJobJson(await pulls.start(c.req.valid("param").id, c.req.valid("json").model)), 202);
    })
    .openapi(schema.discoverRoute, async (c) => {
      const { models } = await findServers({
        hosts: services.config.discoverHosts,
        ownListeners: services.ownListeners,
      });
      return c.json(models.map(schema.toDiscoveredJson), 200);
    })
    .openapi(schema.discoverAllRoute, async (c) => {
      const found = await findServers({ hosts: services.config.discoverHosts, ownListeners: services.ownListeners });
      return c.json(schema.toFoundServersJson(found), 200);
    });
}
