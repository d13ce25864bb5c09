/** The API: mounts each resource and creates the OpenAPI document from the schemas that validate requests. */
import { createRoute, z } from "@hono/zod-openapi";
import type { Services } from "../services/services.ts";
import { attachmentRoutes } from "./attachments.ts";
import { authRoutes } from "./auth.ts";
import { characterRoutes } from "./characters.ts";
import { chatRoutes } from "./chat.ts";
import { connectionRoutes } from "./connections.ts";
import { conversationRoutes, searchRoutes } from "./conversations.ts";
import { dataRoutes, trashRoutes } from "./data.ts";
import { documentRoutes } from "./documents.ts";
import { eventRoutes } from "./events.ts";
import { healthRoutes } from "./health.ts";
import { createRouter, type Router } from "./http/router.ts";
import { refuseTrashedIds } from "./http/trashed_ids.ts";
import { imageRoutes } from "./images.ts";
import { importExportRoutes } from "./import_export.ts";
import { jobRoutes } from "./jobs.ts";
import { libraryRoutes } from "./library.ts";
import { lorebookRoutes } from "./lorebooks.ts";
import { memoryRoutes } from "./memories.ts";
import { queueRoutes } from "./message_queue.ts";
import { metricsRoute } from "./server/metrics.ts";
import { modelRoutes } from "./models.ts";
import { openAiRoutes } from "./openai_api.ts";
import { personaRoutes } from "./personas.ts";
import { presetRoutes } from "./presets.ts";
import { pushRoutes } from "./push.ts";
import { regexScriptRoutes } from "./regex_scripts.ts";
import { responseRoutes } from "./responses.ts";
import { ERRORS, json } from "./schemas/common.ts";
import { settingsRoutes } from "./settings.ts";
import { speechRoutes, transcriptionRoutes } from "./speech.ts";
import { tailnetRoutes } from "./tailnet.ts";
import { toolCallRoutes, toolServerRoutes, webToolRoutes } from "./tools.ts";
import { healthzRoute } from "./ui.ts";
import { usageRoutes } from "./usage.ts";

const documentRoute = createRoute({
  method: "get",
  path: "/api/openapi.json",
  tags: ["document"],
  summary: "This document",
  responses: { 200: json(z.looseObject({ openapi: z.string() }), "OpenAPI 3.1"), ...ERRORS },
});

/** Creates the router of the API. @param build Name of the build of the page */
export function createApi(services: Services, build?: string): Router {
  const api = createRouter();
  api.openAPIRegistry.registerPath(healthzRoute);
  api.openAPIRegistry.registerPath(metricsRoute);
  api.use("/api/*", refuseTrashedIds(services));
  api.route("/", authRoutes(services));
  api.route("/", healthRoutes(services));
  api.route("/", connectionRoutes(services));
  api.route("/", chatRoutes(services));
  api.route("/", conversationRoutes(services));
  api.route("/", queueRoutes(services));
  api.route("/", characterRoutes(services));
  api.route("/", personaRoutes(services));
  api.route("/", lorebookRoutes(services));
  api.route("/", presetRoutes(services));
  api.route("/", regexScriptRoutes(services));
  api.route("/", memoryRoutes(services));
  api.route("/", attachmentRoutes(services));
  api.route("/", documentRoutes(services));
  api.route("/", libraryRoutes(services));
  api.route("/", trashRoutes(services));
  api.route("/", searchRoutes(services));
  api.route("/", speechRoutes(services));
  api.route("/", transcriptionRoutes(services));
  api.route("/", webToolRoutes(services));
  api.route("/", toolServerRoutes(services));
  api.route("/", imageRoutes(services));
  api.route("/", settingsRoutes(services));
  api.route("/", pushRoutes(services));
  api.route("/", tailnetRoutes(services));
  api.route("/", dataRoutes(services));
  api.route("/", eventRoutes(services, { build }));
  api.route("/", jobRoutes(services));
  api.route("/", importExportRoutes(services));
  api.route("/", modelRoutes(services));
  api.route("/", toolCallRoutes(services));
  api.route("/", usageRoutes(services));
  api.route("/", openAiRoutes(services));
  api.route("/", responseRoutes(services));

  let document: string | undefined;
  api.openapi(documentRoute, (c) => {
    document ??= JSON.stringify(api.getOpenAPI31Document({
      openapi: "3.1.0",
      info: {
        title: "Parlor",
        version: services.version,
        description: "A personal chat front end for language models.",
      },
    }));
    return c.body(document, 200, { "Content-Type": "application/json" }) as never;
  });
  return api;
}
