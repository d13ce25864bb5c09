/**
 * The composition root: builds every service and closes them in reverse. Only this file and the files called
 * `open_<folder>.ts` know how services depend on each other.
 *
 * Opened at once: the data folder with its key and database, and authentication. Everything else opens on first use,
 * because loading its code takes time: `await services.characters()` opens it, or returns the open one.
 */
import type { VersionedItems } from "./integrity/healer.ts";
import type { ChatDeps } from "./chat/open_chat.ts";
import { type Lazy, LazyScope } from "./async/lazy.ts";
import type { ImagePool } from "./attachments/images/image_pool.ts";
import { isLoopbackAddress } from "./auth/hosts.ts";
import { openAuth } from "./auth/auth.ts";
import { findUnendedReplies } from "./conversations/live_replies.ts";
import type { Config } from "./config/config.ts";
import { createMaintenance, openCore } from "./core/open_core.ts";
import { getErrorMessage } from "./errors.ts";
import type { BackendLimits } from "./image_generation/backend.ts";
import { isEnd } from "./jobs/job_store.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics/metrics.ts";
import type { Models } from "./models/models.ts";
import { type NodeTimes, openNodeMemory } from "./tailnet/node_state.ts";
import type { ToolLimits } from "./chat/tools/tool_run.ts";
import type { ServerProbes, ServerProbesDeps } from "./llm/contract/server_probes.ts";
import type { ToolSource } from "./tools/tool_registry.ts";
import type { NodeListener, Tailnet } from "./tailnet/tailnet.ts";
import type { Message } from "./conversations/message.ts";
import { asObject, parseJsonBytes } from "./json/type_guards.ts";
import { pathExists } from "./storage/atomic_file.ts";
import { MODEL_SERVER_FILE, MODEL_SERVER_FOLDER } from "./storage/data_dir.ts";

/** Options of `openServices` that aren't part of the configuration. */
export interface ServiceOptions {
  log: Log;
  /** Prints a secret, such as the pairing code, to the terminal only. */
  announce?: (text: string) => void;
  /** Makes the process end as SIGTERM does. */
  requestStop?: () => void;
  now?: () => number;
  /** Version of Parlor, for exports and backups. */
  version?: string;
  /** Encrypts the daily backups. */
  backupPassphrase?: string;
  /** How long to wait after the last reply before titles and summaries are generated; `Infinity` for never. */
  titleIdleMs?: number;
  /** How long a reply waits at most for each thing that its model server says of itself: its kind, sizes and counts. */
  modelFactsMs?: number;
  /** Limits of calls to image backends. */
  imageLimits?: Partial<BackendLimits>;
  tailnetTimes?: Partial<NodeTimes>;
  /** When model servers are asked what they do. */
  probes?: Pick<ServerProbesDeps, "limitMs" | "isManual">;
  /** Additional sources of tools, for tests. */
  toolSources?: readonly (() => Promise<ToolSource>)[];
  /** Limits of replies that call tools. */
  toolLimits?: Partial<ToolLimits>;
}

/** ID of the connection to the model server that Parlor runs. */
const LOCAL_CONNECTION = "local";

/** Every service by name; see the end of `buildServices`. Functions open their service on first use. */
export interface Services extends Awaited<ReturnType<typeof buildServices>> {}

/**
 * Opens the data folder and the services. If that fails, everything is closed again.
 *
 * @throws {AppError} Its message is for the terminal.
 */
export async function openServices(config: Config, options: ServiceOptions): Promise<Services> {
  const scope = new LazyScope();
  try {
    return await buildServices(config, options, scope);
  } catch (error) {
    await scope.close();
    throw error;
  }
}

async function buildServices(config: Config, options: ServiceOptions, scope: LazyScope) {
  const { log, announce = () => {}, requestStop = () => {}, now = Date.now, version = "" } = options;
  const openTrashKind = async (kind: string) => await trashKinds[kind]?.();
  const core = await openCore({ config, log, now, version, openTrashKind }, scope);
  const { budget, db, events, folders, idempotency, jobs, ownListeners, sealer, settings, trash } = core;
  const nodeMemory = openNodeMemory({ config, db, log, sealer: sealer.forPurpose("settings") });
  const auth = await openAuth({
    ...core,
    getOwnNode: () => nodeMemory.own,
    announcePairingCode: (code) => announce(`Pairing code: ${code}`),
  });
  scope.onClose(() => auth.close());

  if (config.guardAllow.length > 0) {
    log(
      "warn",
      `Cards and pages can use the private addresses ${config.guardAllow.join(", ")}, because guard_allow lists them`,
    );
  }
  if (!isLoopbackAddress(config.host) && config.host !== "localhost" && config.allowedHosts.length === 0) {
    log(
      "warn",
      `Listening on ${config.host}, but requests from other machines are refused because allowed_hosts is empty`,
    );
  }
  const exactOrigins = [config.hubUrl, config.cardSiteUrl, ...config.releasesUrl === null ? [] : [config.releasesUrl]];
  const guard = scope.lazy(async (onClose) => {
    const { openGuard } = await import("./http/guard/guarded_fetch.ts");
    const guard = await openGuard({ allow: [...config.guardAllow], exactOrigins, ownListeners });
    onClose(() => guard.close());
    return guard;
  });
  const cardSite = scope.lazy(async () => {
    const { CardSite } = await import("./characters/sites/card_site.ts");
    const { cardSiteUrl: siteUrl, maxUploadBodyBytes: maxCardBytes } = config;
    return new CardSite({ guard: await guard(), sandbox: core.sandbox, siteUrl, maxCardBytes, now });
  });

  const metrics = config.metrics ? await openMetrics() : undefined;

  async function openMetrics(): Promise<Metrics> {
    const [{ Metrics }, { measureSpace }] = await Promise.all([
      import("./metrics/metrics.ts"),
      import("./diagnostics/data_report.ts"),
    ]);
    const metrics = new Metrics({
      ...core,
      version,
      async measureData() {
        const used = await measureSpace(core.dataDir.path, config.modelsDir);
        return Object.fromEntries(used.map(({ what, sizeBytes }) => [what, sizeBytes]));
      },
    });
    scope.onClose(() => metrics.close());
    return metrics;
  }

  const usage = scope.lazy(async (onClose) => {
    const { UsageCounter } = await import("./usage/usage.ts");
    const counter = new UsageCounter({
      ...core,
      isExpired: core.retention.isExpired,
      sealer: sealer.forPurpose("usage"),
    });
    onClose(() => counter.close());
    return counter;
  });
  const llm = scope.lazy(async (onClose) => {
    const [
      { ConnectionInspector, openConnections },
      { createUpstreamClient },
      { ModelRouter },
      { ContextSizes },
      { ServerProbes },
    ] = await Promise.all([
      import("./llm/connections/connections.ts"),
      import("./llm/upstream_client.ts"),
      import("./llm/model_router.ts"),
      import("./llm/context_sizes.ts"),
      import("./llm/contract/server_probes.ts"),
    ]);
    const timeouts = {
      connectMs: config.upstreamConnectTimeoutMs,
      firstByteMs: config.upstreamFirstByteTimeoutMs,
      idleMs: config.upstreamIdleTimeoutMs,
    };
    const connections = await openConnections({
      ...core,
      sealer: sealer.forPurpose("connections"),
      timeouts,
      // It may have been started again with another version or other options.
      onRecovered: (id) => probes.check(id, { isNews: true }),
    });
    onClose(() => connections.memory.close());
    const counter = await usage();
    const upstream = createUpstreamClient({ ownListeners, meter: metrics, record: counter.record, log });
    onClose(() => upstream.close());
    const inspector = new ConnectionInspector({ connections, client: upstream, now, maxWaitMs: options.modelFactsMs });
    onClose(() => inspector.close());
    const contextSizes = new ContextSizes(upstream, options.modelFactsMs);
    const probes: ServerProbes = new ServerProbes({
      connections,
      client: upstream,
      inspector,
      contextSizes,
      log,
      now,
      ...options.probes,
    });
    onClose(() => probes.close());
    const modelRouter = new ModelRouter({
      connections,
      client: upstream,
      inspector,
      now,
      async prepareUse(id, signal) {
        if (id === LOCAL_CONNECTION) await (await models()).runner.wake(signal);
      },
    });
    return { connections, upstream, inspector, modelRouter, contextSizes, probes };
  });
  const modelPulls = scope.lazy(async (onClose) => {
    const { ModelPulls } = await import("./llm/ollama/ollama_models.ts");
    const pulls = new ModelPulls({ jobs, ...await llm() });
    onClose(() => pulls.close());
    return pulls;
  });
  const models: Lazy<Models> = scope.lazy(async (onClose) => {
    const { Models } = await import("./models/models.ts");
    const { connections } = await llm();
    const models = new Models({
      ...core,
      dataDir: core.dataDir.path,
      guard: await guard(),
      guardAllow: config.guardAllow,
      guardExactOrigins: exactOrigins,
      folder: folders.models,
      hubUrl: config.hubUrl,
      hubTokenFile: config.hubTokenFile,
      llamaServerPath: config.llamaServerPath,
      async offer({ name, activate, ...fields }) {
        await connections.put({ id: LOCAL_CONNECTION, name: `${name} (this machine)`, kind: "openai", ...fields });
        if (activate) await connections.activate(LOCAL_CONNECTION);
      },
    });
    onClose(() => models.runner.close({ leave: leftConnections.has(LOCAL_CONNECTION) }));
    return models;
  });

  const takeOverModel = async () => {
    const isLeft = await pathExists(core.dataDir.file(MODEL_SERVER_FOLDER, MODEL_SERVER_FILE));
    if (isLeft) await (await models()).runner.takeOver();
  };

  /** Connections at whose servers replies go on after the end. */
  let leftConnections: ReadonlySet<string> = new Set();
  const images = scope.lazy(async (): Promise<ImagePool> => {
    const { openImagePool } = await import("./attachments/images/image_pool.ts");
    return openImagePool(core.sandbox);
  });
  const attachments = scope.lazy(async () => {
    const { Attachments } = await import("./attachments/attachments.ts");
    const attachments = new Attachments({
      ...core,
      sealer: sealer.forPurpose("attachments"),
      nameSealer: sealer.forPurpose("attachment names"),
      folder: folders.attachments,
      maxBytes: config.maxUploadBodyBytes,
    });
    trash.register("attachment", attachments);
    return attachments;
  });
  const documents = scope.lazy(async (onClose) => {
    const { openDocuments } = await import("./documents/open_documents.ts");
    const opened = openDocuments({
      ...core,
      sealer: sealer.forPurpose("documents"),
      folder: folders.documents,
      maxBytes: config.maxDocumentBodyBytes,
      openGuard: guard,
    }, onClose);
    trash.register("document", opened.documents);
    return opened;
  });
  const documentUses = scope.lazy(async () => {
    const { DocumentUseStore } = await import("./documents/document.ts");
    return new DocumentUseStore(core);
  });
  const personas = scope.lazy(async () => {
    const { Personas } = await import("./personas/personas.ts");
    const personas = new Personas({
      ...core,
      sealer: sealer.forPurpose("trash"),
      folder: folders.personas,
      trashFolder: folders.trash,
      images: await images(),
    });
    trash.register("persona", personas);
    return personas;
  });
  const characters = scope.lazy(async (onClose) => {
    const { openCharacters } = await import("./characters/open_characters.ts");
    const opened = await openCharacters({
      ...core,
      cardDirs: config.cardDirs,
      trashSealer: sealer.forPurpose("trash"),
      images: await images(),
      builtinFlag: core.openFlag("builtin_app_installed", config.builtinAppInstalled),
    });
    onClose(opened.close);
    return opened;
  });
  const lorebooks = scope.lazy(async () => {
    const { openLorebooks } = await import("./lorebooks/lorebooks.ts");
    return openLorebooks({ ...core, sealer: sealer.forPurpose("lorebooks") });
  });
  const presets = scope.lazy(async () => {
    const { openPresets } = await import("./presets/presets.ts");
    const getChosenId = () => settings.get().settings.preset_id;
    return openPresets({ ...core, sealer: sealer.forPurpose("presets"), getChosenId });
  });
  const regexScripts = scope.lazy(async () => {
    const { openRegexScripts } = await import("./regex_scripts/regex_scripts.ts");
    return await openRegexScripts({ ...core, sealer: sealer.forPurpose("settings") });
  });
  const memory = scope.lazy(async () => {
    const { openMemories } = await import("./memories/memories.ts");
    return openMemories(core);
  });
  const getUserName = async (personaId?: string) => {
    const name = personaId === undefined ? undefined : await (await personas()).findName(personaId);
    return name ?? core.getOwnerName();
  };

  const choosePersona = async ([first, ...others]: readonly string[]) => {
    if (first === undefined) return undefined;
    const own = others.length === 0 ? await (await personas()).findIdFor(first) : undefined;
    // Set now, so that the chat keeps it when the default changes.
    return own ?? settings.get().settings.default_persona_id ?? undefined;
  };

  const conversations = scope.lazy(async () => {
    const { openConversations } = await import("./conversations/open_conversations.ts");
    return await openConversations(core, {
      attachments: await attachments(),
      images: await images(),
      characters: (await characters()).characters,
      getUserName,
      choosePersona,
    });
  });
  const search = scope.lazy(async (onClose) => {
    const { Search } = await import("./conversations/search/search.ts");
    const search = new Search({
      path: core.databasePath,
      sealer: sealer.forPurpose("conversations"),
      documentSealer: sealer.forPurpose("documents"),
    });
    onClose(() => search.close());
    return search;
  });
  const memoryTool = scope.lazy(async () => {
    const { MemoryTool } = await import("./memories/memory_proposals.ts");
    return new MemoryTool({
      ...await memory(),
      isEnabled: () => settings.get().settings.memory_proposals,
      async findChat(id) {
        const head = (await conversations()).store.find(id)?.head;
        return head && {
          learns: head.learn !== false,
          characterId: head.participants[0]?.character_id,
          personaId: head.persona_id as string | undefined ?? settings.get().settings.default_persona_id ?? undefined,
        };
      },
    });
  });
  /** Sources of tools, in the order in which models get their tools. */
  const toolSources: (() => Promise<ToolSource>)[] = [
    ...options.toolSources ?? [],
    () => webTools(),
    () => memoryTool(),
    () => mcp(),
  ];
  const tools = scope.lazy(async () => {
    const { ToolRegistry } = await import("./tools/tool_registry.ts");
    return new ToolRegistry(toolSources);
  });
  const toolCalls = scope.lazy(async () => {
    const { ToolCallStore } = await import("./tools/tool_call_store.ts");
    return new ToolCallStore(db, sealer.forPurpose("conversations"));
  });
  const chat = scope.lazy(async (onClose) => {
    const { openChat } = await import("./chat/open_chat.ts");
    const models = await llm();
    const deps = {
      ...models,
      ...await conversations(),
      ...await lorebooks(),
      attachments: await attachments(),
      images: await images(),
      cards: (await characters()).characters,
      personas: await personas(),
      presets: await presets(),
      regexScripts: await regexScripts(),
      findModel: ({ connection_id, model }) => {
        const own = typeof connection_id === "string" ? models.connections.find(connection_id) : undefined;
        return typeof model === "string" ? model : (own ?? models.connections.findActive())?.model;
      },
      documents,
      memory: await memory(),
      tools,
      callStore: await toolCalls(),
      addToGallery: async ({ names, model, connectionId, ...origin }) =>
        (await imageGeneration()).gallery.add({ ...origin, chatModel: { model, connectionId } }, names),
      toolLimits: options.toolLimits,
      push: await push(),
      titleIdleMs: options.titleIdleMs,
      modelFactsMs: options.modelFactsMs,
    } satisfies ChatDeps;
    return await openChat(core, deps, onClose);
  });

  const openAiModels = scope.lazy(async () => {
    const { OpenAiModels } = await import("./openai_api/openai_models.ts");
    return new OpenAiModels({ ...await llm(), characters: (await characters()).characters });
  });

  const responses = scope.lazy(async () => {
    const [{ Responses }, { ResponseStore }] = await Promise.all([
      import("./openai_api/responses.ts"),
      import("./openai_api/response_store.ts"),
    ]);
    const responseSealer = sealer.forPurpose("responses");
    const store = new ResponseStore({ db, sealer: responseSealer, now });
    const { store: chats, reader } = await conversations();
    return new Responses({
      store,
      sealer: responseSealer,
      maxContextBytes: config.maxChatBodyBytes,
      async readMessages(id) {
        if (chats.find(id) === undefined) return undefined;
        const { messages } = asObject(parseJsonBytes((await reader.read(id)).json));
        return messages as Message[];
      },
    });
  });

  const push = scope.lazy(async (onClose) => {
    const { Push } = await import("./push/push.ts");
    const push = new Push({
      ...core,
      sealer: sealer.forPurpose("push"),
      openGuard: guard,
      getLanguage: () => settings.get().settings.language,
      hasAccess: async ({ credentialId, tokenId }) =>
        (credentialId === undefined || (await auth.listCredentials()).some(({ id }) => id === credentialId)) &&
        (tokenId === undefined || (await auth.listTokens()).some(({ id }) => id === tokenId)),
    });
    onClose(() => push.close());
    return push;
  });

  const imageServices = scope.lazy(async (onClose) => {
    const [{ openImageGeneration }, { MessageAttachments }] = await Promise.all([
      import("./image_generation/image_generation.ts"),
      import("./conversations/message_attachments.ts"),
    ]);
    const { modelRouter } = await llm();
    const opened = await openImageGeneration({
      ...core,
      sealer: sealer.forPurpose("images"),
      attachments: await attachments(),
      avatars: (await characters()).avatars,
      messages: new MessageAttachments({ ...await conversations(), events }),
      ask: (messages, signal) => modelRouter.ask(messages, signal),
      imagePool: await images(),
      limits: options.imageLimits,
    });
    onClose(opened.close);
    return opened;
  });
  const imageGeneration = scope.lazy(async () => (await imageServices()).images);
  const portraits = scope.lazy(async () => {
    const { Portraits } = await import("./characters/generation/character_generator.ts");
    const { painter } = await imageServices();
    return new Portraits({ jobs, characters: (await characters()).characters, painter });
  });
  const characterGenerator = scope.lazy(async () => {
    const { CharacterGenerator } = await import("./characters/generation/character_generator.ts");
    return new CharacterGenerator({
      jobs,
      models: (await llm()).modelRouter,
      characters: (await characters()).characters,
      attachments: await attachments(),
      images: await images(),
    });
  });
  const speech = scope.lazy(async (onClose) => {
    const { openSpeech } = await import("./speech/speech.ts");
    return await openSpeech(core, await guard(), onClose);
  });
  const transcription = scope.lazy(async (onClose) => {
    const { openTranscription } = await import("./transcription/transcription.ts");
    return openTranscription(core, onClose);
  });
  const webTools = scope.lazy(async (onClose) => {
    const [{ openHttpClient }, { PageReader }, { WebSettings }, { WebTools }] = await Promise.all([
      import("./http/http_client.ts"),
      import("./tools/web/page_reader.ts"),
      import("./tools/web/web_settings.ts"),
      import("./tools/web/web_tools.ts"),
    ]);
    const client = openHttpClient({ ownListeners });
    onClose(() => client.close());
    return new WebTools({
      settings: new WebSettings({ db, events, sealer: sealer.forPurpose("web tools") }),
      client,
      pages: new PageReader({ sandbox: core.sandbox, openGuard: guard, now }),
    });
  });

  const mcp = scope.lazy(async (onClose) => {
    const { openMcp } = await import("./mcp/mcp.ts");
    const mcp = await openMcp({
      ...core,
      sealer: sealer.forPurpose("tools"),
      allowsPrograms: config.toolsAllowPrograms,
      openGuard: guard,
      cacheFolder: folders.cache,
    });
    onClose(() => mcp.close());
    return mcp;
  });

  /** The stores that imports write to and exports read from. */
  const getOwnedData = async () => ({
    attachments: await attachments(),
    documents: (await documents()).documents,
    documentUses: await documentUses(),
    memories: (await memory()).memories,
    proposals: (await memory()).proposals,
    gallery: (await imageGeneration()).gallery,
    personas: await personas(),
    presets: await presets(),
    characters: (await characters()).characters,
    lorebooks: (await lorebooks()).lorebooks,
    voices: (await speech()).voices,
    speech: (await speech()).speech.settings,
    transcription: (await transcription()).settings,
    workflows: (await imageGeneration()).workflows,
    imageProfiles: (await imageGeneration()).profiles,
    connections: (await llm()).connections,
    usage: await usage(),
    toolServers: (await mcp()).servers,
    regexScripts: await regexScripts(),
    web: (await webTools()).settings,
    push: await push(),
  });
  const imports = scope.lazy(async (onClose) => {
    const { Imports } = await import("./import_export/imports.ts");
    const { conversationImporter } = await conversations();
    const imports = await Imports.open({
      ...core,
      ...await getOwnedData(),
      conversationImporter,
      folder: folders.uploads,
      sourceFolder: folders["import-sources"],
    });
    onClose(() => imports.close());
    return imports;
  });
  const exports = scope.lazy(async () => {
    const { Exports } = await import("./import_export/exports.ts");
    const { reader, store, variants } = await conversations();
    const data = await getOwnedData();
    const listConversationIds = () => store.listIds();
    return new Exports({ ...core, ...data, reader, variants, listConversationIds, getUserName });
  });

  const notifyDamage = () =>
    void push().then((opened) => opened.notifyDamage()).catch((error) =>
      log("error", "Can't send a notification about damage", { error: getErrorMessage(error) })
    );
  const integrity = scope.lazy(async (onClose) => {
    const { Integrity } = await import("./integrity/integrity.ts");
    const integrity = new Integrity({
      ...core,
      dataDir: core.dataDir.path,
      sealer: sealer.forPurpose("settings"),
      correctDerived: async () => (await characters()).characters.verifyList(),
      onFound: notifyDamage,
    });
    onClose(() => integrity.close());
    return integrity;
  });
  core.databaseMark.listen(notifyDamage);
  core.damageReports.listen(() =>
    void integrity().catch((error) => log("error", "Can't check stored data", { error: getErrorMessage(error) }))
  );
  const healer = scope.lazy(async () => {
    const { Healer } = await import("./integrity/healer.ts");
    const versioned: Record<string, () => Promise<VersionedItems>> = {
      characters: async () => (await characters()).characters,
      personas: async () => await personas(),
      workflows: async () => (await imageGeneration()).workflows,
    };
    return new Healer({
      ...core,
      integrity: await integrity(),
      openVersioned: async (folder) => await versioned[folder]?.(),
      listBackups: async () => await (await backups()).listPaths(),
      backupPassphrase: options.backupPassphrase,
    });
  });
  const backups = scope.lazy(async (onClose) => {
    const [{ Backups }, { listFixedSettings, readBackupSettings, saveBackupSettings }] = await Promise.all([
      import("./backup/backups.ts"),
      import("./backup/backup_settings.ts"),
    ]);
    const backups = Backups.open({
      ...core,
      dataDir: core.dataDir.path,
      passphrase: options.backupPassphrase,
      settings: readBackupSettings(config),
      fixed: listFixedSettings(config),
      save: (before, after) => saveBackupSettings(config, before, after),
      after: config.backupAfter,
      mustBeMount: config.backupDirMustBeMount,
      storeCreatedAtMs: core.createdAtMs,
      integrity,
    });
    onClose(() => backups.close());
    return backups;
  });
  const diagnostics = scope.lazy(async () => {
    const { Diagnostics } = await import("./diagnostics/data_report.ts");
    return new Diagnostics(config, await backups(), core.databaseMark, options.backupPassphrase);
  });
  const releases = scope.lazy(async (onClose) => {
    const { ReleaseCheck } = await import("./releases/releases.ts");
    const { releasesUrl: url, releasesProxy: proxy } = config;
    const check = new ReleaseCheck({
      ...core,
      sealer: sealer.forPurpose("settings"),
      source: url === null ? undefined : { url, proxy },
      isWanted: () => settings.get().settings.check_releases,
      openGuard: guard,
    });
    onClose(() => check.close());
    return check;
  });
  // Turning it on asks at once, instead of with the next maintenance.
  if (config.releasesUrl !== null) {
    events.subscribe(({ kind }) => {
      if (kind !== "settings" || !settings.get().settings.check_releases) return;
      releases().then((check) => check.look()).catch((error) =>
        log("error", "Can't look for new versions", { error: getErrorMessage(error) })
      );
    });
  }
  const setup = scope.lazy(async () => {
    const { Setup, detectSetupEnvironment } = await import("./settings/settings.ts");
    const environment = await detectSetupEnvironment(config.discoverHosts);
    return new Setup({ completed: core.openFlag("setup_completed", config.setupCompleted), events, environment });
  });
  let openTailnetListener: (tailnet: Tailnet) => NodeListener;
  const tailnet = scope.lazy(async (onClose) => {
    const { openTailnet } = await import("./tailnet/tailnet.ts");
    const tailnet = openTailnet({ ...core, memory: nodeMemory, times: options.tailnetTimes });
    onClose(() => tailnet.close());
    tailnet.begin(() => openTailnetListener(tailnet));
    return tailnet;
  });

  const trashKinds: Record<string, Lazy<unknown>> = {
    attachment: attachments,
    document: documents,
    memory,
    persona: personas,
    character: characters,
    lorebook: lorebooks,
    preset: presets,
    conversation: conversations,
    message: conversations,
    workflow: imageGeneration,
    voice: speech,
  };
  const jobKinds: Record<string, Lazy<unknown>> = {
    image: imageGeneration,
    portrait: portraits,
    character: characterGenerator,
    model_download: models,
    model_pull: modelPulls,
    voice_import: speech,
    import: imports,
    backup: backups,
    document: documents,
  };
  // Replies and jobs that an earlier process left unfinished are resumed or ended before anyone can ask for them.
  if (findUnendedReplies(db).length > 0) await conversations();
  // The remaining replies wait for a decision about a tool call. They continue.
  if (findUnendedReplies(db).length > 0) await chat();
  const unfinished = new Set(jobs.list().filter(({ state }) => !isEnd(state)).map(({ kind }) => kind));
  for (const kind of unfinished) await jobKinds[kind]?.();
  if (config.backupDir !== null) await backups();
  // Creates the demo connection and installs the built-in character.
  if (core.isFirstStart) await Promise.all([llm(), characters()]);

  const maintenance = createMaintenance(core, {
    attachments,
    documents,
    conversations,
    imports,
    speech,
    memory,
    chat,
    responses,
    usage,
    integrity,
    releases,
  });

  return {
    config,
    log,
    version,
    events,
    jobs,
    /** What Parlor listens on. Whoever opens a listener adds it. */
    ownListeners,
    trash,
    settings,
    /** What requests with an `Idempotency-Key` made. */
    idempotency,
    /** Limits the memory that large requests, responses and imports use at the same time. */
    budget,
    /** Metrics for Prometheus; `undefined` if they are off. */
    metrics,
    auth,
    /** Fetches addresses that come from a user, a page or a redirect (SSRF protection). */
    guard,
    /** Search and download of characters. */
    cardSite,
    /** Connections to model servers, and the client that calls them. */
    llm,
    /** How much models were used. */
    usage,
    /** Downloads of models by Ollama servers. */
    modelPulls,
    /** Models on this machine: downloads, and the local model server. */
    models,
    attachments,
    /** Files and links whose text a model can be sent. */
    documents,
    /** Documents that are attached to characters and personas. */
    documentUses,
    personas,
    characters,
    lorebooks,
    presets,
    /** The owner's regex scripts, and decisions about those of cards and presets. */
    regexScripts,
    /** Notes that are sent with chats, and proposals of notes. */
    memory,
    conversations,
    search,
    chat,
    tools,
    toolCalls,
    /** Lists and finds the models of the OpenAI-compatible API. */
    openAiModels,
    /** Requests and stored responses of the Responses API. */
    responses,
    /** Notifications of replies on other devices. */
    push,
    imageGeneration,
    portraits,
    /** Characters written by a model. */
    characterGenerator,
    speech,
    /** Converts recordings to text. */
    transcription,
    /** Web search and page reading, as tools. */
    webTools,
    /** MCP servers and their tools. */
    mcp,
    imports,
    exports,
    backups,
    /** Notices stored data that can't be read. */
    integrity,
    /** Restores what can't be read. */
    healer,
    diagnostics,
    /** Whether there is a newer version. */
    releases,
    setup,
    tailnet,
    /**
     * Starts the tailnet node if it's enabled, takes over the model server of the last run, and schedules maintenance. Call
     * it once requests can be served.
     */
    start(openListener: (tailnet: Tailnet) => NodeListener) {
      openTailnetListener = openListener;
      if (nodeMemory.wanted.enabled || nodeMemory.isWipeDue) {
        tailnet().catch((error) => log("error", "Can't start the tailnet node", { error: getErrorMessage(error) }));
      }
      takeOverModel().catch((error) =>
        log("error", "Can't take over the local model of the last run", { error: getErrorMessage(error) })
      );
      maintenance.start();
    },
    /** Makes the process end: `stop` and `close` follow. */
    requestStop,
    /** Opens what the page needs first, and prepares the database for writing. */
    async warmUp() {
      db.prepare();
      await Promise.all([setup(), chat()]);
    },
    /** Runs all maintenance tasks now. */
    runMaintenance: () => maintenance.runAll(),
    /** Ends replies, which are saved, and the tailnet node. Call it while the listener drains, so clients see the end. */
    async stop() {
      const isOpen = <T>(opened: Promise<T> | undefined) => Promise.resolve(opened).catch(() => undefined);
      const [, left] = await Promise.all([
        isOpen(tailnet.opened).then((tailnet) => tailnet?.close()),
        isOpen(chat.opened).then((opened) => opened?.chat.close()),
      ]);
      if (left !== undefined) leftConnections = left;
    },
    /** Closes every service, newest first. */
    async close() {
      await maintenance.close();
      await scope.close();
    },
  };
}
