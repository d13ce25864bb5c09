/** `/api/connections`: profiles of model servers, their test, and the search for running ones. */
import { clientSignal } from "../middleware/env.ts";
import type { Connections } from "../services/llm/connections/connections.ts";
import { discoverServers } from "../services/llm/connections/discover.ts";
import type { UpstreamClient } from "../services/llm/upstream_client.ts";
import { testConnection } from "../services/llm/connections/connection_test.ts";
import { etag, preconditionOf } from "./http/etag.ts";
import { newRouter } from "./http/router.ts";
import * as schema from "./schemas/connections.ts";

/** Routes of connection profiles. @param options.discoverHosts Hosts that `discover` probes; never a client's choice. */
export function connectionRoutes(
  connections: Connections,
  options: { upstream: UpstreamClient; discoverHosts: readonly string[] },
) {
  return newRouter()
    .openapi(schema.listRoute, (c) => c.json(connections.list().map(schema.toConnectionJson), 200))
    .openapi(schema.putRoute, async (c) => {
      const expected = preconditionOf(c.req.valid("header"));
      const { connection, isNew } = await connections.put(schema.toConnectionInput(c.req.valid("json")), expected);
      c.header("ETag", etag(connection.version));
      return isNew
        ? c.json(schema.toConnectionJson(connection), 201)
        : c.json(schema.toConnectionJson(connection), 200);
    })
    .openapi(schema.deleteRoute, async (c) => {
      await connections.remove(c.req.valid("param").id, preconditionOf(c.req.valid("header")));
      return c.body(null, 204);
    })
    .openapi(schema.clearKeyRoute, async (c) => {
      await connections.clearKey(c.req.valid("param").id, preconditionOf(c.req.valid("header")));
      return c.body(null, 204);
    })
    .openapi(
      schema.activateRoute,
      async (c) => c.json(schema.toConnectionJson(await connections.activate(c.req.valid("param").id)), 200),
    )
    .openapi(schema.testRoute, async (c) => {
      const input = schema.toConnectionInput(c.req.valid("json"));
      const target = connections.targetForUnsaved(input);
      const result = await testConnection(options.upstream, target, clientSignal(c), input.model ?? undefined);
      return c.json(schema.toTestResultJson(result), 200);
    })
    .openapi(schema.discoverRoute, async (c) => {
      const found = await discoverServers({ hosts: options.discoverHosts });
      return c.json(found.map(schema.toDiscoveredJson), 200);
    });
}
