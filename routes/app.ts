/** The whole HTTP side: the parts of the API and the page. Read it first; the chain around all of it is chain.ts. */
import { Hono } from "hono";
import { getPath } from "hono/utils/url";
import type { Connection, Env } from "../middleware/env.ts";
import { traceOf } from "../services/errors.ts";
import type { Services } from "../services/services.ts";
import { type Answering, chained } from "./chain.ts";
import { isDefect } from "./errors.ts";
import { healthzFacts, healthzRoute, healthzRoutes } from "./healthz.ts";
import { createParts, type Part } from "./parts.ts";
import { bodyLimitsOf, routeFactsOf } from "./http/route_facts.ts";
import type { Router } from "./http/router.ts";
import { uiAssetsRoutes } from "./ui_assets.ts";

/** What the page asks for as it opens. */
const FIRST_PATHS = [
  ...["/api/auth/status", "/api/setup", "/api/settings", "/api/events", "/api/conversations", "/api/characters"],
  ...["/api/personas", "/api/connections", "/api/chat", "/api/health", "/api/jobs"],
];

/** What a listener hands requests to. */
export interface App {
  /** Gives every route, for the API document. */
  router(): Promise<Router>;
  /** Answers a request; never rejects. */
  fetch(request: Request, connection: Connection): Promise<Response>;
  /** Loads what takes longest of any first request below /api, so that whoever comes first does not wait for it. */
  prepare(): Promise<void>;
}

/** The API. What a part needs of the services is opened with it; `() => …` is opened when a request needs that much. */
function partsOf(services: Services, { version, all }: { version: string; all(): Promise<Router> }): Part[] {
  const { auth, config } = services;
  const { discoverHosts } = config;
  return [
    part(["/api/auth/status"], async () => {
      const { authStatusRoutes } = await import("./auth_status.ts");
      return [authStatusRoutes(auth.access, auth.pageOrigins)];
    }),
    part(["/api/auth"], async () => {
      const { authCeremonyRoutes } = await import("./auth_ceremonies.ts");
      const { authAccessRoutes } = await import("./auth_access.ts");
      return [authCeremonyRoutes(auth, auth.hosts), authAccessRoutes(auth)];
    }),
    part(["/api/health", "/api/models"], async () => {
      const { healthRoutes } = await import("./health.ts");
      const { connections, upstream } = await services.llm();
      return [healthRoutes(connections, { upstream, version })];
    }),
    part(["/api/connections"], async () => {
      const { connectionRoutes } = await import("./connections.ts");
      const { connections, upstream } = await services.llm();
      return [connectionRoutes(connections, { upstream, discoverHosts })];
    }),
    part(["/api/chat"], async () => {
      const { chatRoutes } = await import("./chat.ts");
      return [chatRoutes(await services.chat())];
    }),
    part(["/api/conversations"], async () => {
      const { conversationRoutes } = await import("./conversations.ts");
      const { messageRoutes } = await import("./messages.ts");
      const { revisionRoutes } = await import("./revisions.ts");
      const { forkRoutes } = await import("./forks.ts");
      const { conversations: documents, messages, revisions, forks, reader } = await services.conversations();
      return [
        conversationRoutes(documents),
        messageRoutes(messages),
        revisionRoutes(revisions, reader),
        forkRoutes(forks, reader),
      ];
    }),
    part(["/api/characters"], async () => {
      const { cardSiteRoutes } = await import("./card_sites.ts");
      const { creatorRoutes } = await import("./character_generation.ts");
      const { characterRoutes } = await import("./characters.ts");
      const { characters, avatars, builtinCharacter } = await services.characters();
      const { cardSite, characterGenerator, portraits } = services;
      return [
        // Routes under words beside ids, as /api/characters/search, come before these.
        cardSiteRoutes(cardSite, characters),
        creatorRoutes(characterGenerator),
        characterRoutes({
          ...{ characters, avatars, builtinCharacter, portraits },
          maxCardBytes: config.maxUploadBodyBytes,
        }),
      ];
    }),
    part(["/api/personas"], async () => {
      const { personaRoutes } = await import("./personas.ts");
      return [personaRoutes(await services.personas(), { maxCardBytes: config.maxUploadBodyBytes })];
    }),
    part(["/api/lorebooks"], async () => {
      const { lorebookRoutes } = await import("./lorebooks.ts");
      const { lorebooks } = await services.lorebooks();
      return [lorebookRoutes(lorebooks, async (request) => await (await services.lorebookTrial())(request))];
    }),
    part(["/api/presets"], async () => {
      const { presetRoutes } = await import("./presets.ts");
      return [presetRoutes(await services.presets())];
    }),
    part(["/api/attachments"], async () => {
      const { attachmentRoutes } = await import("./attachments.ts");
      return [attachmentRoutes(await services.attachments())];
    }),
    part(["/api/trash"], async () => {
      const { trashRoutes } = await import("./trash.ts");
      return [trashRoutes(services.trash)];
    }),
    part(["/api/search"], async () => {
      const { searchRoutes } = await import("./search.ts");
      return [searchRoutes(await services.search())];
    }),
    part(["/api/tts"], async () => {
      const { ttsRoutes } = await import("./tts.ts");
      return [ttsRoutes((await services.speech()).speech)];
    }),
    part(["/api/voices"], async () => {
      const { voiceRoutes } = await import("./voices.ts");
      const { voices, voiceImports } = await services.speech();
      return [voiceRoutes(voices, voiceImports)];
    }),
    part(["/api/image"], async () => {
      const { imageRoutes } = await import("./images.ts");
      return [imageRoutes(await services.imageGeneration(), { discoverHosts })];
    }),
    part(["/api/settings"], async () => {
      const { settingsRoutes } = await import("./settings.ts");
      return [settingsRoutes(services.settings)];
    }),
    part(["/api/setup"], async () => {
      const { setupRoutes } = await import("./setup.ts");
      return [setupRoutes(await services.setup())];
    }),
    part(["/api/tailnet"], async () => {
      const { tailnetRoutes } = await import("./tailnet.ts");
      return [tailnetRoutes(await services.tailnet())];
    }),
    part(["/api/data", "/api/findings"], async () => {
      const { upkeepRoutes } = await import("./data.ts");
      return [upkeepRoutes(await services.diagnostics(), await services.backups())];
    }),
    part(["/api/licences"], async () => {
      const { licenceRoutes } = await import("./licenses.ts");
      return [licenceRoutes()];
    }),
    part(["/api/events"], async () => {
      const { eventRoutes } = await import("./events.ts");
      return [eventRoutes(services.events)];
    }),
    part(["/api/jobs"], async () => {
      const { jobRoutes } = await import("./jobs.ts");
      return [jobRoutes(services.jobs)];
    }),
    part(["/api/import"], async () => {
      const { importRoutes } = await import("./imports.ts");
      return [importRoutes(await services.imports(), { maxBytes: config.maxImportBodyBytes })];
    }),
    part(["/api/export", "/api/conversations/{id}/export"], async () => {
      const { exportRoutes } = await import("./exports.ts");
      return [exportRoutes(await services.exports())];
    }),
    part(["/api/models/browse", "/api/models/download", "/api/models/downloads", "/api/models/local"], async () => {
      const { modelRoutes } = await import("./models.ts");
      const { runnerRoutes } = await import("./runner.ts");
      const open = await services.models();
      return [modelRoutes(open), runnerRoutes(open.runner)];
    }),
    part(["/api/openapi.json"], async () => {
      const { openapiRoutes } = await import("./openapi.ts");
      return [openapiRoutes(all, version)];
    }),
  ];
}

function part(paths: readonly string[], load: () => Promise<Router[]>): Part {
  return { paths, load };
}

function failing(error: unknown): Hono<Env> {
  return new Hono<Env>().all("*", () => {
    throw error;
  });
}

/**
 * Builds the HTTP side over open services.
 *
 * @param options.version Parlor's version, for the API document.
 * @param options.uiFolder Folder with the built page.
 */
export function createApp(services: Services, options: { version: string; uiFolder: string }): App {
  const { version, uiFolder } = options;
  const { config, log } = services;
  const limits = bodyLimitsOf(config);
  // Whatever no part answers: the page, the probe of a container, and what is not there.
  const others = chained(services, [healthzRoutes(), uiAssetsRoutes(uiFolder)], healthzFacts(limits));
  const parts = createParts(
    partsOf(services, { version, all: router }),
    (routers) => chained(services, routers, routers.flatMap((each) => routeFactsOf(each, limits))),
  );
  let isWarm = false;

  async function router(): Promise<Router> {
    const { allRoutes } = await import("./openapi.ts");
    return allRoutes(await parts.all());
  }

  /** Whoever comes first is answered first; what he asks for next is loaded then. */
  async function thenWarmUp(first: Promise<Response>): Promise<Response> {
    isWarm = true;
    const answer = await first;
    setTimeout(() => {
      Promise.all([services.warmUp(), parts.load(FIRST_PATHS)]).catch((error) => {
        // The server may be stopping; each request tries again what cannot be loaded now.
        if (isDefect(error)) log("error", "Cannot load what a page asks for", { error: traceOf(error) });
      });
    });
    return answer;
  }

  async function answer(request: Request, connection: Connection, answering: Promise<Answering>): Promise<Response> {
    try {
      return await (await answering)(request, connection);
    } catch (error) {
      // Through the chain, as any other answer: a stranger is told no more than elsewhere.
      return await chained(services, [failing(error)], [])(request, connection);
    }
  }

  return {
    router,
    async prepare() {
      await Promise.all([import("./http/router.ts"), import("node:crypto")]);
    },
    fetch(request, connection) {
      const path = getPath(request);
      const answering = parts.answering(path) ?? others;
      const given = answering instanceof Promise
        ? answer(request, connection, answering)
        : answering(request, connection);
      return isWarm || path === healthzRoute.path ? given : thenWarmUp(given);
    },
  };
}
