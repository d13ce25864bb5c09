/** `/api/health`, `/api/models`: status and models of the active connection. `/api/stop` ends the server. */
import type { Services } from "../services/services.ts";
import { getClientSignal } from "../middleware/env.ts";
import { AppError } from "../services/errors.ts";
import { checkReachable } from "../services/llm/connections/connection_test.ts";
import { createRouter } from "./http/router.ts";
import { healthRoute, modelsRoute, stopRoute } from "./schemas/health.ts";

/**
 * Maximum duration of a check in milliseconds. The page waits for this response, so a slower model server counts as
 * unreachable.
 */
const CHECK_WITHIN_MS = 3_000;

/** Routes of the server itself, and of its models. */
export function healthRoutes(services: Services) {
  const { auth, log, requestStop, version } = services;
  return createRouter()
    .openapi(stopRoute, (c) => {
      const { identity } = c.var;
      if (identity.method !== null || identity.isOperator !== true) {
        throw new AppError("forbidden", "Only parlor stop can stop the server, on its machine. See parlor stop --help");
      }
      log("info", "Asked to stop by parlor stop");
      // The response is still sent: the listener waits for it.
      requestStop();
      return c.json({ pid: Deno.pid }, 202);
    })
    .openapi(healthRoute, async (c) => {
      const { connections, upstream } = await services.llm();
      const active = connections.findActive();
      const refused_sign_ins = auth.failures.countRecent();
      if (active === undefined) {
        return c.json({ status: "unconfigured" as const, version, refused_sign_ins, connection: null }, 200);
      }
      const check = await checkReachable(
        upstream,
        connections.getTarget(active.id),
        CHECK_WITHIN_MS,
        getClientSignal(c),
      );
      const { isReachable: reachable, latencyMs: latency_ms, error } = check;
      const { id, name, kind, model, baseUrl: base_url } = active;
      const connection = { id, name, kind, base_url, model, reachable, latency_ms, error };
      const isUsable = reachable && error === undefined;
      return c.json(
        { status: isUsable ? "ok" as const : "degraded" as const, version, refused_sign_ins, connection },
        200,
      );
    })
    .openapi(modelsRoute, async (c) => {
      const { connections, probes, upstream } = await services.llm();
      const active = connections.findActive();
      if (active === undefined) throw new AppError("not_available", "No model connection is active");
      const list = await upstream.listModels(connections.getTarget(active.id), getClientSignal(c));
      probes.check(active.id);
      return c.json(list, 200);
    });
}
