/**
 * Builds every service once; close() undoes it in reverse. What a first answer rests on is open before it: the data, its
 * key, who may come in, and whatever an earlier process left unfinished. The other rooms are opened, and their code loaded,
 * when they are first asked for. What is in a room stands in rooms/; only the files there and this one know every room.
 */
import type { HostPolicy } from "./auth/host_names.ts";
import type { Auth } from "./auth/auth.ts";
import type { PageOriginWatch } from "./auth/page_origin.ts";
import type { ByteBudget } from "./async/byte_budget.ts";
import type { ChatService } from "./chat/chat.ts";
import { unendedReplies } from "./chat/reply_rows.ts";
import type { Search } from "./conversations/search/search.ts";
import type { Config } from "./config/config.ts";
import { messageOf } from "./errors.ts";
import type { EventHub } from "./events/event_hub.ts";
import type { BackendLimits } from "./image_generation/backend.ts";
import type { JobRunner } from "./jobs/job_runner.ts";
import { isEnd } from "./jobs/job_states.ts";
import type { Log } from "./log.ts";
import type { Models } from "./models/models.ts";
import { type Lazy, LazyScope } from "./async/lazy.ts";
import type { AnsweringRoom } from "./rooms/answering.ts";
import type { CarryingRoom } from "./rooms/carrying.ts";
import type { ConversationRoom } from "./rooms/conversations.ts";
import type { DrawnRoom } from "./rooms/drawn.ts";
import { openEntrance } from "./rooms/entrance.ts";
import { openGround } from "./rooms/ground.ts";
import type { GuardRoom } from "./rooms/guard.ts";
import type { Library } from "./rooms/library.ts";
import type { SpeechRoom } from "./rooms/speech.ts";
import { openTidying, type Tidying } from "./rooms/tidying.ts";
import type { Settings } from "./settings/settings.ts";
import type { Setup } from "./settings/setup.ts";
import type { NodeTimes } from "./tailnet/node_status.ts";
import type { Door, Tailnet } from "./tailnet/tailnet.ts";
import type { Backups } from "./backup/backups.ts";
import type { Trash } from "./storage/trash.ts";
import type { Upkeep } from "./diagnostics/data_report.ts";

/** Everything the routes can be given: what is open, then what is opened by asking for it. */
export interface Services {
  config: Config;
  log: Log;
  events: EventHub;
  jobs: JobRunner;
  trash: Trash;
  settings: Settings;
  /** Memory of large requests. */
  budget: ByteBudget;
  auth: Auth;
  hosts: HostPolicy;
  pageOrigins: PageOriginWatch;

  /** Calls to addresses that a user, a page or a redirect supplied. */
  guard: Lazy<GuardRoom>;
  /** Connections to models. */
  answering: Lazy<AnsweringRoom>;
  /** Models on this machine. */
  models: Lazy<Models>;
  /** Characters, personas, lorebooks, presets, attachments. */
  library: Lazy<Library>;
  conversations: Lazy<ConversationRoom>;
  search: Lazy<Search>;
  chat: Lazy<ChatService>;
  /** Pictures, portraits, and characters that a model writes. */
  drawn: Lazy<DrawnRoom>;
  speech: Lazy<SpeechRoom>;
  /** Imports and exports. */
  carrying: Lazy<CarryingRoom>;
  /** Backups in the owner's folder. */
  backups: Lazy<Backups>;
  setup: Lazy<Setup>;
  upkeep: Lazy<Upkeep>;
  tailnet: Lazy<Tailnet>;

  /** To be called once requests can be taken: the tailnet node starts if it is wanted, and tidying begins. */
  begin(openDoor: (tailnet: Tailnet) => Door): void;
  /** Opens what a person who opens the page needs next, and gets the writer of the database ready. */
  warmUp(): Promise<void>;
  /** Does now what is done now and then: removes what is too old to keep, or unused. */
  tidy(): Promise<void>;
  /** Ends replies, which are saved, and the tailnet node: while the listener drains, so that their clients still hear of it. */
  endWork(): Promise<void>;
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

/**
 * Opens the data directory and what stands on it.
 *
 * @throws {AppError} with one sentence for the owner when something cannot be opened; nothing stays open then.
 */
export async function openServices(config: Config, options: ServiceOptions): Promise<Services> {
  const { log, announce = () => {}, now = Date.now, version = "" } = options;
  const scope = new LazyScope();
  let tidying: Tidying | undefined;
  const close = async () => {
    await tidying?.close();
    await scope.close();
  };
  try {
    const onClose = scope.onClose.bind(scope);
    const lazy = scope.lazy.bind(scope);
    const openTrashKind = async (kind: string) => await roomOfTrash[kind]?.();
    const ground = await openGround({ config, log, now, version, openTrashKind }, onClose);
    const { auth, hosts, pageOrigins, nodeMemory } = await openEntrance(ground, announce, onClose);
    const { budget, db, events, jobs, settings, trash } = ground;

    const guard = lazy(async (onClose) => {
      const { openGuardRoom } = await import("./rooms/guard.ts");
      return await openGuardRoom(ground, onClose);
    });
    const answering = lazy(async (onClose) => {
      const { openAnswering } = await import("./rooms/answering.ts");
      return await openAnswering(ground, models, onClose);
    });
    const models: Lazy<Models> = lazy(async (onClose) => {
      const { openModels } = await import("./rooms/models.ts");
      return openModels(ground, { ...await guard(), answering: await answering() }, onClose);
    });
    const library = lazy(async (onClose) => {
      const { openLibrary } = await import("./rooms/library.ts");
      return await openLibrary(ground, onClose);
    });
    const conversations = lazy(async () => {
      const { openConversations } = await import("./rooms/conversations.ts");
      return await openConversations(ground, await library());
    });
    const search = lazy(async (onClose) => {
      const { Search } = await import("./conversations/search/search.ts");
      const search = new Search({ path: ground.databasePath, sealer: ground.sealer.forPurpose("conversations") });
      onClose(() => search.close());
      return search;
    });
    const talking = async () => ({
      library: await library(),
      room: await conversations(),
      answering: await answering(),
    });
    const chat = lazy(async (onClose) => {
      const { openChat } = await import("./rooms/chat.ts");
      return await openChat(ground, { ...await talking(), titleIdleMs: options.titleIdleMs }, onClose);
    });
    const drawn = lazy(async (onClose) => {
      const { openDrawn } = await import("./rooms/drawn.ts");
      return await openDrawn(ground, { ...await talking(), limits: options.imageLimits }, onClose);
    });
    const speech = lazy(async (onClose) => {
      const { openSpeech } = await import("./rooms/speech.ts");
      return await openSpeech(ground, (await guard()).guard, onClose);
    });
    const carrying = lazy(async (onClose) => {
      const { openCarrying } = await import("./rooms/carrying.ts");
      const rooms = { ...await talking(), drawn: await drawn(), speech: await speech() };
      return await openCarrying(ground, rooms, onClose);
    });
    const backups = lazy(async (onClose): Promise<Backups> => {
      const { Backups } = await import("./backup/backups.ts");
      const backups = Backups.open({
        ...{ jobs, log, now, version, dataDir: ground.dataDir.path, storageKey: ground.storageKey },
        ...{ passphrase: options.backupPassphrase, folder: config.backupDir, keep: config.backupKeep },
        storeCreatedAtMs: ground.createdAtMs,
      });
      onClose(() => backups.close());
      return backups;
    });
    const setup = lazy(async () => {
      const [{ createSetup }, { findSurroundings }] = await Promise.all([
        import("./settings/setup.ts"),
        import("./settings/setup_environment.ts"),
      ]);
      const flag = ground.rememberedFlag("setup_completed", config.setupCompleted);
      return createSetup({ flag, events, surroundings: await findSurroundings(config.discoverHosts) });
    });
    const upkeep = lazy(async () => new (await import("./diagnostics/data_report.ts")).Upkeep(config, await backups()));
    let openDoor: ((tailnet: Tailnet) => Door) | undefined;
    const tailnet: Lazy<Tailnet> = lazy(async (onClose) => {
      const { openTailnet } = await import("./tailnet/open_tailnet.ts");
      const { dataDir } = ground;
      const tailnet = openTailnet({
        ...{ config, dataDir, events, log, memory: nodeMemory, times: options.tailnetTimes },
      });
      onClose(() => tailnet.close());
      tailnet.begin(() => openDoor!(tailnet));
      return tailnet;
    });

    const roomOfTrash: Record<string, Lazy<unknown>> = {
      ...{ attachment: library, persona: library, character: library, lorebook: library, preset: library },
      ...{ conversation: conversations, message: conversations, workflow: drawn, voice: speech },
    };
    const roomOfJob: Record<string, Lazy<unknown>> = {
      ...{ image: drawn, portrait: drawn, character: drawn, model_download: models, voice_import: speech },
      ...{ import: carrying, backup: backups },
    };
    // What an earlier process was doing goes on, or is told to have ended, before anybody can ask for it.
    if (unendedReplies(db).length > 0) await conversations();
    const unfinished = new Set(jobs.list().filter(({ state }) => !isEnd(state)).map(({ kind }) => kind));
    for (const kind of unfinished) await roomOfJob[kind]?.();
    if (config.backupDir !== null) await backups();
    // The demo connection and the built-in character are there before anybody looks.
    if (ground.isFirstStart) await Promise.all([answering(), library()]);
    tidying = openTidying(ground, { library, conversations, speech, carrying });

    return {
      ...{ budget, config, log, events, jobs, trash, settings, auth, hosts, pageOrigins },
      ...{ guard, answering, models, library, conversations, search, chat, drawn, speech, carrying },
      ...{ backups, setup, upkeep, tailnet, tidy: tidying.tidy, close },
      begin(open) {
        openDoor = open;
        if (nodeMemory.wanted.enabled || nodeMemory.isWipeDue) {
          tailnet().catch((error) => log("error", "Cannot start the tailnet node", { error: messageOf(error) }));
        }
        tidying?.begin();
      },
      async warmUp() {
        db.prepare();
        await Promise.all([setup(), chat()]);
      },
      async endWork() {
        const [node, replies] = [tailnet.opened, chat.opened];
        // One that could not be opened has nothing to end.
        await Promise.all([
          node?.then((node) => node.close(), () => {}),
          replies?.then((chat) => chat.close(), () => {}),
        ]);
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}
