/** The whole HTTP side: the chain in SPEC's order, then one mount per resource. Read it first. */
import { authentication } from "../middleware/authentication.ts";
import { bodyLimit } from "../middleware/body_limit.ts";
import { cors } from "../middleware/cors.ts";
import type { Connection } from "../middleware/env.ts";
import { hostAllowlist } from "../middleware/host_allowlist.ts";
import { noStore } from "../middleware/no_store.ts";
import { requestLog } from "../middleware/request_log.ts";
import { createRouteTable } from "../middleware/route_table.ts";
import { securityHeaders } from "../middleware/security_headers.ts";
import { trustedProxies } from "../middleware/trusted_proxies.ts";
import { AppError } from "../services/errors.ts";
import type { Services } from "../services/services.ts";
import { authAccessRoutes } from "./auth_access.ts";
import { authCeremonyRoutes } from "./auth_ceremonies.ts";
import { attachmentRoutes } from "./attachments.ts";
import { authStatusRoutes } from "./auth_status.ts";
import { cardSiteRoutes } from "./card_site.ts";
import { characterRoutes } from "./characters.ts";
import { chatRoutes } from "./chat.ts";
import { connectionRoutes } from "./connections.ts";
import { conversationRoutes } from "./conversations.ts";
import { creatorRoutes } from "./creator.ts";
import { causeOf, errorBody, errorResponse, isDefect } from "./errors.ts";
import { eventRoutes } from "./events.ts";
import { exportRoutes } from "./exports.ts";
import { forkRoutes } from "./forks.ts";
import { healthRoutes } from "./health.ts";
import { healthzRoutes } from "./healthz.ts";
import { imageRoutes } from "./images.ts";
import { importRoutes } from "./imports.ts";
import { jobRoutes } from "./jobs.ts";
import { licenceRoutes } from "./licences.ts";
import { lorebookRoutes } from "./lorebooks.ts";
import { messageRoutes } from "./messages.ts";
import { modelRoutes } from "./models.ts";
import { openapiRoutes } from "./openapi.ts";
import { bodyLimitsOf, routeFactsOf } from "./route_facts.ts";
import { personaRoutes } from "./personas.ts";
import { presetRoutes } from "./presets.ts";
import { revisionRoutes } from "./revisions.ts";
import { newRouter, type Router } from "./router.ts";
import { runnerRoutes } from "./runner.ts";
import { searchRoutes } from "./search.ts";
import { settingsRoutes } from "./settings.ts";
import { setupRoutes } from "./setup.ts";
import { tailnetRoutes } from "./tailnet.ts";
import { trashRoutes } from "./trash.ts";
import { ttsRoutes } from "./tts.ts";
import { uiAssetsRoutes } from "./ui_assets.ts";
import { upkeepRoutes } from "./upkeep.ts";
import { voiceRoutes } from "./voices.ts";

/** Where build.ts puts the page; inside the executable the same path leads to what it carries. */
const UI_FOLDER = `${import.meta.dirname}/../static/dist`;

/** What a listener hands requests to. */
export interface App {
  /** Every route, for the API document. */
  readonly router: Router;
  /** Answers a request; never rejects. */
  fetch(request: Request, connection: Connection): Promise<Response>;
}

/**
 * Builds the HTTP side over open services.
 *
 * @param options.version Parlor's version, for the API document.
 * @param options.uiFolder Folder with the built page.
 */
export function createApp(services: Services, options: { version: string; uiFolder?: string }): App {
  const { version, uiFolder = UI_FOLDER } = options;
  const { auth, config, hosts, log, pageOrigins } = services;
  const app = newRouter();
  const routes = () => table;

  app.use(securityHeaders(config.corsOrigins));
  app.use(trustedProxies(config.trustedProxies));
  app.use(requestLog({ log, isEnabled: config.logRequests, routes, now: () => performance.now() }));
  app.use("/api/*", noStore());
  app.use("/api/*", authentication({ access: auth.access, streams: auth.streams, pageOrigins }));
  app.use("/api/*", hostAllowlist({ hosts, corsOrigins: config.corsOrigins }));
  app.use("/api/*", cors({ corsOrigins: config.corsOrigins, routes }));
  app.use(bodyLimit({ routes, defaultLimitBytes: config.maxBodyBytes }));

  app.route("/", healthzRoutes());
  app.route("/", authStatusRoutes(auth.access, pageOrigins));
  app.route("/", authCeremonyRoutes(auth, hosts));
  app.route("/", authAccessRoutes(auth));
  app.route("/", healthRoutes(services.connections, { upstream: services.upstream, version }));
  app.route(
    "/",
    connectionRoutes(services.connections, { upstream: services.upstream, discoverHosts: config.discoverHosts }),
  );
  app.route("/", chatRoutes(services.chat));
  app.route("/", conversationRoutes(services.conversations));
  app.route("/", messageRoutes(services.messages));
  app.route("/", revisionRoutes(services.revisions, services.conversations.reader));
  app.route("/", forkRoutes(services.forks, services.conversations.reader));
  // Routes under words beside ids, as /api/characters/search, come before these.
  app.route("/", cardSiteRoutes(services.cardSite, services.characters));
  app.route("/", creatorRoutes(services.creator));
  app.route("/", characterRoutes(services));
  app.route("/", personaRoutes(services.personas));
  app.route("/", lorebookRoutes(services.lorebooks, services.lorebookTrial));
  app.route("/", presetRoutes(services.presets));
  app.route("/", attachmentRoutes(services.attachments));
  app.route("/", trashRoutes(services.trash));
  app.route("/", searchRoutes(services.search));
  app.route("/", ttsRoutes(services.speech));
  app.route("/", voiceRoutes(services.voices, services.voiceImports));
  app.route("/", imageRoutes(services.drawn, { discoverHosts: config.discoverHosts }));
  app.route("/", settingsRoutes(services.settings));
  app.route("/", setupRoutes(services.setup));
  app.route("/", tailnetRoutes(services.tailnet));
  app.route("/", upkeepRoutes(services.upkeep, services.backups));
  app.route("/", licenceRoutes());
  app.route("/", eventRoutes(services.events));
  app.route("/", jobRoutes(services.jobs));
  app.route("/", importRoutes(services.imports, { maxBytes: config.maxImportBodyBytes }));
  app.route("/", exportRoutes(services.exports));
  app.route("/", modelRoutes(services.models));
  app.route("/", runnerRoutes(services.models.runner));
  app.route("/", openapiRoutes(() => app, version));
  app.route("/", uiAssetsRoutes(uiFolder));

  app.notFound((c) => {
    const allow = table.methodsOf(c.req.path);
    return errorResponse(
      allow.length > 0
        ? new AppError("method_not_allowed", "This path does not know the method of the request", { allow })
        : new AppError("not_found", "There is nothing under this path"),
      c,
    );
  });
  app.onError((error, c) => {
    if (isDefect(error)) {
      log("error", "A request failed on a defect", { request_id: c.var.requestId, ...causeOf(error) });
    }
    return errorResponse(error, c);
  });

  const table = createRouteTable(routeFactsOf(app, bodyLimitsOf(config)));
  return {
    router: app,
    async fetch(request, connection) {
      try {
        return await app.fetch(request, connection);
      } catch (error) {
        // Only what is no Error gets past Hono's own handler.
        log("error", "A request failed on a defect", causeOf(error));
        return Response.json(errorBody(error, "none"), { status: 500 });
      }
    },
  };
}
