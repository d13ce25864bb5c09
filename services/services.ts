/** Builds every service once, in order; close() undoes it in reverse. The only file that knows every room. */
import { type AccessPolicy, createAccessPolicy } from "./auth/access.ts";
import { createCredentialStore } from "./auth/credential_store.ts";
import { createHostPolicy, type HostPolicy } from "./auth/host_names.ts";
import { createPageOriginWatch, type PageOriginWatch } from "./auth/page_origin.ts";
import { BlockStore } from "./chat/blocks.ts";
import { ChatService } from "./chat/chat.ts";
import { Conversations } from "./chat/conversations.ts";
import { ConversationReader } from "./chat/conversation_reader.ts";
import { ConversationStore } from "./chat/conversation_store.ts";
import { Forks } from "./chat/forks.ts";
import { LiveReplies } from "./chat/live_replies.ts";
import { Messages } from "./chat/messages.ts";
import { createChatUpstream } from "./chat/model_choice.ts";
import { recoverReplies } from "./chat/recovery.ts";
import { describe, type Reply } from "./chat/reply.ts";
import { Revisions } from "./chat/revisions.ts";
import { RevisionStore } from "./chat/revision_store.ts";
import { Search } from "./chat/search.ts";
import { removedConversations, removedMessages } from "./chat/trash_kinds.ts";
import { Turns } from "./chat/turns.ts";
import { VariantStore } from "./chat/variants.ts";
import type { Config } from "./config.ts";
import { saveConfigKey } from "./config_file.ts";
import { settleKeyCheck } from "./crypto/key_check.ts";
import { uuidV7 } from "./crypto/random.ts";
import { createSealer } from "./crypto/sealer.ts";
import { loadStorageKey } from "./crypto/storage_key.ts";
import { createEventHub, type EventHub } from "./events/event_hub.ts";
import { createJobRunner, type JobRunner } from "./jobs/job_runner.ts";
import { type Connections, openConnections } from "./llm/connections.ts";
import { createUpstreamClient, type UpstreamClient } from "./llm/upstream.ts";
import type { Log } from "./log.ts";
import { type Guard, openGuard } from "./net/guarded_fetch.ts";
import { Settings } from "./settings/settings.ts";
import { createSetup, type Setup } from "./setup/setup.ts";
import { openDatabase } from "./storage/database.ts";
import { openDataDir } from "./storage/data_dir.ts";
import { holdsSealedData } from "./storage/sealed_data.ts";
import { Trash } from "./transfer/trash.ts";

/** Everything the routes can be given. */
export interface Services {
  config: Config;
  log: Log;
  events: EventHub;
  jobs: JobRunner;
  /** Calls to addresses that a user, a page or a redirect supplied. */
  guard: Guard;
  access: AccessPolicy;
  hosts: HostPolicy;
  pageOrigins: PageOriginWatch;
  upstream: UpstreamClient;
  connections: Connections;
  conversations: Conversations;
  messages: Messages;
  revisions: Revisions;
  forks: Forks;
  trash: Trash;
  chat: ChatService;
  search: Search;
  settings: Settings;
  setup: Setup;
  /** Ends what runs, saves it, and gives everything back. */
  close(): Promise<void>;
}

/** What the services need beside the configuration. */
export interface ServiceOptions {
  log: Log;
  now?: () => number;
}

/** How often what is too old to keep is looked for, beside every start. */
const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * Opens the data directory and everything on it.
 *
 * @throws {AppError} with one sentence for the owner when something cannot be opened; nothing stays open then.
 */
export async function openServices(config: Config, { log, now = Date.now }: ServiceOptions): Promise<Services> {
  const opened: (() => void | Promise<void>)[] = [];
  const close = async () => {
    for (const undo of opened.splice(0).reverse()) await undo();
  };
  try {
    const dataDir = await openDataDir(config.dataDir);
    opened.push(() => dataDir.close());
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
    const guard = await openGuard({ allow: [...config.guardAllow], exactOrigins: [config.hubUrl, config.cardSiteUrl] });
    opened.push(() => guard.close());

    const pageOrigins = createPageOriginWatch({ corsOrigins: config.corsOrigins, log });
    const access = createAccessPolicy({
      settings: config,
      credentials: createCredentialStore({
        path: dataDir.file("credentials.json"),
        sealer: sealer.forPurpose("credentials"),
        log,
      }),
      pageOrigins,
    });
    const hosts = createHostPolicy({ allowedHosts: config.allowedHosts, tailnetSuffix: config.tailnetSuffix });

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

    const conversationSealer = sealer.forPurpose("conversations");
    const store = new ConversationStore(db, conversationSealer);
    const blocks = new BlockStore(db, conversationSealer);
    const variants = new VariantStore(db, conversationSealer);
    const live = new LiveReplies<Reply>();
    const turns = new Turns();
    const reader = new ConversationReader(store, blocks, live);
    const revisionStore = new RevisionStore(db, conversationSealer, now);
    const trash = new Trash({ db, sealer: sealer.forPurpose("trash"), now });
    const conversationParts = {
      ...{ db, store, blocks, variants, reader, live, turns, events, now, trash },
      revisions: revisionStore,
    };
    const conversations = new Conversations(conversationParts);
    const messages = new Messages(conversationParts, conversations);
    const revisions = new Revisions(conversationParts, conversations);
    const forks = new Forks(conversationParts, conversations);
    trash.register("conversation", removedConversations(conversationParts, conversations));
    trash.register("message", removedMessages(conversationParts, conversations));
    const journals = {
      journalSealer: sealer.forPurpose("journal"),
      journalFolder: await dataDir.ensureFolder("replies"),
    };
    await recoverReplies({ db, store, conversations, ...journals, log, now });
    const chat = new ChatService({
      ...{ db, store, blocks, variants, conversations, live, turns, events, log, now, ...journals },
      upstream: createChatUpstream(connections, upstream, now),
    });
    opened.push(() => chat.close());
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

    const search = new Search({ path: dataDir.file("app.db"), sealer: conversationSealer });
    opened.push(() => search.close());
    const settings = new Settings({ db, sealer: sealer.forPurpose("settings"), events });

    const setup = createSetup({
      isCompleted: config.setupCompleted,
      save: () => saveConfigKey(config, "setup_completed", true),
      db,
      sealer: sealer.forPurpose("settings"),
      events,
    });
    return {
      config,
      log,
      events,
      jobs,
      guard,
      access,
      hosts,
      pageOrigins,
      upstream,
      connections,
      conversations,
      messages,
      revisions,
      forks,
      trash,
      chat,
      search,
      settings,
      setup,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
