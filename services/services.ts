/** Builds every service once, in order; close() undoes it in reverse. The only file that knows every room. */
import { Attachments } from "./attachments/attachments.ts";
import { type ImagePool, openImagePool } from "./attachments/image_pool.ts";
import { createHostPolicy, type HostPolicy } from "./auth/host_names.ts";
import { type Auth, openAuth } from "./auth/open_auth.ts";
import { warnOfPlacesWithoutPasskeys } from "./auth/start_warnings.ts";
import { createPageOriginWatch, type PageOriginWatch } from "./auth/page_origin.ts";
import { Arrivals } from "./chat/arrivals.ts";
import { AttachmentReferences } from "./chat/attachment_references.ts";
import { BlockStore } from "./chat/blocks.ts";
import { ChatService } from "./chat/chat.ts";
import { Conversations } from "./chat/conversations.ts";
import type { GreetingQuestion } from "./chat/openings.ts";
import { ConversationReader } from "./chat/conversation_reader.ts";
import { ConversationStore } from "./chat/conversation_store.ts";
import { Forks } from "./chat/forks.ts";
import { IdleQueue } from "./chat/idle_queue.ts";
import { Journal } from "./chat/journal.ts";
import { LiveReplies } from "./chat/live_replies.ts";
import { Messages } from "./chat/messages.ts";
import { createChatUpstream } from "./chat/model_choice.ts";
import { MessagePictures } from "./chat/message_pictures.ts";
import { recoverReplies } from "./chat/recovery.ts";
import { describe, type Reply } from "./chat/reply.ts";
import { Revisions } from "./chat/revisions.ts";
import { RevisionStore } from "./chat/revision_store.ts";
import { Search } from "./chat/search.ts";
import { createAskModel } from "./chat/side_question.ts";
import { Summaries } from "./chat/summaries.ts";
import { Titles } from "./chat/titles.ts";
import { removedConversations, removedMessages } from "./chat/trash_kinds.ts";
import { Turns } from "./turns.ts";
import { VariantStore } from "./chat/variants.ts";
import { CardSite } from "./characters/card_site.ts";
import { findCard, greetingsOf, namesOf } from "./characters/greetings.ts";
import { type CharacterRoom, openCharacters } from "./characters/open_characters.ts";
import { Portraits } from "./characters/portraits.ts";
import type { Config } from "./config.ts";
import { scannedConversation } from "./conversation_scan.ts";
import { saveConfigKey } from "./config_file.ts";
import { Creator } from "./creator/creator.ts";
import { settleKeyCheck } from "./crypto/key_check.ts";
import { uuidV7 } from "./crypto/random.ts";
import { createSealer } from "./crypto/sealer.ts";
import { loadStorageKey } from "./crypto/storage_key.ts";
import { createEventHub, type EventHub } from "./events/event_hub.ts";
import type { BackendLimits } from "./images/backend.ts";
import { type ImageRoom, openImages } from "./images/open_images.ts";
import { Exports } from "./exports/exports.ts";
import { openImports } from "./imports/open_imports.ts";
import type { Imports } from "./imports/imports.ts";
import { createJobRunner, type JobRunner } from "./jobs/job_runner.ts";
import { type Connections, openConnections } from "./llm/connections.ts";
import { createUpstreamClient, type UpstreamClient } from "./llm/upstream.ts";
import type { Log } from "./log.ts";
import { estimateTokens } from "./prompts/token_estimate.ts";
import { type LorebookRoom, type LorebookTrial, openLorebooks, openTrial } from "./lorebooks/open_lorebooks.ts";
import { Models } from "./models/models.ts";
import { type Guard, openGuard } from "./net/guarded_fetch.ts";
import { openOwnerClient } from "./net/owner_client.ts";
import { openPresets } from "./presets/open_presets.ts";
import type { Presets } from "./presets/presets.ts";
import { settledGreetings } from "./prompts/greetings.ts";
import { openPrompts } from "./prompts/open_prompts.ts";
import { TokenRatios } from "./prompts/token_ratios.ts";
import { Personas } from "./personas/personas.ts";
import { Settings } from "./settings/settings.ts";
import { openRememberedFlag } from "./setup/remembered_flag.ts";
import { createSetup, type Setup } from "./setup/setup.ts";
import { findSurroundings } from "./setup/surroundings.ts";
import { Speech } from "./speech/speech.ts";
import { SpeechSettings } from "./speech/speech_config.ts";
import { VoiceImports } from "./speech/voice_import.ts";
import { VoiceSamples } from "./speech/voice_samples.ts";
import type { NodeTimes } from "./tailnet/node_status.ts";
import { openTailnet } from "./tailnet/open_tailnet.ts";
import type { Tailnet } from "./tailnet/tailnet.ts";
import { openDatabase } from "./storage/database.ts";
import { openDataDir } from "./storage/data_dir.ts";
import { finishIncoming } from "./storage/incoming.ts";
import { holdsSealedData } from "./storage/sealed_data.ts";
import { Backups } from "./transfer/backups.ts";
import { Trash } from "./transfer/trash.ts";
import { Upkeep } from "./upkeep/upkeep.ts";

/** Everything the routes can be given. */
export interface Services extends CharacterRoom, LorebookRoom {
  config: Config;
  log: Log;
  events: EventHub;
  jobs: JobRunner;
  /** Brings in what other programs, or another Parlor, held. */
  imports: Imports;
  /** Conversations that come from elsewhere. */
  arrivals: Arrivals;
  /** What is carried away. */
  exports: Exports;
  /** Backups in the owner's folder. */
  backups: Backups;
  /** Calls to addresses that a user, a page or a redirect supplied. */
  guard: Guard;
  /** Reads and makes pictures, off the serving thread. */
  images: ImagePool;
  auth: Auth;
  cardSite: CardSite;
  /** Characters that a model writes. */
  creator: Creator;
  /** Pictures that image backends draw. */
  drawn: ImageRoom;
  portraits: Portraits;
  personas: Personas;
  attachments: Attachments;
  /** What conversations refer to. */
  references: AttachmentReferences;
  hosts: HostPolicy;
  pageOrigins: PageOriginWatch;
  upstream: UpstreamClient;
  connections: Connections;
  models: Models;
  conversations: Conversations;
  messages: Messages;
  revisions: Revisions;
  forks: Forks;
  trash: Trash;
  chat: ChatService;
  search: Search;
  speech: Speech;
  voices: VoiceSamples;
  voiceImports: VoiceImports;
  settings: Settings;
  presets: Presets;
  /** Tries lorebooks on conversations and texts. */
  lorebookTrial: LorebookTrial;
  setup: Setup;
  tailnet: Tailnet;
  upkeep: Upkeep;
  /** Ends what runs, saves it, and gives everything back. */
  close(): Promise<void>;
}

/** What the services need beside the configuration. */
export interface ServiceOptions {
  log: Log;
  /** Tells whoever sees the terminal something that is no business of a log: the pairing code. */
  announce?: (text: string) => void;
  now?: () => number;
  /** Version of the program, for what is written to be read by another one. */
  version?: string;
  /** Seals the daily backups. */
  backupPassphrase?: string;
  /** How long nobody must have been answered before a title or a summary is made; infinite for none. */
  titleIdleMs?: number;
  /** Limits of calls to image backends. */
  imageLimits?: Partial<BackendLimits>;
  tailnetTimes?: Partial<NodeTimes>;
}

/** What `{{user}}` is where the owner gave no name. */
const NAMELESS_OWNER = "User";

/** The connection under which a model that Parlor itself runs can be chosen. */
const LOCAL_CONNECTION = "local";

/** How often what is too old to keep is looked for, beside every start. */
const DAY_MS = 24 * 60 * 60 * 1000;
/** How often attachments are looked at that nothing may refer to any more. */
const HOUR_MS = 60 * 60 * 1000;

/**
 * Opens the data directory and everything on it.
 *
 * @throws {AppError} with one sentence for the owner when something cannot be opened; nothing stays open then.
 */
export async function openServices(config: Config, options: ServiceOptions): Promise<Services> {
  const { log, announce = () => {}, now = Date.now, titleIdleMs, imageLimits, tailnetTimes } = options;
  const opened: (() => void | Promise<void>)[] = [];
  const close = async () => {
    for (const undo of opened.splice(0).reverse()) await undo();
  };
  try {
    const dataDir = await openDataDir(config.dataDir);
    opened.push(() => dataDir.close());
    await finishIncoming(dataDir.path);
    const storageKey = await loadStorageKey({
      dataDir: dataDir.path,
      storageKeyFile: config.storageKeyFile ?? undefined,
      sealedDataExists: await holdsSealedData(dataDir),
    });
    const sealer = createSealer(storageKey);
    const db = await openDatabase({ path: dataDir.file("app.db") });
    opened.push(() => db.close());
    await settleKeyCheck(sealer, db);

    const events = createEventHub();
    const jobs = createJobRunner({ db, sealer: sealer.forPurpose("jobs"), events, now, newId: uuidV7 });
    opened.push(() => jobs.close());
    const guardExactOrigins = [config.hubUrl, config.cardSiteUrl];
    const guard = await openGuard({ allow: [...config.guardAllow], exactOrigins: guardExactOrigins });
    opened.push(() => guard.close());
    const cardSite = new CardSite({ guard, siteUrl: config.cardSiteUrl, maxCardBytes: config.maxUploadBodyBytes, now });
    const images = openImagePool();
    opened.push(() => images.close());

    const pageOrigins = createPageOriginWatch({ corsOrigins: config.corsOrigins, log });
    const tailnet = openTailnet({
      ...{ config, dataDir, db, events, log, times: tailnetTimes },
      sealer: sealer.forPurpose("settings"),
    });
    opened.push(() => tailnet.close());
    const ownNode = () => tailnet.own;
    const hosts = createHostPolicy({ allowedHosts: config.allowedHosts, tailnetSuffix: config.tailnetSuffix, ownNode });
    warnOfPlacesWithoutPasskeys(config, log);
    if (config.guardAllow.length > 0) {
      log(
        "warn",
        `Addresses in cards and pages may lead to ${config.guardAllow.join(", ")}, since guard_allow names it`,
      );
    }
    const auth = await openAuth({
      paths: {
        credentials: dataDir.file("credentials.json"),
        tokens: dataDir.file("tokens.json"),
        sessionKey: dataDir.file("session-key"),
      },
      ...{ settings: config, sealer, db, events, hosts, pageOrigins, log, now },
      ownSuffix: () => tailnet.own?.suffix,
      announcePairingCode: (code) => announce(`Pairing code: ${code}`),
    });
    opened.push(() => auth.close());

    const upstream = createUpstreamClient();
    opened.push(() => upstream.close());
    const connections = await openConnections({
      db,
      sealer: sealer.forPurpose("connections"),
      events,
      now,
      timeouts: {
        connectMs: config.upstreamConnectTimeoutMs,
        firstByteMs: config.upstreamFirstByteTimeoutMs,
        idleMs: config.upstreamIdleTimeoutMs,
      },
    });

    const models = new Models({
      ...{ jobs, events, log, guard, guardAllow: config.guardAllow, guardExactOrigins },
      folder: await dataDir.ensureFolder("models"),
      hubUrl: config.hubUrl,
      hubTokenFile: config.hubTokenFile,
      llamaServerPath: config.llamaServerPath,
      async offer({ name, activate, ...fields }) {
        await connections.put({ id: LOCAL_CONNECTION, name: `${name} (this machine)`, kind: "openai", ...fields });
        if (activate) await connections.activate(LOCAL_CONNECTION);
      },
    });
    opened.push(() => models.runner.close());

    const conversationSealer = sealer.forPurpose("conversations");
    const store = new ConversationStore(db, conversationSealer);
    const blocks = new BlockStore(db, conversationSealer);
    const variants = new VariantStore(db, conversationSealer);
    const live = new LiveReplies<Reply>();
    const turns = new Turns();
    const reader = new ConversationReader({ store, blocks, variants, live });
    const revisionStore = new RevisionStore(db, conversationSealer, now);
    const trash = new Trash({ db, sealer: sealer.forPurpose("trash"), events, now });
    const attachments = new Attachments({
      ...{ db, events, trash, log, now },
      sealer: sealer.forPurpose("attachments"),
      nameSealer: sealer.forPurpose("attachment names"),
      folder: await dataDir.ensureFolder("attachments"),
      maxBytes: config.maxUploadBodyBytes,
    });
    const references = new AttachmentReferences({
      ...{ db, store, blocks, turns, attachments, log },
      sealer: conversationSealer,
    });
    trash.register("attachment", attachments);
    const personas = new Personas({
      ...{ db, events, trash, images },
      folder: await dataDir.ensureFolder("personas"),
      trashFolder: await dataDir.ensureFolder("trash"),
      sealer: sealer.forPurpose("trash"),
    });
    trash.register("persona", personas);
    const pictures = { attachments, images };
    const rememberedFlag = (key: "setup_completed" | "builtin_app_installed", isSet: boolean) =>
      openRememberedFlag({
        ...{ key, isSet, db, sealer: sealer.forPurpose("settings") },
        save: () => saveConfigKey(config, key, true),
      });
    const { room: gallery, close: closeGallery } = await openCharacters({
      ...{ db, databasePath: dataDir.file("app.db"), dataDir, cardDirs: config.cardDirs, trash, events, log },
      trashSealer: sealer.forPurpose("trash"),
      pictures: images,
      builtinFlag: rememberedFlag("builtin_app_installed", config.builtinAppInstalled),
    });
    opened.push(closeGallery);
    const settings = new Settings({ db, sealer: sealer.forPurpose("settings"), events });
    const documents = { db, events, trash, now };
    const { room: lorebookRoom, close: closeLorebooks } = openLorebooks({
      ...documents,
      sealer: sealer.forPurpose("lorebooks"),
    });
    opened.push(closeLorebooks);
    const presets = openPresets({
      ...documents,
      sealer: sealer.forPurpose("presets"),
      chosenId: () => settings.get().settings.preset_id,
    });
    const userName = async (personaId?: string) => {
      const persona = personaId === undefined ? undefined : await personas.findName(personaId);
      return persona ?? (settings.get().settings.display_name || NAMELESS_OWNER);
    };
    const lorebookTrial = openTrial(lorebookRoom, {
      countTokens: (text) => Math.ceil(estimateTokens(text)),
      conversation: (id) =>
        scannedConversation(id, {
          ...{ store, blocks, personas, characters: gallery.characters, ownerName: userName },
          defaultPersonaId: () => settings.get().settings.default_persona_id,
        }),
    });
    const conversationParts = {
      ...{ db, store, blocks, variants, reader, live, turns, events, now, trash, pictures },
      revisions: revisionStore,
      greetings: async ({ characterId, personaId, isGroup }: GreetingQuestion) => {
        const user = await userName(personaId);
        const card = await findCard(gallery.characters, characterId);
        if (card === undefined) return undefined;
        const { texts, groupOnlyFrom } = greetingsOf(card, user, isGroup);
        const settled = settledGreetings(texts, namesOf(card, user), { seed: uuidV7(), nowMs: now() });
        return { characterId, texts: settled, groupOnlyFrom };
      },
    };
    const conversations = new Conversations(conversationParts);
    const messages = new Messages(conversationParts, conversations);
    const revisions = new Revisions(conversationParts, conversations);
    const forks = new Forks(conversationParts, conversations);
    trash.register("conversation", removedConversations(conversationParts, conversations));
    trash.register("message", removedMessages(conversationParts, conversations));
    const journalSealer = sealer.forPurpose("journal");
    const journalFolder = await dataDir.ensureFolder("replies");
    await recoverReplies({ db, store, conversations, journalSealer, journalFolder, log, now });
    const journal = await Journal.open(journalFolder, journalSealer);
    opened.push(() => journal.close());
    const ratios = new TokenRatios({ db, sealer: sealer.forPurpose("settings"), log });
    opened.push(() => ratios.close());
    const chatUpstream = createChatUpstream(connections, upstream, now, async (id, signal) => {
      if (id === LOCAL_CONNECTION) await models.runner.wake(signal);
    });
    const idle = new IdleQueue({ live, events, idleMs: titleIdleMs });
    opened.push(() => idle.close());
    const idleParts = { db, store, blocks, conversations, turns, log, idle, upstream: chatUpstream };
    const titles = new Titles({ ...idleParts, isWanted: () => settings.get().settings.auto_title });
    const summaries = new Summaries({
      ...{ ...idleParts, cards: gallery.characters, personas },
      isWanted: () => settings.get().settings.auto_summary,
      ownerName: () => settings.get().settings.display_name || NAMELESS_OWNER,
    });
    const promptRoom = openPrompts({
      ...{ upstream, ratios, now, personas, presets, cards: gallery.characters },
      lorebooks: lorebookRoom.lorebooks,
      matcher: lorebookRoom.keyMatcher,
      owner() {
        const { display_name: name, default_persona_id: personaId } = settings.get().settings;
        return { name: name || NAMELESS_OWNER, personaId: personaId ?? undefined };
      },
    });
    const chat = new ChatService({
      ...{ db, store, blocks, variants, conversations, live, turns, events, log, now, pictures, journal },
      ...{ upstream: chatUpstream, listeners: [titles, summaries] },
      ...promptRoom,
      ratios,
    });
    opened.push(() => chat.close());

    const search = new Search({ path: dataDir.file("app.db"), sealer: conversationSealer });
    opened.push(() => search.close());
    const voices = new VoiceSamples({
      ...{ db, events, trash, now },
      folder: await dataDir.ensureFolder("voices"),
      sealer: sealer.forPurpose("voices"),
    });
    trash.register("voice", voices.trashKind());
    const voiceImports = await VoiceImports.open({
      ...{ jobs, guard, samples: voices },
      folder: await dataDir.ensureFolder("imports"),
      ytDlpPath: config.ytDlpPath ?? undefined,
    });
    const speechClient = openOwnerClient({ what: "the speech server" });
    opened.push(() => speechClient.close());
    const speech = new Speech({
      settings: new SpeechSettings({ db, sealer: sealer.forPurpose("speech"), events }),
      client: speechClient,
      samples: { list: () => voices.list(), get: (id) => voices.reference(id) },
    });

    const backups = Backups.open({
      ...{ jobs, log, now, dataDir: dataDir.path, storageKey, version: options.version ?? "" },
      ...{ passphrase: options.backupPassphrase, folder: config.backupDir, keep: config.backupKeep },
    });
    opened.push(() => backups.close());
    const { room: drawn, painter, close: closeImages } = await openImages({
      ...{ db, dataDir, events, jobs, trash, attachments, pictures: images, avatars: gallery.avatars, now },
      sealer: sealer.forPurpose("images"),
      messages: new MessagePictures({ store, blocks, live, events, conversations }),
      ask: createAskModel(chatUpstream),
      limits: imageLimits,
    });
    opened.push(closeImages);
    const creator = new Creator({ jobs, upstream: chatUpstream, characters: gallery.characters, attachments, images });
    const portraits = new Portraits({ jobs, characters: gallery.characters, painter });

    const arrivals = new Arrivals(conversationParts, conversations);
    const imports = await openImports({
      ...{ jobs, dataDir, personas, presets, attachments, now, characters: gallery.characters },
      ...{ lorebooks: lorebookRoom.lorebooks, arrivals, voices, workflows: drawn.workflows, connections },
      ...{ imageProfiles: drawn.profiles, settings, speech: speech.settings },
    });
    opened.push(() => imports.close());
    const exports = new Exports({
      ...{ reader, personas, presets, attachments, userName, now, characters: gallery.characters },
      ...{ lorebooks: lorebookRoom.lorebooks, version: options.version ?? "", conversationIds: () => store.ids() },
      ...{ variants, voices, workflows: drawn.workflows, connections, imageProfiles: drawn.profiles, settings },
      speech: speech.settings,
    });

    // Every kind of removed things is known by now.
    const sweep = async () => {
      await trash.sweep();
      await revisions.sweep();
    };
    await sweep();
    let sweeping = Promise.resolve();
    const daily = setInterval(() => {
      sweeping = sweep().catch((error) =>
        log("error", "Cannot remove what is too old to keep", { error: describe(error) })
      );
    }, DAY_MS);
    opened.push(() => {
      clearInterval(daily);
      return sweeping;
    });
    // Not waited for: it may have to open whole conversations.
    let sweepingAttachments = Promise.resolve();
    const startAttachmentSweep = () => {
      sweepingAttachments = references.sweep().then(() => attachments.sweep()).catch((error) =>
        log("error", "Cannot remove attachments that nothing refers to", { error: describe(error) })
      );
    };
    startAttachmentSweep();
    const hourly = setInterval(startAttachmentSweep, HOUR_MS);
    opened.push(() => {
      clearInterval(hourly);
      return sweepingAttachments;
    });

    const setup = createSetup({
      ...{ flag: rememberedFlag("setup_completed", config.setupCompleted), events },
      surroundings: await findSurroundings(config.discoverHosts),
    });

    return {
      config,
      log,
      events,
      jobs,
      imports,
      arrivals,
      exports,
      backups,
      guard,
      images,
      auth,
      cardSite,
      creator,
      drawn,
      portraits,
      personas,
      attachments,
      references,
      hosts,
      pageOrigins,
      upstream,
      connections,
      models,
      conversations,
      messages,
      revisions,
      forks,
      trash,
      chat,
      search,
      speech,
      voices,
      voiceImports,
      presets,
      lorebookTrial,
      settings,
      setup,
      upkeep: new Upkeep(config, backups),
      tailnet,
      ...gallery,
      ...lorebookRoom,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
